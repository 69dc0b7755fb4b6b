#include "spec/source.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "base/text.hpp"
#include "spec/cluster_file.hpp"

namespace zed::spec {
namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
constexpr std::string_view replacement = "\xEF\xBF\xBD";

// Faults kept beyond what is shown, so that sorting by position still shows the first ones.
constexpr std::size_t most_faults = 20 * most_diagnostics;

bool starts_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
}

// Between two counts of characters: positions cost at most this, in a file of one long line too.
constexpr std::size_t characters_block = 1024;

/// Characters that make text look like what it is not (CVE-2021-42574); Elixir refuses them too.
bool changes_direction(std::string_view character) {
  static constexpr std::array<std::string_view, 9> marks{
      "\u202A", "\u202B", "\u202C", "\u202D", "\u202E", "\u2066", "\u2067", "\u2068", "\u2069"};
  return std::find(marks.begin(), marks.end(), character) != marks.end();
}

}  // namespace

void Report::error(std::size_t offset, std::string message, std::string hint) {
  ++errors_;
  if (faults_.size() < most_faults)
    faults_.push_back({offset, std::move(message), std::move(hint), Severity::error});
}

bool Report::full() const {
  return errors_ >= most_faults / 2;
}

void Report::warning(std::size_t offset, std::string message, std::string hint) {
  if (faults_.size() < most_faults / 2)  // errors find room behind them
    faults_.push_back({offset, std::move(message), std::move(hint), Severity::warning});
}

std::size_t utf8_length(std::string_view text, std::size_t offset) {
  auto lead = static_cast<unsigned char>(text[offset]);
  std::size_t length = lead < 0x80 ? 1 : lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  return is_valid_utf8(text.substr(offset, length)) ? length : 0;
}

std::string quote(std::string_view text) {
  constexpr std::size_t longest = 60;
  std::string shown = "`";
  std::size_t i = 0;
  while (i < text.size() && i < longest) {
    std::size_t length = std::max<std::size_t>(1, utf8_length(text, i));
    auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x20 || byte == 0x7F)
      shown += byte == '\n' ? "\\n" : byte == '\t' ? "\\t" : percent_encode(text.substr(i, 1));
    else
      shown += text.substr(i, length);
    i += length;
  }
  return shown + (i < text.size() ? "…`" : "`");
}

Source::Source(std::string_view file, Report& report) {
  prepare(file, report);
  line_starts_.push_back(0);
  std::size_t characters = 0;
  for (std::size_t i = 0; i < text_.size(); ++i) {
    if (i % characters_block == 0) characters_before_.push_back(characters);
    if (starts_character(text_[i])) ++characters;
    if (text_[i] == '\n') line_starts_.push_back(i + 1);
  }
  characters_before_.push_back(characters);
}

std::size_t Source::characters_before(std::size_t offset) const {
  std::size_t block = offset / characters_block;
  auto begin = text_.begin() + static_cast<std::ptrdiff_t>(block * characters_block);
  auto end = text_.begin() + static_cast<std::ptrdiff_t>(offset);
  if (begin == end) return characters_before_[block];
  return characters_before_[block] +
         static_cast<std::size_t>(std::count_if(begin, end, starts_character));
}

void Source::prepare(std::string_view file, Report& report) {
  if (file.starts_with(byte_order_mark)) file.remove_prefix(byte_order_mark.size());
  text_.reserve(file.size());
  bool line_reported = false;  // one such fault a line: a binary file has thousands
  auto refuse = [&](std::string message, std::string hint) {
    if (!line_reported) report.error(text_.size(), std::move(message), std::move(hint));
    line_reported = true;
  };
  for (std::size_t i = 0; i < file.size();) {
    char c = file[i];
    std::size_t length = utf8_length(file, i);
    if (c == '\r' && i + 1 < file.size() && file[i + 1] == '\n') {
      ++i;
      continue;
    }
    if (c == '\n') line_reported = false;
    if (c == '\0') {
      refuse("a NUL byte in a text file", "remove it; is this a binary file?");
      text_ += ' ';
    } else if (length == 0) {
      refuse("byte 0x" + percent_encode(file.substr(i, 1)).substr(1) + " is not UTF-8",
             "save the file with the encoding UTF-8");
      text_ += replacement;
    } else {
      if (length == 3 && changes_direction(file.substr(i, length)))
        refuse("an invisible character that changes the direction of the text",
               "remove it: what people see would differ from what Zed reads");
      text_ += file.substr(i, length);
    }
    i += std::max<std::size_t>(1, length);
  }
}

Position Source::position(std::size_t offset) const {
  offset = std::min(offset, text_.size());
  auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  std::size_t column = characters_before(offset) - characters_before(*std::prev(after)) + 1;
  return {static_cast<int>(after - line_starts_.begin()), static_cast<int>(column)};
}

std::vector<Diagnostic> Source::diagnostics(const Report& report) const {
  std::vector<Fault> faults = report.faults_;
  std::stable_sort(faults.begin(), faults.end(),
                   [](const Fault& a, const Fault& b) { return a.offset < b.offset; });
  std::vector<Diagnostic> shown;
  std::set<std::size_t> reported;
  std::size_t hidden = 0;
  for (Fault& fault : faults) {
    if (fault.severity == Severity::error && !reported.insert(fault.offset).second) continue;
    if (shown.size() >= most_diagnostics) {
      ++hidden;
      continue;
    }
    shown.push_back(
        {fault.severity, position(fault.offset), std::move(fault.message), std::move(fault.hint)});
  }
  if (hidden == 0) return shown;
  // Those that are shown may all be warnings: the last line must still fail the file.
  shown.push_back(
      {report.failed() ? Severity::error : Severity::warning, shown.back().at,
       "more than " + plural(most_diagnostics, "diagnostic") + "; the rest is not shown",
       "correct the first ones and check again"});
  return shown;
}

}  // namespace zed::spec
