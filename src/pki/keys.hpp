#pragma once
// Private keys as PEM text (P-256), digests, and randomness from the operating system.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace zed::pki {

/// A new P-256 key, PKCS 8, NOT encrypted: for files of mode 0600. Errors: `internal`.
Result<std::string> make_key();

/// The key encrypted (PKCS 8, AES-256, PBKDF2 with 600,000 rounds): for what may be copied and
/// backed up. Errors: `invalid` for a passphrase of less than 8 or more than 1,000 bytes, and for a
/// text that is no key.
Result<std::string> encrypt_key(std::string_view key, std::string_view passphrase);
/// Errors: `refused` if the passphrase is wrong, `invalid` for a text that is no such key.
Result<std::string> decrypt_key(std::string_view encrypted, std::string_view passphrase);

/// A chain and its key as one text, and back: one file, so that a renewal replaces both at once or
/// neither. Erlang takes it for both, too.
struct ChainAndKey {
  std::string chain;
  std::string key;
};
/// Errors: `invalid` if either is missing.
Result<ChainAndKey> split_pem(std::string_view text);

/// 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view bytes);
/// In a time that depends on the lengths alone.
bool same_secret(std::string_view a, std::string_view b);

/// 16 bytes that nobody can guess.
using Nonce = std::array<std::uint8_t, 16>;
Nonce random_nonce();

}  // namespace zed::pki
