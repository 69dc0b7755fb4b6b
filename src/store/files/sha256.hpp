#pragma once
// SHA-256 by OpenSSL, in pieces.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

struct evp_md_ctx_st;

namespace zed::store {

using Digest = std::array<std::uint8_t, 32>;

/// Feed pieces, then finish() once.
class Sha256 {
public:
  Sha256();
  void update(std::span<const std::byte> bytes);
  Digest finish();

private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

Digest sha256(std::span<const std::byte> bytes);
/// 64 lower-case hexadecimal digits.
std::string hex_of(const Digest& digest);

}  // namespace zed::store
