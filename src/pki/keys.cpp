#include "pki/keys.hpp"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/rand.h>

#include "pki/openssl_impl.hpp"

namespace zed::pki {
namespace {

constexpr int rounds = 600'000;  // OWASP's figure for PBKDF2 with HMAC-SHA-256
constexpr std::size_t shortest_passphrase = 8, longest_passphrase = 1000;

using Pkcs8Ptr = std::unique_ptr<PKCS8_PRIV_KEY_INFO, Freed<PKCS8_PRIV_KEY_INFO_free>>;
using SigPtr = std::unique_ptr<X509_SIG, Freed<X509_SIG_free>>;

std::string hex(const std::uint8_t* bytes, std::size_t size) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < size; ++i) {
    text += digits[bytes[i] >> 4];
    text += digits[bytes[i] & 15];
  }
  return text;
}

Result<std::string> pem_of_key(EVP_PKEY* key) {
  BioPtr out(BIO_new(BIO_s_secmem()));
  if (PEM_write_bio_PKCS8PrivateKey(out.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1)
    return fail(openssl_error(ErrorCode::internal, "write a private key"));
  return text_of(out.get());
}

}  // namespace

Result<std::string> make_key() {
  KeyPtr key(EVP_EC_gen("P-256"));
  if (!key) return fail(openssl_error(ErrorCode::internal, "make a private key"));
  return pem_of_key(key.get());
}

Result<std::string> encrypt_key(std::string_view key, std::string_view passphrase) {
  if (passphrase.size() < shortest_passphrase || passphrase.size() > longest_passphrase)
    return fail(ErrorCode::invalid, "a passphrase has 8 to 1000 bytes");
  ZED_TRY(KeyPtr plain, key_of(key));
  Pkcs8Ptr info(EVP_PKEY2PKCS8(plain.get()));
  std::unique_ptr<X509_ALGOR, Freed<X509_ALGOR_free>> algorithm(
      PKCS5_pbe2_set_iv(EVP_aes_256_cbc(), rounds, nullptr, 0, nullptr, NID_hmacWithSHA256));
  SigPtr sealed(info && algorithm
                    ? PKCS8_set0_pbe(passphrase.data(), static_cast<int>(passphrase.size()),
                                     info.get(), algorithm.get())
                    : nullptr);
  if (!sealed) return fail(openssl_error(ErrorCode::internal, "encrypt a private key"));
  (void)algorithm.release();  // PKCS8_set0_pbe owns it now
  BioPtr out(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_PKCS8(out.get(), sealed.get()) != 1)
    return fail(openssl_error(ErrorCode::internal, "write an encrypted key"));
  return text_of(out.get());
}

Result<std::string> decrypt_key(std::string_view encrypted, std::string_view passphrase) {
  BioPtr in(BIO_new_mem_buf(encrypted.data(), static_cast<int>(encrypted.size())));
  SigPtr sealed(PEM_read_bio_PKCS8(in.get(), nullptr, nullptr, nullptr));
  if (!sealed) {
    ERR_clear_error();
    return fail(ErrorCode::invalid, "this is no encrypted private key");
  }
  Pkcs8Ptr info(
      PKCS8_decrypt(sealed.get(), passphrase.data(), static_cast<int>(passphrase.size())));
  KeyPtr key(info ? EVP_PKCS82PKEY(info.get()) : nullptr);
  ERR_clear_error();
  if (!key)
    return fail(ErrorCode::refused, "the passphrase does not open this key",
                "there is no way around it: find the passphrase, or make a new fleet");
  return pem_of_key(key.get());
}

Result<ChainAndKey> split_pem(std::string_view text) {
  const auto key = text.find("-----BEGIN PRIVATE KEY-----");
  const auto chain = text.find("-----BEGIN CERTIFICATE-----");
  if (key == std::string_view::npos || chain == std::string_view::npos || chain > key)
    return fail(ErrorCode::invalid, "this file holds no certificate with its key behind it");
  return ChainAndKey{std::string(text.substr(0, key)), std::string(text.substr(key))};
}

std::string sha256_hex(std::string_view bytes) {
  std::array<std::uint8_t, 32> digest{};
  const int done =
      EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, EVP_sha256(), nullptr);
  ZED_ASSERT(done == 1);
  return hex(digest.data(), digest.size());
}

bool same_secret(std::string_view a, std::string_view b) {
  return !a.empty() && a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Nonce random_nonce() {
  Nonce nonce{};
  ZED_ASSERT(RAND_bytes(nonce.data(), static_cast<int>(nonce.size())) == 1);
  return nonce;
}

}  // namespace zed::pki
