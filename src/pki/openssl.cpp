#include <openssl/err.h>
#include <openssl/pem.h>

#include "pki/openssl_impl.hpp"

namespace zed::pki {
namespace {

constexpr std::size_t most_certificates = 8;

int no_passphrase(char*, int, int, void*) {
  return 0;  // never ask on the terminal
}

}  // namespace

Error openssl_error(ErrorCode code, const std::string& what) {
  const unsigned long first = ERR_get_error();
  ERR_clear_error();
  const char* reason = first == 0 ? nullptr : ERR_reason_error_string(first);
  return {code, what + " failed" + (reason == nullptr ? "" : ": " + std::string(reason)), {}, {}};
}

Result<std::vector<X509Ptr>> certificates_of(std::string_view pem) {
  BioPtr in(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  std::vector<X509Ptr> found;
  while (X509* one = PEM_read_bio_X509(in.get(), nullptr, no_passphrase, nullptr)) {
    found.emplace_back(one);
    if (found.size() > most_certificates)
      return fail(ErrorCode::invalid, "more certificates than a chain can have");
  }
  ERR_clear_error();  // the end of the text is an error to OpenSSL
  if (found.empty()) return fail(ErrorCode::invalid, "there is no certificate in this text");
  return found;
}

Result<KeyPtr> key_of(std::string_view pem) {
  BioPtr in(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  KeyPtr key(PEM_read_bio_PrivateKey(in.get(), nullptr, no_passphrase, nullptr));
  ERR_clear_error();
  if (!key) return fail(ErrorCode::invalid, "there is no private key in this text");
  return key;
}

std::string text_of(BIO* memory) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory, &data);
  return size > 0 ? std::string(data, static_cast<std::size_t>(size)) : std::string();
}

std::string pem_of(X509* certificate) {
  BioPtr out(BIO_new(BIO_s_mem()));
  ZED_ASSERT(PEM_write_bio_X509(out.get(), certificate) == 1);
  return text_of(out.get());
}

}  // namespace zed::pki
