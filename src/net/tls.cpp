#include "net/tls.hpp"

#include <algorithm>
#include <mutex>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/clock.hpp"
#include "pki/openssl_impl.hpp"

namespace zed::net {
namespace {

using ContextPtr = std::shared_ptr<SSL_CTX>;
using SslPtr = std::unique_ptr<SSL, pki::Freed<SSL_free>>;

/// What was found of the other side's certificate.
struct Judged {
  std::optional<pki::CertificateInfo> peer;
  std::optional<Error> refusal;
};

/// The two ends of a session that has no socket.
struct Wire {
  std::span<const std::uint8_t> in;
  std::string out;
};

Status use_identity(SSL_CTX* context, const TlsIdentity& identity) {
  if (identity.chain.empty() && identity.key.empty()) return {};
  ZED_TRY(auto chain, pki::certificates_of(identity.chain));
  ZED_TRY(auto key, pki::key_of(identity.key));
  bool taken = SSL_CTX_use_certificate(context, chain.front().get()) == 1 &&
               SSL_CTX_use_PrivateKey(context, key.get()) == 1;
  // The authority too: a machine that joins knows it only by its fingerprint.
  for (std::size_t i = 1; i < chain.size(); ++i)
    taken = taken && SSL_CTX_add1_chain_cert(context, chain[i].get()) == 1;
  if (!taken)
    return fail(pki::openssl_error(ErrorCode::invalid, "use the certificate and its key"));
  return {};
}

/// The alert that the other side gets.
int alert_of(const Error& error) {
  if (error.message.find("valid until") != std::string::npos) return X509_V_ERR_CERT_HAS_EXPIRED;
  if (error.message.find("revoked") != std::string::npos) return X509_V_ERR_CERT_REVOKED;
  if (error.message.find("another fleet") != std::string::npos)
    return X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY;
  return X509_V_ERR_CERT_REJECTED;
}

}  // namespace

struct Tls::Internals {
  /// Taken when a session begins; a context lives as long as its last session.
  ContextPtr context() const {
    const std::lock_guard lock(mutex);
    return current;
  }
  pki::Trust trusted() const {
    const std::lock_guard lock(mutex);
    return trust;
  }
  Result<ContextPtr> make_context(const TlsIdentity& identity) const;

  mutable std::mutex mutex;
  ContextPtr current;
  pki::Trust trust;
  std::optional<pki::CertificateInfo> own;
};

namespace {

/// OpenSSL's question whether a chain is to be believed.
int verify_peer(X509_STORE_CTX* chain, void* internals) {
  auto* ssl =
      static_cast<SSL*>(X509_STORE_CTX_get_ex_data(chain, SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto& judged = *static_cast<Judged*>(SSL_get_app_data(ssl));
  auto verified =
      pki::verify_chain(X509_STORE_CTX_get0_cert(chain), X509_STORE_CTX_get0_untrusted(chain),
                        static_cast<Tls::Internals*>(internals)->trusted(), wall_now());
  if (verified) {
    judged.peer = std::move(*verified);
    X509_STORE_CTX_set_error(chain, X509_V_OK);
    return 1;
  }
  judged.refusal = std::move(verified).error();
  X509_STORE_CTX_set_error(chain, alert_of(*judged.refusal));
  return 0;
}

}  // namespace

struct TlsSession::State {
  std::shared_ptr<const Tls> tls;
  ContextPtr context;
  SslPtr ssl;
  Wire wire;
  Judged judged;
  bool open = false;
  bool over = false;

  Error why(const char* what);
  Result<bool> shake_hands();
};

namespace {

// A BIO whose far end is the session's own two buffers: nothing is kept between calls.

int bio_read(BIO* bio, char* into, int size) {
  auto& in = static_cast<Wire*>(BIO_get_data(bio))->in;
  BIO_clear_retry_flags(bio);
  const std::size_t count = std::min(in.size(), static_cast<std::size_t>(std::max(size, 0)));
  if (count == 0) {
    BIO_set_retry_read(bio);
    return -1;
  }
  std::copy_n(in.begin(), count, into);
  in = in.subspan(count);
  return static_cast<int>(count);
}

int bio_write(BIO* bio, const char* bytes, int size) {
  static_cast<Wire*>(BIO_get_data(bio))->out.append(bytes, static_cast<std::size_t>(size));
  return size;
}

long bio_control(BIO*, int command, long, void*) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

const BIO_METHOD* bio_method() {
  static const BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "zed");
    BIO_meth_set_read(made, bio_read);
    BIO_meth_set_write(made, bio_write);
    BIO_meth_set_ctrl(made, bio_control);
    return made;
  }();
  return method;
}

}  // namespace

Tls::Tls() : internals_(std::make_unique<Internals>()) {}
Tls::~Tls() = default;

Result<ContextPtr> Tls::Internals::make_context(const TlsIdentity& identity) const {
  ContextPtr context(SSL_CTX_new(TLS_method()), SSL_CTX_free);
  if (!context) return fail(pki::openssl_error(ErrorCode::internal, "prepare TLS"));
  SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION);
  SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_cert_verify_callback(context.get(), &verify_peer, const_cast<Internals*>(this));
  ZED_CHECK(use_identity(context.get(), identity));
  return context;
}

Result<std::shared_ptr<Tls>> Tls::make(TlsIdentity identity, pki::Trust trust) {
  std::shared_ptr<Tls> tls(new Tls);
  tls->internals_->trust = std::move(trust);
  ZED_CHECK(tls->replace(std::move(identity)));
  return tls;
}

Status Tls::replace(TlsIdentity identity) {
  ZED_TRY(ContextPtr context, internals_->make_context(identity));
  std::optional<pki::CertificateInfo> own;
  if (!identity.chain.empty()) {
    ZED_TRY(own, pki::read_certificate(identity.chain));
  }
  const std::lock_guard lock(internals_->mutex);
  internals_->current = std::move(context);
  internals_->own = std::move(own);
  return {};
}

void Tls::revoke(std::set<std::string> serials) {
  const std::lock_guard lock(internals_->mutex);
  internals_->trust.revoked = std::move(serials);
}

std::optional<pki::CertificateInfo> Tls::own() const {
  const std::lock_guard lock(internals_->mutex);
  return internals_->own;
}

TlsSession::TlsSession(std::shared_ptr<const Tls> tls, TlsSide side, TlsPeer peer)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.tls = std::move(tls);
  s.context = s.tls->internals().context();
  s.ssl.reset(SSL_new(s.context.get()));
  BIO* bio = BIO_new(bio_method());
  ZED_ASSERT(s.ssl && bio != nullptr);  // out of memory is fatal here as anywhere
  BIO_set_data(bio, &s.wire);
  BIO_set_init(bio, 1);
  SSL_set_bio(s.ssl.get(), bio, bio);
  SSL_set_app_data(s.ssl.get(), &s.judged);
  const bool must = peer == TlsPeer::must_show_certificate;
  SSL_set_verify(s.ssl.get(), SSL_VERIFY_PEER | (must ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
                 nullptr);
  if (side == TlsSide::server) {
    SSL_set_accept_state(s.ssl.get());
    return;
  }
  SSL_set_connect_state(s.ssl.get());
  (void)s.shake_hands();  // only makes the first message
}

TlsSession::~TlsSession() = default;
TlsSession::TlsSession(TlsSession&&) noexcept = default;
TlsSession& TlsSession::operator=(TlsSession&&) noexcept = default;

namespace {

Error refused_by_peer(unsigned long reason) {
  ERR_clear_error();
  const char* alert = ERR_reason_error_string(reason);
  return {ErrorCode::refused,
          "the other side does not believe this one's certificate (" +
              std::string(alert == nullptr ? "it does not say why" : alert) + ")",
          {},
          "its log says more; a certificate may be expired, revoked or of another fleet"};
}

}  // namespace

Error TlsSession::State::why(const char* what) {
  over = true;
  wire.in = {};
  if (judged.refusal) {
    ERR_clear_error();
    return *judged.refusal;
  }
  const unsigned long first = ERR_peek_error();
  constexpr int alerts = SSL_AD_REASON_OFFSET;
  const int reason = ERR_GET_REASON(first);
  const bool alerted =
      ERR_GET_LIB(first) == ERR_LIB_SSL && reason > alerts && reason < alerts + 256;
  if (alerted) return refused_by_peer(first);
  if (first != 0 && reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE)
    return pki::openssl_error(ErrorCode::refused, what)
        .hinted("machines join by zed-agent join, people by zedctl login");
  return pki::openssl_error(ErrorCode::corrupt, what)
      .hinted("the other side may not speak TLS 1.3");
}

/// Whether it is done; false when more bytes are needed.
Result<bool> TlsSession::State::shake_hands() {
  ERR_clear_error();
  const int done = SSL_do_handshake(ssl.get());
  if (done == 1) {
    open = true;
    return true;
  }
  if (SSL_get_error(ssl.get(), done) == SSL_ERROR_WANT_READ) return false;
  return fail(why("the TLS handshake"));
}

void TlsSession::feed(std::span<const std::uint8_t> wire) {
  state_->wire.in = wire;
}

Result<std::size_t> TlsSession::read(std::span<std::uint8_t> plain) {
  State& s = *state_;
  if (s.over) return fail(ErrorCode::unavailable, "the TLS session is over");
  if (!s.open) {
    ZED_TRY(const bool done, s.shake_hands());
    if (!done) return std::size_t{0};
  }
  ERR_clear_error();
  const int size = static_cast<int>(std::min<std::size_t>(plain.size(), INT32_MAX));
  const int got = SSL_read(s.ssl.get(), plain.data(), size);
  if (got > 0) return static_cast<std::size_t>(got);
  switch (SSL_get_error(s.ssl.get(), got)) {
  case SSL_ERROR_WANT_READ: return std::size_t{0};
  case SSL_ERROR_ZERO_RETURN:
    s.over = true;
    return fail(ErrorCode::unavailable, "the other side closed the connection");
  default: return fail(s.why("reading by TLS"));
  }
}

Status TlsSession::write(std::span<const std::uint8_t> plain) {
  State& s = *state_;
  if (s.over || !s.open) return fail(ErrorCode::unavailable, "the TLS session is not open");
  while (!plain.empty()) {
    ERR_clear_error();
    const int size = static_cast<int>(std::min<std::size_t>(plain.size(), 1 << 30));
    const int sent = SSL_write(s.ssl.get(), plain.data(), size);
    if (sent <= 0) return fail(s.why("writing by TLS"));
    plain = plain.subspan(static_cast<std::size_t>(sent));
  }
  return {};
}

void TlsSession::close() {
  State& s = *state_;
  if (s.over || !s.open) return;
  s.over = true;
  SSL_shutdown(s.ssl.get());
  ERR_clear_error();
}

bool TlsSession::is_open() const {
  return state_->open;
}
const std::optional<pki::CertificateInfo>& TlsSession::peer() const {
  return state_->judged.peer;
}
std::string TlsSession::take_output() {
  return std::exchange(state_->wire.out, {});
}

}  // namespace zed::net
