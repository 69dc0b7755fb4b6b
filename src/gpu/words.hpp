#pragma once
// Inside the room: the words with which tools say a number, or that there is none.

#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/device.hpp"

namespace zed::gpu {

/// What a field's text means. `[N/A]`, `[Not Supported]` and their kin are the same.
struct Word {
  FieldState state = FieldState::value;
  GpuHealth health = GpuHealth::ok;  ///< lost or reset_required where the text says so
};
Word word_of(std::string_view text);

/// A whole number with nothing behind it; no sign of a locale is accepted.
std::optional<std::int64_t> whole_number(std::string_view text);
/// A decimal number, '.' being the point.
std::optional<double> decimal_number(std::string_view text);
/// "0x56a0" or "56a0".
std::optional<std::uint64_t> hexadecimal(std::string_view text);
/// "24564 MiB", "24480 MB", "4 GB", "1.5 GiB", "65536 KiB": a number and a unit, both kinds of unit
/// being powers of two, as the tools mean them. None for anything else or beyond 1 PiB.
std::optional<Bytes> size_of(std::string_view text);
/// A size in that many bytes; none below 0 or beyond 1 PiB.
std::optional<Bytes> bytes_of(std::int64_t count, std::int64_t unit);

/// Lines without their CR, at most 100,000.
std::vector<std::string_view> lines_of(std::string_view text);

/// A field from its text by `read` (text -> optional<T>); what cannot be read is an error.
template <class T, class Read>
Known<T> known(std::string_view text, const std::string& source, Read&& read) {
  Word word = word_of(text);
  if (word.state != FieldState::value) return {word.state, T{}, source};
  if (auto value = read(text)) return Known<T>::of(*value, source);
  return {FieldState::error, T{}, source};
}
Known<std::string> known_text(std::string_view text, const std::string& source);
Known<Bytes> known_mebibytes(std::string_view text, const std::string& source);

}  // namespace zed::gpu
