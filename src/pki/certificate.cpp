#include "pki/certificate.hpp"

#include <algorithm>
#include <array>
#include <ctime>

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <sys/socket.h>

#include "base/enum.hpp"
#include "base/text.hpp"
#include "pki/keys.hpp"
#include "pki/openssl_impl.hpp"

namespace zed::pki {
namespace {

constexpr std::string_view node_scheme = "zed:node/", role_scheme = "zed:role/";
constexpr int deepest_chain = 3;

using NamesPtr = std::unique_ptr<GENERAL_NAMES, Freed<GENERAL_NAMES_free>>;
using StorePtr = std::unique_ptr<X509_STORE, Freed<X509_STORE_free>>;
/// Frees the stack, not what is in it.
struct FreeStack {
  void operator()(STACK_OF(X509) * stack) const { sk_X509_free(stack); }
};
using StoreContextPtr = std::unique_ptr<X509_STORE_CTX, Freed<X509_STORE_CTX_free>>;

WallTime time_of(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return {};
  return {static_cast<std::int64_t>(::timegm(&parts)) * 1000};
}

std::string serial_of(X509* certificate) {
  std::unique_ptr<BIGNUM, Freed<BN_free>> number(
      ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), nullptr));
  char* digits = number ? BN_bn2hex(number.get()) : nullptr;
  std::string text = digits == nullptr ? "" : lower(digits);
  OPENSSL_free(digits);
  return text;
}

std::string fingerprint_of(X509* certificate) {
  unsigned char* der = nullptr;
  const int size = i2d_X509(certificate, &der);
  if (size <= 0) return "";
  std::string digest =
      sha256_hex({reinterpret_cast<const char*>(der), static_cast<std::size_t>(size)});
  OPENSSL_free(der);
  return digest;
}

std::string_view text_of_name(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<std::size_t>(ASN1_STRING_length(text))};
}

std::string address_of(const ASN1_OCTET_STRING* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int family = ASN1_STRING_length(address) == 4 ? AF_INET : AF_INET6;
  if (ASN1_STRING_length(address) != 4 && ASN1_STRING_length(address) != 16) return "";
  ::inet_ntop(family, ASN1_STRING_get0_data(address), text.data(), text.size());
  return text.data();
}

/// Two names of one kind would let a certificate be read in two ways.
Status read_uri(std::string_view uri, CertificateInfo& info, bool& has_role) {
  if (uri.starts_with(node_scheme)) {
    if (!info.identity.node.empty()) return fail(ErrorCode::refused, "it names two nodes");
    info.identity.node = std::string(uri.substr(node_scheme.size()));
  } else if (uri.starts_with(role_scheme)) {
    const auto role = enum_of<Role>(uri.substr(role_scheme.size()));
    if (has_role || !role) return fail(ErrorCode::refused, "its role is not one of Zed's");
    info.identity.role = *role;
    has_role = true;
  }
  return {};
}

Status read_names(X509* certificate, CertificateInfo& info) {
  NamesPtr names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  bool has_role = false;
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_DNS)
      info.hosts.emplace_back(text_of_name(name->d.dNSName));
    else if (name->type == GEN_IPADD)
      info.hosts.push_back(address_of(name->d.iPAddress));
    else if (name->type == GEN_URI)
      ZED_CHECK(read_uri(text_of_name(name->d.uniformResourceIdentifier), info, has_role));
  }
  if (info.is_authority) return {};
  if (info.identity.node.empty() || !has_role)
    return fail(ErrorCode::refused, "it names no Zed node with a role");
  return check_identity(info.identity);
}

std::string why_not(int error, X509* leaf) {
  switch (error) {
  case X509_V_ERR_CERT_HAS_EXPIRED:
    return "it was valid until " + to_iso8601(time_of(X509_get0_notAfter(leaf)));
  case X509_V_ERR_CERT_NOT_YET_VALID:
    return "it is not valid before " + to_iso8601(time_of(X509_get0_notBefore(leaf))) +
           "; a clock may be wrong";
  case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
  case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
  case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
  case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
  case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    return "it comes from another fleet's certificate authority";
  default: return X509_verify_cert_error_string(error);
  }
}

tl::unexpected<Error> refused(const CertificateInfo& info, const std::string& why) {
  const std::string& node = info.identity.node;
  return fail(ErrorCode::refused,
              "the certificate " + (node.empty() ? "" : "of " + node + " ") +
                  "is not believed: " + why,
              "zedctl token create makes a token to join with anew");
}

/// The authorities to believe: those that are configured, or the one in the chain that was pinned.
Result<StorePtr> store_of(STACK_OF(X509) * untrusted, const Trust& trust) {
  StorePtr store(X509_STORE_new());
  if (trust.pinned_root.empty()) {
    ZED_TRY(auto roots, certificates_of(trust.roots));
    for (const X509Ptr& root : roots)
      X509_STORE_add_cert(store.get(), root.get());
    return store;
  }
  for (int i = 0; untrusted != nullptr && i < sk_X509_num(untrusted); ++i) {
    X509* one = sk_X509_value(untrusted, i);
    if (same_secret(fingerprint_of(one), trust.pinned_root)) {
      X509_STORE_add_cert(store.get(), one);
      return store;
    }
  }
  return fail(ErrorCode::refused, "it shows another certificate authority than the token names",
              "check the address; somebody may be in between");
}

}  // namespace

Result<CertificateInfo> info_of(X509* certificate) {
  CertificateInfo info;
  info.is_authority = X509_check_ca(certificate) == 1;
  info.serial = serial_of(certificate);
  info.fingerprint = fingerprint_of(certificate);
  info.not_before = time_of(X509_get0_notBefore(certificate));
  info.not_after = time_of(X509_get0_notAfter(certificate));
  if (auto read = read_names(certificate, info); !read)
    return fail(std::move(read).error().with("read a certificate"));
  return info;
}

bool is_revoked(const CertificateInfo& certificate, const std::set<std::string>& serials) {
  return serials.count(certificate.serial) != 0 ||
         std::any_of(certificate.issuers.begin(), certificate.issuers.end(),
                     [&](const std::string& serial) { return serials.count(serial) != 0; });
}

Result<CertificateInfo> verify_chain(X509* leaf, STACK_OF(X509) * untrusted, const Trust& trust,
                                     WallTime now) {
  ZED_TRY(CertificateInfo info, info_of(leaf));
  if (info.is_authority) return refused(info, "it is an authority's, not a node's");
  ZED_TRY(StorePtr store, store_of(untrusted, trust));
  StoreContextPtr context(X509_STORE_CTX_new());
  if (!context || X509_STORE_CTX_init(context.get(), store.get(), leaf, untrusted) != 1)
    return fail(openssl_error(ErrorCode::internal, "verify a certificate"));
  X509_VERIFY_PARAM* parameters = X509_STORE_CTX_get0_param(context.get());
  X509_VERIFY_PARAM_set_time(parameters, static_cast<std::time_t>(now.ms / 1000));
  X509_VERIFY_PARAM_set_depth(parameters, deepest_chain);
  X509_VERIFY_PARAM_set_flags(parameters, X509_V_FLAG_X509_STRICT);
  const bool valid = X509_verify_cert(context.get()) == 1;
  const int error = X509_STORE_CTX_get_error(context.get());
  ERR_clear_error();
  if (!valid) return refused(info, why_not(error, leaf));
  const STACK_OF(X509)* chain = X509_STORE_CTX_get0_chain(context.get());
  for (int i = 1; i < sk_X509_num(chain); ++i)
    info.issuers.push_back(serial_of(sk_X509_value(chain, i)));
  if (trust.revoked.count(info.serial) != 0) return refused(info, "it was revoked");
  if (is_revoked(info, trust.revoked))
    return refused(info, "the issuing certificate that signed it was revoked");
  return info;
}

Result<CertificateInfo> read_certificate(std::string_view pem) {
  ZED_TRY(auto certificates, certificates_of(pem));
  return info_of(certificates.front().get());
}

Result<CertificateInfo> verify(std::string_view chain, const Trust& trust, WallTime now) {
  ZED_TRY(auto certificates, certificates_of(chain));
  std::unique_ptr<STACK_OF(X509), FreeStack> untrusted(sk_X509_new_null());
  for (const X509Ptr& one : certificates)
    sk_X509_push(untrusted.get(), one.get());
  return verify_chain(certificates.front().get(), untrusted.get(), trust, now);
}

}  // namespace zed::pki
