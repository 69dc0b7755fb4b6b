#pragma once
// Filter expressions of replication policies: which datasets travel.
//
//   size_gb < 20 and not (quantized == "q8_0" or version in ["1.0", "2.1"])
//
// Kleene's three-valued logic: a clause over a property that is not set, or not comparable, is
// unknown; `no and unknown` is no, `yes or unknown` is yes. Unknown excludes, with its reason.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/enum.hpp"
#include "base/result.hpp"
#include "core/dataset.hpp"

namespace zed::spec {

inline constexpr std::size_t longest_filter = 4096;  ///< bytes
inline constexpr std::size_t deepest_filter = 64;    ///< parentheses and `not`s

/// A number as written, with its unit if it has one: 20, 1.5, 20GB, 512MiB.
struct FilterNumber {
  double value = 0;
  std::string unit;  ///< "" | "B" | "MB" | "GiB" …, as spelled in units_of_size
  std::string text;  ///< as written, for messages
  friend bool operator==(const FilterNumber&, const FilterNumber&) = default;
};

using FilterLiteral = std::variant<FilterNumber, std::string>;

/// An expression as a flat tree: children are indexes into `nodes` and come before their parent, so
/// it is a plain value and needs no recursion to evaluate. An empty filter selects all.
struct Filter {
  enum class Kind { equal, unequal, less, at_most, more, at_least, in, not_, and_, or_ };
  struct Node {
    Kind kind = Kind::equal;
    std::string property;                 ///< comparisons and `in`
    std::vector<FilterLiteral> literals;  ///< one for comparisons, any number for `in`
    std::size_t left = 0;                 ///< `not`, `and`, `or`
    std::size_t right = 0;                ///< `and`, `or`
    friend bool operator==(const Node&, const Node&) = default;
  };
  std::vector<Node> nodes;  ///< the last one is the root

  /// Canonical text, fully parenthesised where needed; parse(str()) gives an equal filter.
  std::string str() const;
  /// Errors: `invalid` with the column within the text.
  static Result<Filter> parse(std::string_view text);
  friend bool operator==(const Filter&, const Filter&) = default;
};

/// Why a text is no filter, and where.
struct FilterFault {
  std::size_t offset = 0;  ///< in bytes from the start of the text
  std::string message;
  std::string hint;
};
std::variant<Filter, FilterFault> parse_filter(std::string_view text);

enum class Truth { no, unknown, yes };
constexpr auto enum_names(Truth) {
  return std::array<std::string_view, 3>{"no", "unknown", "yes"};
}

struct Verdict {
  Truth truth = Truth::yes;
  std::string
      reason;  ///< "size_gb is 140, not < 20", "quantized is not set"; "" for an empty filter
  bool selects() const { return truth == Truth::yes; }
};

/// A bare number compared with a property whose name says its unit (size_gb) has that unit. Decimal
/// units are powers of 1000 (20 GB = 20e9 bytes), binary ones of 1024. Strings compare as versions
/// if both look like one ("2.10" > "2.9"), else byte by byte.
Verdict evaluate(const Filter& filter, const Properties& properties);

}  // namespace zed::spec
