#pragma once
// Reads a header front to back in bounded memory. Inside the room only.

#include <array>
#include <bit>
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "model/byte_source.hpp"

namespace zed::model {

/// A position in a source, with a buffer of 64 KiB. Every read is checked against the size of the
/// source first, so that a length from the file never becomes an allocation by itself.
class Cursor {
public:
  /// `budget`: how many bytes may be read altogether (skipping is free), so that a hostile file of
  /// terabytes ends in an error instead of an hour of reading.
  Cursor(ByteSource& source, std::uint64_t budget) : source_(source), budget_(budget) {}

  std::uint64_t position() const { return position_; }
  std::uint64_t left() const { return source_.size() - position_; }
  void set_big_endian(bool big) { big_endian_ = big; }

  /// Errors of all reads: `corrupt` if the source ends before, `invalid` if the budget is spent,
  /// and those of the source.
  Status read(std::span<std::byte> into);
  Status skip(std::uint64_t count);

  template <std::unsigned_integral T> Result<T> number() {
    std::array<std::byte, sizeof(T)> bytes{};
    ZED_CHECK(read(bytes));
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      const std::size_t at = big_endian_ ? i : sizeof(T) - 1 - i;
      value = (value << 8U) | std::to_integer<std::uint64_t>(bytes[at]);
    }
    return static_cast<T>(value);
  }

  /// `length` bytes as text, at most `most` of them kept; the rest is skipped.
  Result<std::string> text(std::uint64_t length, std::size_t most);

private:
  Status refill();

  ByteSource& source_;
  std::uint64_t budget_;
  std::uint64_t position_ = 0;
  std::vector<std::byte> buffer_;
  std::uint64_t buffer_start_ = 0;
  bool big_endian_ = false;
};

}  // namespace zed::model
