#pragma once
// INTERNAL to src/pki and src/net/tls*.cpp: owners of OpenSSL's objects, and its errors as ours.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "base/result.hpp"
#include "pki/certificate.hpp"

namespace zed::pki {

template <auto Free> struct Freed {
  template <class T> void operator()(T* object) const { Free(object); }
};
using X509Ptr = std::unique_ptr<X509, Freed<X509_free>>;
using X509ReqPtr = std::unique_ptr<X509_REQ, Freed<X509_REQ_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using BioPtr = std::unique_ptr<BIO, Freed<BIO_free>>;

/// A failure inside OpenSSL, with the first reason that it queued; empties its queue.
Error openssl_error(ErrorCode code, const std::string& what);

/// All certificates of a PEM text, in order. Errors: `invalid`, if there is none or more than 8.
Result<std::vector<X509Ptr>> certificates_of(std::string_view pem);
/// A private key without a passphrase. Errors: `invalid`.
Result<KeyPtr> key_of(std::string_view pem);
std::string pem_of(X509* certificate);
/// What a BIO in memory holds.
std::string text_of(BIO* memory);

/// The certificate's facts. Errors: `refused` for one that is not Zed's (no zed:node, zed:role, or
/// the two disagree); certificates of authorities have neither and are read as such.
Result<CertificateInfo> info_of(X509* certificate);

/// As verify() below, of objects that TLS already has. `untrusted` may hold the leaf too.
Result<CertificateInfo> verify_chain(X509* leaf, STACK_OF(X509) * untrusted, const Trust& trust,
                                     WallTime now);

}  // namespace zed::pki
