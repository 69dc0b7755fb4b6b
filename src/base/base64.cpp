#include "base/base64.hpp"

#include <array>
#include <cstdint>

namespace zed {
namespace {

constexpr std::string_view alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t no_digit = 0xFF;

constexpr std::array<std::uint8_t, 256> make_digits() {
  std::array<std::uint8_t, 256> digits{};
  for (auto& digit : digits)
    digit = no_digit;
  for (std::size_t i = 0; i < alphabet.size(); ++i)
    digits[static_cast<unsigned char>(alphabet[i])] = static_cast<std::uint8_t>(i);
  return digits;
}

std::uint32_t byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

tl::unexpected<Error> not_base64() {
  return fail(ErrorCode::invalid, "this is not base64 (RFC 4648, with padding)");
}

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t have = bytes.size() - at < 3 ? bytes.size() - at : 3;
    std::uint32_t group = byte_at(bytes, at) << 16;
    if (have > 1) group |= byte_at(bytes, at + 1) << 8;
    if (have > 2) group |= byte_at(bytes, at + 2);
    text += alphabet[group >> 18];
    text += alphabet[(group >> 12) & 63];
    text += have > 1 ? alphabet[(group >> 6) & 63] : '=';
    text += have > 2 ? alphabet[group & 63] : '=';
  }
  return text;
}

Result<std::string> from_base64(std::string_view text, std::size_t limit) {
  static constexpr auto digits = make_digits();
  if (text.size() % 4 != 0) return not_base64();
  std::size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=')
    ++padding;
  const std::size_t size = text.size() / 4 * 3 - padding;
  if (size > limit)
    return fail(ErrorCode::invalid, "base64 of " + std::to_string(size) + " bytes: at most " +
                                        std::to_string(limit) + " are taken");
  std::string bytes;
  bytes.reserve(size);
  std::uint32_t bits = 0;
  int have = 0;
  for (char c : text.substr(0, text.size() - padding)) {
    const std::uint8_t digit = digits[static_cast<unsigned char>(c)];
    if (digit == no_digit) return not_base64();
    bits = (bits << 6) | digit;
    have += 6;
    if (have < 8) continue;
    have -= 8;
    bytes += static_cast<char>((bits >> have) & 0xFF);
  }
  if ((bits & ((1U << have) - 1)) != 0) return not_base64();
  return bytes;
}

}  // namespace zed
