#pragma once
// Little-endian numbers and counted text, written to and read from a run of bytes.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/result.hpp"

namespace zed::store {

using ByteVector = std::vector<std::byte>;

class ByteWriter {
public:
  explicit ByteWriter(ByteVector& out) : out_(out) {}
  template <class T> void number(T value) {
    using U = std::make_unsigned_t<T>;
    U bits = static_cast<U>(value);
    for (std::size_t i = 0; i < sizeof(T); ++i)
      out_.push_back(static_cast<std::byte>((bits >> (8 * i)) & 0xff));
  }
  void raw(std::span<const std::byte> bytes) {
    out_.insert(out_.end(), bytes.begin(), bytes.end());
  }
  template <std::size_t N> void raw(const std::array<std::uint8_t, N>& bytes) {
    raw(std::as_bytes(std::span(bytes)));
  }
  /// At most 65535 bytes.
  void text(std::string_view text) {
    number(static_cast<std::uint16_t>(text.size()));
    raw(std::as_bytes(std::span(text.data(), text.size())));
  }

private:
  ByteVector& out_;
};

/// Every read past the end is `corrupt`; nothing is allocated beyond the bytes that are there.
class ByteReader {
public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  bool empty() const { return bytes_.empty(); }
  std::size_t left() const { return bytes_.size(); }

  template <class T> Status number(T& value) {
    ZED_TRY(auto bytes, take(sizeof(T)));
    std::make_unsigned_t<T> bits = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i)
      bits = static_cast<std::make_unsigned_t<T>>(
          bits | (static_cast<std::make_unsigned_t<T>>(bytes[i]) << (8 * i)));
    value = static_cast<T>(bits);
    return {};
  }
  template <std::size_t N> Status raw(std::array<std::uint8_t, N>& out) {
    ZED_TRY(auto bytes, take(N));
    std::memcpy(out.data(), bytes.data(), N);
    return {};
  }
  Status text(std::string& out) {
    std::uint16_t size = 0;
    ZED_CHECK(number(size));
    ZED_TRY(auto bytes, take(size));
    out.resize(size);
    if (size != 0) std::memcpy(out.data(), bytes.data(), size);
    return {};
  }

private:
  Result<std::span<const std::byte>> take(std::size_t size) {
    if (size > bytes_.size())
      return fail(ErrorCode::corrupt, "the record ends before its last field");
    auto taken = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return taken;
  }
  std::span<const std::byte> bytes_;
};

}  // namespace zed::store
