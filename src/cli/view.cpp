#include "cli/view.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.hpp"

namespace zed::cli {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";
constexpr std::string_view ellipsis = "\xE2\x80\xA6";

struct Character {
  char32_t code = 0;
  std::size_t size = 1;
  bool valid = true;
};

Character character_at(std::string_view text, std::size_t at) {
  const auto byte = [&text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) return {first, 1, true};
  const std::size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || at + size > text.size() ||
      !is_valid_utf8(text.substr(at, size)))
    return {0xFFFD, 1, false};
  char32_t code = first & (0x7FU >> size);
  for (std::size_t i = 1; i < size; ++i)
    code = (code << 6) | (byte(at + i) & 0x3FU);
  return {code, size, true};
}

/// C0, DEL, C1, and what reorders or hides text (bidirectional controls, zero-width, line
/// separators).
bool is_control(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || (c >= 0x200B && c <= 0x200F) ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2060 && c <= 0x2069) || c == 0xFEFF;
}

struct Range {
  char32_t first;
  char32_t last;
};

std::size_t width_of(char32_t c) {
  if (c >= 0x300 && c <= 0x36F) return 0;
  constexpr std::array<Range, 9> wide{{{0x1100, 0x115F},
                                       {0x2E80, 0xA4CF},
                                       {0xAC00, 0xD7A3},
                                       {0xF900, 0xFAFF},
                                       {0xFE30, 0xFE6F},
                                       {0xFF00, 0xFF60},
                                       {0xFFE0, 0xFFE6},
                                       {0x1F300, 0x1FAFF},
                                       {0x20000, 0x3FFFD}}};
  const bool is_wide = std::any_of(wide.begin(), wide.end(), [c](const Range& range) {
    return c >= range.first && c <= range.last;
  });
  return is_wide ? 2 : 1;
}

/// The length of "\x1b[31;1m" at that place, or 0.
std::size_t colour_sequence(std::string_view text, std::size_t at) {
  if (text.substr(at, 2) != "\x1b[") return 0;
  const std::size_t end = text.find_first_not_of("0123456789;", at + 2);
  return end != std::string_view::npos && end - at < 32 && text[end] == 'm' ? end + 1 - at : 0;
}

}  // namespace

std::string styled(std::string_view text, Style style, const View& view) {
  const char* code = nullptr;
  switch (style) {
  case Style::plain: break;
  case Style::strong: code = "1"; break;
  case Style::faint: code = "2"; break;
  case Style::good: code = "32"; break;
  case Style::warning: code = "33"; break;
  case Style::bad: code = "31"; break;
  }
  if (code == nullptr || !view.colour || text.empty()) return std::string(text);
  return "\x1b[" + std::string(code) + "m" + std::string(text) + "\x1b[0m";
}

std::string printable(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const Character c = character_at(text, at);
    if (c.code == '\n' || c.code == '\t' || c.code == '\r')
      result += ' ';
    else if (!c.valid || is_control(c.code))
      result += replacement;
    else
      result += text.substr(at, c.size);
    at += c.size;
  }
  return result;
}

std::string printable_log(std::string_view text, bool colour) {
  std::string result;
  bool coloured = false;
  // What a progress bar overwrote with carriage returns is of no use in a log: the last state is.
  const std::size_t last_return = text.substr(0, text.empty() ? 0 : text.size() - 1).rfind('\r');
  if (last_return != std::string_view::npos) text.remove_prefix(last_return + 1);
  for (std::size_t at = 0; at < text.size();) {
    if (const std::size_t sequence = colour_sequence(text, at); sequence > 0) {
      if (colour) result += text.substr(at, sequence);
      coloured = coloured || colour;
      at += sequence;
      continue;
    }
    const Character c = character_at(text, at);
    if (c.code == '\t')
      result += '\t';
    else if (c.code != '\r')
      result += printable(text.substr(at, c.size));
    at += c.size;
  }
  return coloured ? result + "\x1b[0m" : result;
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Character c = character_at(text, at);
    width += width_of(c.code);
    at += c.size;
  }
  return width;
}

std::string fitted(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  if (width == 0) return {};
  std::size_t taken = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    const Character c = character_at(text, at);
    if (taken + width_of(c.code) > width - 1) break;
    taken += width_of(c.code);
    at += c.size;
  }
  return std::string(text.substr(0, at)) + std::string(ellipsis);
}

std::string at(std::string_view snapshot) {
  if (!snapshot.empty() && snapshot.front() == '@') snapshot.remove_prefix(1);
  return "@" + std::string(snapshot);
}

std::string gpu_name(std::string_view model, const View& view) {
  if (view.wide) return std::string(model);
  for (std::string_view prefix :
       std::initializer_list<std::string_view>{"NVIDIA ", "GeForce ", "AMD ", "Apple "})
    if (model.substr(0, prefix.size()) == prefix) model.remove_prefix(prefix.size());
  return std::string(model);
}

std::string brief(Millis duration) {
  const std::string text = show(duration);
  const std::size_t second_unit = text.find(' ', text.find(' ') + 1);
  return text.substr(0, second_unit);
}

std::string ago(WallTime time, const View& view) {
  if (time.ms == 0) return "-";
  const Millis passed{view.now.ms - time.ms};
  // Clocks of two machines differ a little; the future is "now".
  if (passed.value < 1000) return "now";
  return brief(passed) + " ago";
}

std::string clock_text(WallTime time, const View& view) {
  std::string text = to_iso8601({time.ms + view.utc_offset_s * 1000});
  text = text.substr(0, 19);
  if (text.size() > 10) text[10] = ' ';
  return text;
}

}  // namespace zed::cli
