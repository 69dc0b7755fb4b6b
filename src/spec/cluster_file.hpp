#pragma once
// The cluster file: text in, the declared fleet or every reason why not out. Pure.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/cluster.hpp"
#include "spec/diagnostic.hpp"

namespace zed::spec {

inline constexpr std::size_t largest_file = std::size_t{4} << 20;  ///< bytes
inline constexpr std::size_t deepest_nesting = 64;    ///< blocks, lists and parentheses together
inline constexpr std::size_t most_diagnostics = 100;  ///< a file's; the rest is counted

struct Checked {
  std::optional<Cluster> cluster;       ///< none if there is an error
  std::vector<Diagnostic> diagnostics;  ///< all of the file, by position
};

/// Lexes, parses and validates. A relative `file` or `code` stays as written: it is relative to the
/// folder of the cluster file, which the caller knows.
Checked check(std::string_view text);

struct Formatted {
  std::optional<std::string> text;      ///< none if the text does not parse
  std::vector<Diagnostic> diagnostics;  ///< syntax errors only: a file in progress can be formatted
};

/// The canonical layout. check(*format(t).text) gives the same cluster as check(t); formatting
/// twice changes nothing; comments and (single) blank lines stay.
Formatted format(std::string_view text);

}  // namespace zed::spec
