#pragma once
// A command line as words, split as a POSIX shell would, with no expansion of any kind.

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace zed::spec {

struct Words {
  std::vector<std::string> words;
  /// The first unquoted character that only a shell acts upon (| & ; < > $ ` *), or '\0'.
  char shell_character = '\0';
};

struct WordsFault {
  std::size_t offset = 0;  ///< of the quote that is not closed, or the backslash at the end
  std::string message;
};

/// Quotes '…' and "…" and backslash as in POSIX.1-2017, XCU 2.2; words are separated by blanks and
/// newlines.
std::variant<Words, WordsFault> split_words(std::string_view text);

}  // namespace zed::spec
