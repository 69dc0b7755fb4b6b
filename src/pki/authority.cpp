#include "pki/authority.hpp"

#include <algorithm>
#include <array>
#include <ctime>

#include <arpa/inet.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <sys/socket.h>

#include "base/enum.hpp"
#include "pki/openssl_impl.hpp"

namespace zed::pki {
namespace {

constexpr Millis day = minutes(60 * 24);
constexpr std::size_t longest_request = 16 << 10;
constexpr std::size_t most_hosts = 16;

struct Signer {
  X509Ptr certificate;
  KeyPtr key;
};

Result<Signer> signer_of(const Issuer& issuer) {
  ZED_TRY(auto chain, certificates_of(issuer.chain));
  ZED_TRY(KeyPtr key, key_of(issuer.key));
  if (X509_check_private_key(chain.front().get(), key.get()) != 1) {
    ERR_clear_error();
    return fail(ErrorCode::invalid, "the issuer's key is not that of its certificate");
  }
  return Signer{std::move(chain.front()), std::move(key)};
}

bool is_address(const std::string& host) {
  std::array<unsigned char, 16> bytes{};
  return ::inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

bool is_host(const std::string& host) {
  return !host.empty() && host.size() <= 253 && std::all_of(host.begin(), host.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.' || c == ':';
  });
}

Status set_serial(X509* certificate, Nonce serial) {
  serial[0] = static_cast<std::uint8_t>((serial[0] & 0x7f) | 0x40);  // positive, and never short
  std::unique_ptr<BIGNUM, Freed<BN_free>> number(
      BN_bin2bn(serial.data(), static_cast<int>(serial.size()), nullptr));
  if (!number || BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) == nullptr)
    return fail(openssl_error(ErrorCode::internal, "number a certificate"));
  return {};
}

void set_name(X509_NAME* name, const std::string& text) {
  const auto add = [name](const char* field, std::string_view value) {
    X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(value.data()),
                               static_cast<int>(value.size()), -1, 0);
  };
  add("O", "Zed");
  add("CN", std::string_view(text).substr(0, 64));  // the longest that X.509 takes
}

Status extend(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context{};
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  std::unique_ptr<X509_EXTENSION, Freed<X509_EXTENSION_free>> extension(
      X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  if (!extension || X509_add_ext(certificate, extension.get(), -1) != 1)
    return fail(openssl_error(ErrorCode::internal, "extend a certificate"));
  return {};
}

/// What all certificates have, signed by nobody yet. `issuer` is null for a root.
Result<X509Ptr> begin(EVP_PKEY* key, const std::string& name, X509* issuer, const Nonce& serial,
                      WallTime from, WallTime until) {
  X509Ptr certificate(X509_new());
  X509* raw = certificate.get();
  X509_set_version(raw, X509_VERSION_3);
  ZED_CHECK(set_serial(raw, serial));
  set_name(X509_get_subject_name(raw), name);
  X509_set_issuer_name(raw, X509_get_subject_name(issuer == nullptr ? raw : issuer));
  ASN1_TIME_set(X509_getm_notBefore(raw), static_cast<std::time_t>(from.ms / 1000));
  ASN1_TIME_set(X509_getm_notAfter(raw), static_cast<std::time_t>(until.ms / 1000));
  if (X509_set_pubkey(raw, key) != 1)
    return fail(openssl_error(ErrorCode::internal, "make a certificate"));
  ZED_CHECK(extend(raw, issuer, NID_subject_key_identifier, "hash"));
  if (issuer != nullptr)
    ZED_CHECK(extend(raw, issuer, NID_authority_key_identifier, "keyid:always"));
  return certificate;
}

Result<std::string> finish(X509* certificate, EVP_PKEY* key) {
  if (X509_sign(certificate, key, EVP_sha256()) == 0)
    return fail(openssl_error(ErrorCode::internal, "sign a certificate"));
  return pem_of(certificate);
}

std::string names_of(const Identity& identity, const std::vector<std::string>& hosts) {
  std::string names;
  std::vector<std::string> all = hosts;
  all.insert(all.begin(), identity.host());
  for (const std::string& host : all)
    names += (is_address(host) ? "IP:" : "DNS:") + host + ",";
  return names + "URI:zed:node/" + identity.node + ",URI:zed:role/" +
         std::string(to_string(identity.role));
}

bool is_p256(EVP_PKEY* key) {
  std::array<char, 32> group{};
  std::size_t size = 0;
  return EVP_PKEY_get_base_id(key) == EVP_PKEY_EC &&
         EVP_PKEY_get_group_name(key, group.data(), group.size(), &size) == 1 &&
         std::string_view(group.data(), size) == "prime256v1";
}

Result<KeyPtr> key_of_request(std::string_view request) {
  if (request.size() > longest_request)
    return fail(ErrorCode::invalid, "a signing request has at most 16 KiB");
  BioPtr in(BIO_new_mem_buf(request.data(), static_cast<int>(request.size())));
  X509ReqPtr parsed(PEM_read_bio_X509_REQ(in.get(), nullptr, nullptr, nullptr));
  KeyPtr key(parsed ? X509_REQ_get_pubkey(parsed.get()) : nullptr);
  const bool proven = key && is_p256(key.get()) && X509_REQ_verify(parsed.get(), key.get()) == 1;
  ERR_clear_error();
  if (!proven)
    return fail(ErrorCode::invalid, "this is no signing request of a P-256 key",
                "zed-agent join and zedctl login make one");
  return key;
}

WallTime earlier(WallTime a, WallTime b) {
  return std::min(a, b);
}
WallTime plus(WallTime time, Millis span) {
  return {time.ms + span.value};
}

}  // namespace

Result<Issuer> make_root(std::string_view key, const Nonce& serial, WallTime now, Millis lifetime) {
  ZED_TRY(KeyPtr pair, key_of(key));
  ZED_TRY(X509Ptr root, begin(pair.get(), "Zed certificate authority", nullptr, serial,
                              plus(now, Millis{-backdated.value}), plus(now, lifetime)));
  ZED_CHECK(extend(root.get(), root.get(), NID_basic_constraints, "critical,CA:TRUE,pathlen:1"));
  ZED_CHECK(extend(root.get(), root.get(), NID_key_usage, "critical,keyCertSign,cRLSign"));
  ZED_TRY(std::string pem, finish(root.get(), pair.get()));
  return Issuer{std::move(pem), std::string(key)};
}

Result<Issuer> make_issuing(const Issuer& root, std::string_view key, const Nonce& serial,
                            WallTime now, Millis lifetime) {
  ZED_TRY(Signer signer, signer_of(root));
  ZED_TRY(CertificateInfo above, info_of(signer.certificate.get()));
  ZED_TRY(KeyPtr pair, key_of(key));
  X509* authority = signer.certificate.get();
  ZED_TRY(X509Ptr issuing,
          begin(pair.get(), "Zed issuing", authority, serial, plus(now, Millis{-backdated.value}),
                earlier(plus(now, lifetime), above.not_after)));
  ZED_CHECK(extend(issuing.get(), authority, NID_basic_constraints, "critical,CA:TRUE,pathlen:0"));
  ZED_CHECK(extend(issuing.get(), authority, NID_key_usage, "critical,keyCertSign,cRLSign"));
  ZED_TRY(std::string pem, finish(issuing.get(), signer.key.get()));
  return Issuer{pem + root.chain, std::string(key)};
}

Result<std::string> make_request(std::string_view key, std::string_view name) {
  ZED_TRY(KeyPtr pair, key_of(key));
  X509ReqPtr request(X509_REQ_new());
  set_name(X509_REQ_get_subject_name(request.get()), std::string(name));
  if (X509_REQ_set_pubkey(request.get(), pair.get()) != 1 ||
      X509_REQ_sign(request.get(), pair.get(), EVP_sha256()) == 0)
    return fail(openssl_error(ErrorCode::internal, "make a signing request"));
  BioPtr out(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509_REQ(out.get(), request.get()) != 1)
    return fail(openssl_error(ErrorCode::internal, "write a signing request"));
  return text_of(out.get());
}

Result<std::string> sign_request(std::string_view request, const Issuer& issuer,
                                 const Identity& identity, const std::vector<std::string>& hosts,
                                 const Nonce& serial, WallTime now, Millis lifetime) {
  ZED_CHECK(check_identity(identity));
  if (hosts.size() > most_hosts || !std::all_of(hosts.begin(), hosts.end(), is_host))
    return fail(ErrorCode::invalid, "a certificate names at most 16 hosts, each a name or address");
  ZED_TRY(KeyPtr key, key_of_request(request));
  ZED_TRY(Signer signer, signer_of(issuer));
  ZED_TRY(CertificateInfo above, info_of(signer.certificate.get()));
  if (above.not_after < plus(now, day))
    return fail(ErrorCode::refused, "the issuing certificate has less than a day left",
                "renew it on the controller's machine: zed-controller issue");
  X509* authority = signer.certificate.get();
  ZED_TRY(X509Ptr node,
          begin(key.get(), identity.node, authority, serial, plus(now, Millis{-backdated.value}),
                earlier(plus(now, lifetime), above.not_after)));
  ZED_CHECK(extend(node.get(), authority, NID_basic_constraints, "critical,CA:FALSE"));
  ZED_CHECK(extend(node.get(), authority, NID_key_usage, "critical,digitalSignature"));
  ZED_CHECK(extend(node.get(), authority, NID_ext_key_usage, "serverAuth,clientAuth"));
  ZED_CHECK(extend(node.get(), authority, NID_subject_alt_name, names_of(identity, hosts)));
  ZED_TRY(std::string pem, finish(node.get(), signer.key.get()));
  return pem + issuer.chain;
}

bool is_due_for_renewal(const CertificateInfo& certificate, WallTime now) {
  const std::int64_t lifetime = certificate.not_after.ms - certificate.not_before.ms;
  return now.ms >= certificate.not_after.ms - lifetime / 3;
}

}  // namespace zed::pki
