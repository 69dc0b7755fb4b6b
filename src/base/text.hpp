#pragma once
// Small text functions that several rooms need.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"

namespace zed {

std::vector<std::string> split(std::string_view text, char separator);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::string_view trim(std::string_view text);
std::string lower(std::string_view text);
bool is_valid_utf8(std::string_view text);

/// Printable ASCII without '%', so that a value survives `zfs -H`, tabs and newlines included.
std::string percent_encode(std::string_view text);
/// Errors: `corrupt` for a '%' without two hexadecimal digits.
Result<std::string> percent_decode(std::string_view text);

/// "2024-04-13T10:00:00.123Z".
std::string to_iso8601(WallTime time);

/// Damerau-Levenshtein distance with transpositions of neighbours.
std::size_t edit_distance(std::string_view a, std::string_view b);
/// The word nearest to `wrong` if it is near enough to be a slip (a third of its length, at least
/// 1).
std::optional<std::string> nearest_word(std::string_view wrong,
                                        const std::vector<std::string>& known);

/// "1.4 GiB", "312 B": binary units, three significant digits.
std::string show(Bytes bytes);
/// "850 ms", "12 s", "3 min 20 s", "2 h 5 min".
std::string show(Millis duration);

/// "word" or "words" by number: plural(2, "node") == "2 nodes".
std::string plural(std::size_t count, std::string_view noun);

}  // namespace zed
