#include "spec/diagnostic.hpp"

#include <algorithm>
#include <cstdint>

#include "base/text.hpp"
#include "spec/source.hpp"

namespace zed::spec {
namespace {

constexpr std::size_t widest_excerpt = 100;  // characters

/// Line `number` (from 1) without its line end.
std::string_view line_of(std::string_view text, int number) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  for (int line = 1; line < number && !text.empty(); ++line) {
    std::size_t end = text.find('\n');
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  text = text.substr(0, text.find('\n'));
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

/// Takes the first character; control characters and broken bytes become U+FFFD.
std::string take_character(std::string_view& line) {
  auto byte = static_cast<unsigned char>(line.front());
  std::size_t length = byte < 0x80 ? 1 : utf8_length(line, 0);
  bool visible = length > 0 && (byte >= 0x20 || byte == '\t') && byte != 0x7F;
  std::string character = visible ? std::string(line.substr(0, length)) : "\uFFFD";
  line.remove_prefix(std::max<std::size_t>(1, length));
  return character;
}

/// Whether terminals show it two columns wide (the bulk of Unicode's East Asian Wide and emoji).
bool is_wide(const std::string& character) {
  auto byte = [&](std::size_t i) {
    return i < character.size() ? static_cast<unsigned char>(character[i]) : 0U;
  };
  std::uint32_t code = 0;
  if (character.size() == 3) code = (byte(0) & 15) << 12 | (byte(1) & 63) << 6 | (byte(2) & 63);
  if (character.size() == 4)
    code = (byte(0) & 7) << 18 | (byte(1) & 63) << 12 | (byte(2) & 63) << 6 | (byte(3) & 63);
  return (code >= 0x1100 && code <= 0x115F) || (code >= 0x2E80 && code <= 0xA4CF) ||
         (code >= 0xAC00 && code <= 0xD7A3) || (code >= 0xF900 && code <= 0xFAFF) ||
         (code >= 0xFE30 && code <= 0xFE6F) || (code >= 0xFF00 && code <= 0xFF60) ||
         (code >= 0x1F300 && code <= 0x1F64F) || (code >= 0x1F680 && code <= 0x1F6FF) ||
         (code >= 0x1F900 && code <= 0x1F9FF) || (code >= 0x20000 && code <= 0x3FFFD);
}

/// The line and the caret under it; a tab above is a tab below, so that they stay aligned. Of a
/// long line only what is around the caret.
std::string excerpt(const Diagnostic& diagnostic, std::string_view text) {
  std::string_view line = line_of(text, diagnostic.at.line);
  auto caret = static_cast<std::size_t>(std::max(diagnostic.at.column, 1) - 1);
  std::size_t before = caret > widest_excerpt ? caret - widest_excerpt / 2 : 0;
  for (std::size_t i = 0; i < before && !line.empty(); ++i)
    take_character(line);
  std::string shown = before > 0 ? "…" : "";
  std::string below = before > 0 ? " " : "";
  std::size_t i = before;
  for (; i < before + widest_excerpt && !line.empty(); ++i) {
    std::string character = take_character(line);
    if (i < caret) below += character == "\t" ? "\t" : is_wide(character) ? "  " : " ";
    shown += character;
  }
  if (caret > i) below += ' ';  // behind the end of the line
  return shown + (line.empty() ? "" : "…") + "\n" + below + "^\n";
}

}  // namespace

bool has_errors(const std::vector<Diagnostic>& diagnostics) {
  return std::any_of(diagnostics.begin(), diagnostics.end(),
                     [](const Diagnostic& d) { return d.severity == Severity::error; });
}

std::string render(const std::vector<Diagnostic>& diagnostics, std::string_view file_name,
                   std::string_view text) {
  std::string out;
  for (const Diagnostic& d : diagnostics) {
    out += std::string(file_name) + ":" + std::to_string(d.at.line) + ":" +
           std::to_string(d.at.column) + ": " + std::string(to_string(d.severity)) + ": " +
           d.message + "\n" + excerpt(d, text);
    if (!d.hint.empty()) out += "hint: " + d.hint + "\n";
  }
  return out;
}

}  // namespace zed::spec
