// Strings and heredocs: what the text between the quotes means. Rules as in Elixir 1.14 (module
// :elixir_interpolation), except that the result must be UTF-8 without NUL.

#include <algorithm>
#include <optional>

#include "base/text.hpp"
#include "spec/syntax.hpp"

namespace zed::spec {
namespace {

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

void append_utf8(std::string& out, std::uint32_t code) {
  auto byte = [&out](std::uint32_t value) { out += static_cast<char>(value); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xC0 | code >> 6);
    byte(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    byte(0xE0 | code >> 12);
    byte(0x80 | (code >> 6 & 0x3F));
    byte(0x80 | (code & 0x3F));
  } else {
    byte(0xF0 | code >> 18);
    byte(0x80 | (code >> 12 & 0x3F));
    byte(0x80 | (code >> 6 & 0x3F));
    byte(0x80 | (code & 0x3F));
  }
}

/// Escapes of one string. Stops at the first fault.
class Unescaper {
public:
  explicit Unescaper(std::string_view raw) : raw_(raw) {}

  std::variant<std::string, Fault> run() {
    while (at_ < raw_.size() && !fault_) {
      if (raw_[at_] == '\\' && at_ + 1 < raw_.size())
        escape();
      else
        out_ += raw_[at_++];
    }
    if (fault_) return *fault_;
    return out_;
  }

private:
  void refuse(std::string message, std::string hint = {}) {
    fault_ = Fault{at_, std::move(message), std::move(hint)};
  }

  void escape() {
    char c = raw_[at_ + 1];
    if (c == 'x' || c == 'u') return numeric(c);
    if (c == '0') return refuse("`\\0` is a NUL byte, which no text may hold");
    static constexpr std::string_view letters = "abdefnrstv\n";
    static constexpr std::string_view meaning{"\a\b\x7f\x1b\f\n\r \t\v", 10};
    std::size_t which = letters.find(c);
    if (which == std::string_view::npos)
      out_ += c;
    else if (which < meaning.size())
      out_ += meaning[which];
    at_ += 2;
  }

  void numeric(char kind) {
    std::size_t begin = at_ + 2;
    bool braces = begin < raw_.size() && raw_[begin] == '{';
    if (braces) ++begin;
    std::size_t most = braces ? 6 : kind == 'x' ? 2 : 4;
    std::size_t end = begin;
    std::uint32_t code = 0;
    while (end < raw_.size() && end - begin < most && hex_value(raw_[end]) >= 0)
      code = code * 16 + static_cast<std::uint32_t>(hex_value(raw_[end++]));
    bool closed = !braces || (end < raw_.size() && raw_[end] == '}');
    if (end == begin || !closed || (!braces && end - begin < most))
      return refuse(kind == 'x' ? "`\\x` needs two hexadecimal digits"
                                : "`\\u` needs four hexadecimal digits, or some in braces",
                    "for a backslash write `\\\\`");
    bool surrogate = code >= 0xD800 && code <= 0xDFFF;
    if (code > 0x10FFFF || surrogate) return refuse("there is no such character");
    if (code == 0) return refuse("this is a NUL byte, which no text may hold");
    if (kind == 'x' && code > 0x7F)
      return refuse("a byte above 0x7F alone is not UTF-8", "write the character, or `\\u00E9`");
    append_utf8(out_, code);
    at_ = end + (braces ? 1 : 0);
  }

  std::string_view raw_;
  std::string out_;
  std::size_t at_ = 0;
  std::optional<Fault> fault_;
};

}  // namespace

std::variant<Decoded, Fault> decode_string(std::string_view token) {
  std::string_view raw = token.substr(1, token.size() - 2);
  auto text = Unescaper(raw).run();
  if (auto* fault = std::get_if<Fault>(&text)) {
    fault->offset += 1;
    return *fault;
  }
  return Decoded{std::get<std::string>(text), std::string(token)};
}

std::variant<Decoded, Fault> decode_heredoc(std::string_view token) {
  // """ to the end of its line; lines; indentation and """.
  std::size_t first_line = token.find('\n') + 1;
  std::size_t last_line = token.rfind('\n') + 1;
  std::size_t indent = token.size() - 3 - last_line;
  std::string raw;
  std::vector<std::size_t> line_offsets;  // in raw
  std::vector<std::size_t> token_offsets;
  for (std::size_t at = first_line; at < last_line;) {
    std::size_t end = token.find('\n', at) + 1;
    std::string_view line = token.substr(at, end - at);
    std::size_t blanks = std::min(line.find_first_not_of(" \t"), indent);
    line_offsets.push_back(raw.size());
    token_offsets.push_back(at + blanks);
    raw += line.substr(blanks);
    at = end;
  }
  auto text = Unescaper(raw).run();
  if (auto* fault = std::get_if<Fault>(&text)) {
    auto after = std::upper_bound(line_offsets.begin(), line_offsets.end(), fault->offset);
    auto line = static_cast<std::size_t>(after - line_offsets.begin()) - 1;
    fault->offset = token_offsets[line] + (fault->offset - line_offsets[line]);
    return *fault;
  }
  return Decoded{std::get<std::string>(text), raw};
}

}  // namespace zed::spec
