#pragma once
// The text of a cluster file made fit for the lexer, and the way back from offsets to positions.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "spec/diagnostic.hpp"

namespace zed::spec {

/// Something wrong at a byte offset of the prepared text.
struct Fault {
  std::size_t offset = 0;
  std::string message;
  std::string hint;
  Severity severity = Severity::error;
};

/// Collects faults; a file's first most_diagnostics become diagnostics, the rest is counted.
class Report {
public:
  void error(std::size_t offset, std::string message, std::string hint = {});
  void warning(std::size_t offset, std::string message, std::string hint = {});
  bool failed() const { return errors_ > 0; }
  /// So many errors that looking for more helps nobody.
  bool full() const;

private:
  friend class Source;
  std::vector<Fault> faults_;
  std::size_t errors_ = 0;
};

/// Without byte-order mark, with LF for CRLF, NUL as a space and every byte that is not UTF-8 as
/// U+FFFD. What was replaced, other than CRLF and the mark, is reported.
class Source {
public:
  Source(std::string_view file, Report& report);
  const std::string& text() const { return text_; }
  Position position(std::size_t offset) const;
  int line(std::size_t offset) const { return position(offset).line; }
  /// Sorted by position; the first fault of an offset stands for the others there.
  std::vector<Diagnostic> diagnostics(const Report& report) const;

private:
  void prepare(std::string_view file, Report& report);
  std::size_t characters_before(std::size_t offset) const;
  std::string text_;
  std::vector<std::size_t> line_starts_;
  std::vector<std::size_t> characters_before_;  ///< each block of the text
};

/// The length of the UTF-8 sequence that starts here, or 0 if none does.
std::size_t utf8_length(std::string_view text, std::size_t offset);

/// "`word`", cut at 60 bytes, control characters made visible: how messages quote the file.
std::string quote(std::string_view text);

}  // namespace zed::spec
