#pragma once
// Numbers that stand alone in a text.

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace zed {

/// The number that `text` is, all of it: digits in `base` (2 to 36; for whole numbers only), after
/// a '-' if Number has negative ones. None for anything else: an empty text, a space, a '+', a
/// number that Number cannot hold. A floating-point number may have a fraction and an exponent, or
/// be "inf" or "nan". The same in every locale.
template <class Number> std::optional<Number> parse_number(std::string_view text, int base = 10) {
  Number number{};
  const char* const last = text.data() + text.size();
  std::from_chars_result read{};
  if constexpr (std::is_floating_point_v<Number>)
    read = std::from_chars(text.data(), last, number);
  else
    read = std::from_chars(text.data(), last, number, base);
  if (read.ec != std::errc{} || read.ptr != last) return std::nullopt;
  return number;
}

}  // namespace zed
