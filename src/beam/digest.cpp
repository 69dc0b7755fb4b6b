#include "beam/digest.hpp"

#include <string>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "base/result.hpp"

namespace zed::beam {

Digest challenge_digest(std::string_view cookie, std::uint32_t challenge) {
  const std::string text = std::string(cookie) + std::to_string(challenge);
  Digest digest{};
  unsigned int size = 0;
  const int done = EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_md5(), nullptr);
  // Fails only where MD5 is switched off (a FIPS provider), where no BEAM could talk either.
  ZED_ASSERT(done == 1 && size == digest.size());
  return digest;
}

bool same_digest(const Digest& a, const Digest& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace zed::beam
