#pragma once
// TLS 1.3 with certificates on both sides: what one end proves itself with and whom it believes,
// and one session of it as a pure machine over bytes (net/connection.hpp gives it a socket on the
// loop, stream/frame.hpp and http/client.hpp a blocking one).
//
// OpenSSL directly and not asio's wrapper: one implementation serves the loop and blocking threads,
// an idle session keeps no buffer, and the certificates are judged by pki::verify alone. No session
// is ever resumed: each connection meets the certificates and revocations of its day.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "base/result.hpp"
#include "pki/certificate.hpp"

namespace zed::net {

/// A node's own certificate. Both empty: a client that shows none.
struct TlsIdentity {
  std::string chain;  ///< PEM, its own first, the authority's last
  std::string key;    ///< PEM
};

/// Shared by all connections of one end; what is replaced counts for those that begin later.
/// Thread-safe.
class Tls {
public:
  /// Errors: `invalid` if key and certificate do not belong together.
  static Result<std::shared_ptr<Tls>> make(TlsIdentity identity, pki::Trust trust);
  ~Tls();
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  /// After a renewal. Errors: as make(); then nothing has changed.
  Status replace(TlsIdentity identity);
  /// Serials that are refused from now on.
  void revoke(std::set<std::string> serials);
  /// What this end shows; nothing for a client without a certificate.
  std::optional<pki::CertificateInfo> own() const;

  struct Internals;
  Internals& internals() const { return *internals_; }

private:
  Tls();
  std::unique_ptr<Internals> internals_;
};

enum class TlsSide { client, server };
enum class TlsPeer { must_show_certificate, may_show_certificate };

/// One connection's TLS, without a socket: bytes of the wire in and out, plain bytes out and in.
class TlsSession {
public:
  /// A client's first message is in take_output() at once. The other side of a client always shows
  /// a certificate.
  TlsSession(std::shared_ptr<const Tls> tls, TlsSide side,
             TlsPeer peer = TlsPeer::must_show_certificate);
  ~TlsSession();
  TlsSession(TlsSession&&) noexcept;
  TlsSession& operator=(TlsSession&&) noexcept;

  /// What came from the wire. Call read() until it gives 0 before the bytes go away.
  void feed(std::span<const std::uint8_t> wire);
  /// Plain bytes of what was fed; 0 when more is needed. Goes through the handshake first. Errors
  /// end the session: `refused` (a certificate, either side's), `corrupt` (not TLS), `unavailable`
  /// (the other side said that it closes). What take_output() still gives tells the other side.
  Result<std::size_t> read(std::span<std::uint8_t> plain);
  /// Encrypts all of it. The handshake must be done. Errors: `unavailable` after an end.
  Status write(std::span<const std::uint8_t> plain);
  /// Says that nothing follows.
  void close();

  /// The handshake was done and the other side's certificate believed; stays true after the end. On
  /// a server everything is verified then; a client learns only by the first read whether the
  /// server believes it.
  bool is_open() const;
  /// Who is there; nothing for a client that showed no certificate.
  const std::optional<pki::CertificateInfo>& peer() const;
  /// Bytes for the wire; empties.
  std::string take_output();

private:
  struct State;
  std::unique_ptr<State> state_;
};

/// How a connection on the loop is to be secured.
struct TlsEnd {
  std::shared_ptr<const Tls> tls;
  TlsSide side = TlsSide::client;
  TlsPeer peer = TlsPeer::must_show_certificate;
  /// Called once, when the certificates are verified; an error ends the connection with it. Null
  /// for a client that showed none.
  std::function<Status(const pki::CertificateInfo*)> check;
};

}  // namespace zed::net
