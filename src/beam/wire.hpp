#pragma once
// Big-endian numbers, as everything Erlang sends has them.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace zed::beam {

/// Appends the lowest `bytes` bytes of `number`, the highest first.
inline void put(std::string& out, std::uint64_t number, std::size_t bytes) {
  for (std::size_t i = bytes; i > 0; --i)
    out.push_back(static_cast<char>((number >> (8 * (i - 1))) & 0xFF));
}

/// Reads `size` (at most 8) bytes at `offset`, which the caller has checked to be there.
inline std::uint64_t get(std::span<const std::uint8_t> bytes, std::size_t offset,
                         std::size_t size) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < size; ++i)
    number = (number << 8) | bytes[offset + i];
  return number;
}

inline std::span<const std::uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}
inline std::string string_of(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Latin-1 is the first 256 characters of Unicode; older BEAMs and byte lists use it.
inline std::string utf8_of_latin1(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80) out.push_back(static_cast<char>(0xC0 | (byte >> 6)));
    out.push_back(byte < 0x80 ? c : static_cast<char>(0x80 | (byte & 0x3F)));
  }
  return out;
}

}  // namespace zed::beam
