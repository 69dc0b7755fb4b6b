#include "store/files/sha256.hpp"

#include <openssl/evp.h>

#include "base/result.hpp"

namespace zed::store {

void Sha256::Free::operator()(evp_md_ctx_st* context) const {
  EVP_MD_CTX_free(context);
}

// The calls below fail only where OpenSSL has no memory or no SHA-256, which nothing can go on
// without.
Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  ZED_ASSERT(context_ != nullptr);
  ZED_ASSERT(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
}

void Sha256::update(std::span<const std::byte> bytes) {
  ZED_ASSERT(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
}

Digest Sha256::finish() {
  Digest digest{};
  unsigned int size = 0;
  ZED_ASSERT(EVP_DigestFinal_ex(context_.get(), digest.data(), &size) == 1);
  ZED_ASSERT(size == digest.size());
  return digest;
}

Digest sha256(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

std::string hex_of(const Digest& digest) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  text.reserve(digest.size() * 2);
  for (std::uint8_t byte : digest) {
    text.push_back(digits[byte >> 4]);
    text.push_back(digits[byte & 15]);
  }
  return text;
}

}  // namespace zed::store
