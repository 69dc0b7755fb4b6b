#pragma once
// What is wrong with a cluster file, where, and what to do about it.

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum.hpp"

namespace zed::spec {

enum class Severity { error, warning };
constexpr auto enum_names(Severity) {
  return std::array<std::string_view, 2>{"error", "warning"};
}

/// Both count from 1; columns count characters, a tab is one.
struct Position {
  int line = 1;
  int column = 1;
  friend auto operator<=>(const Position&, const Position&) = default;
};

struct Diagnostic {
  Severity severity = Severity::error;
  Position at;
  std::string message;  ///< one sentence, no trailing full stop
  std::string hint;     ///< what to do next; may be empty

  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("severity", self.severity);
    visit("line", self.at.line);
    visit("column", self.at.column);
    visit("message", self.message);
    visit("hint", self.hint);
  }
  friend bool operator==(const Diagnostic&, const Diagnostic&) = default;
};

/// Whether one of them is an error; a file with only warnings passes.
bool has_errors(const std::vector<Diagnostic>& diagnostics);

/// The text form, for people and editors:
///
///   fleet.exs:4:5: error: unknown verb `nod` in `deploy`
///       nod :workstation do
///       ^
///   hint: did you mean `node`?
///
/// `text` is the file that was checked. Long lines are cut around the caret; bytes that are no text
/// are shown as U+FFFD.
std::string render(const std::vector<Diagnostic>& diagnostics, std::string_view file_name,
                   std::string_view text);

}  // namespace zed::spec
