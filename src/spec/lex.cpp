#include "spec/lex.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace zed::spec {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_word_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_word_character(char c) {
  return is_word_start(c) || is_digit(c);
}

namespace {

bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}

bool is_name(std::string_view name, bool at_allowed) {
  if (name.empty() || !is_word_start(name.front())) return false;
  if (name.back() == '?' || name.back() == '!') name.remove_suffix(1);
  return std::all_of(name.begin(), name.end(),
                     [&](char c) { return is_word_character(c) || (at_allowed && c == '@'); });
}

class Lexer {
public:
  /// `one_line_strings`: a string ends where its line ends, closed or not.
  Lexer(std::string_view text, bool one_line_strings)
      : text_(text), one_line_strings_(one_line_strings) {}

  Tokens run() {
    while (at_ < text_.size() && !result_.cut) {
      bool space = skip_blanks();
      if (at_ >= text_.size()) break;
      space_before_ = space;
      start_ = at_;
      next();
      if (result_.tokens.size() >= most_tokens) {
        result_.cut = true;
        fault_at(start_, "the file has more than a million words and signs",
                 "is this a cluster file?");
      }
    }
    start_ = at_ = result_.cut ? start_ : text_.size();
    push(Token::Kind::end_of_file);
    return std::move(result_);
  }
  bool string_ran_to_the_end() const { return string_ran_to_the_end_; }

private:
  using Kind = Token::Kind;

  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool ahead(std::string_view word) const { return text_.substr(at_).starts_with(word); }

  bool skip_blanks() {
    std::size_t before = at_;
    while (peek() == ' ' || peek() == '\t')
      ++at_;
    return at_ > before;
  }

  void push(Kind kind) {
    result_.tokens.push_back({kind, space_before_, static_cast<std::uint32_t>(start_),
                              static_cast<std::uint32_t>(at_ - start_)});
  }
  void fault_at(std::size_t offset, std::string message, std::string hint) {
    result_.faults.try_emplace(start_, Fault{offset, std::move(message), std::move(hint)});
  }
  void refuse(Kind kind, std::string message, std::string hint = {}) {
    fault_at(start_, std::move(message), std::move(hint));
    push(kind);
  }
  void single(Kind kind) {
    ++at_;
    push(kind);
  }

  void next() {
    char c = peek();
    switch (c) {
    case '\n': return single(Kind::newline);
    case ';': return single(Kind::semicolon);
    case ',': return single(Kind::comma);
    case '(': return single(Kind::open_paren);
    case ')': return single(Kind::close_paren);
    case '[': return single(Kind::open_list);
    case ']': return single(Kind::close_list);
    case '#': return comment();
    case '"': return string_or_key();
    case '\'': return charlist();
    case ':': return atom();
    case '@': return attribute();
    case '~': return sigil();
    case '?': return character();
    default: break;
    }
    bool negative = c == '-' && is_digit(peek(1));
    if (is_digit(c) || negative) return number();
    if (is_word_start(c)) return is_upper(c) ? alias() : word();
    other();
  }

  void comment() {
    at_ = std::min(text_.find('\n', at_), text_.size());
    push(Kind::comment);
  }

  void word() {
    std::size_t end = at_;
    while (end < text_.size() && is_word_character(text_[end]))
      ++end;
    if (end < text_.size() && (text_[end] == '?' || text_[end] == '!')) ++end;
    std::string_view name = text_.substr(at_, end - at_);
    at_ = end;
    if (key_follows()) return key(Kind::key);
    if (name == "do") return push(Kind::do_);
    if (name == "end") return push(Kind::end_);
    if (name == "fn")
      return refuse(Kind::fn_, "functions are not allowed: a cluster file is data, not a program");
    if (name == "true" || name == "false" || name == "nil") return push(Kind::literal);
    static constexpr std::array<std::string_view, 8> reserved{"and",  "or",     "not",   "in",
                                                              "when", "rescue", "catch", "else"};
    if (std::find(reserved.begin(), reserved.end(), name) != reserved.end())
      return refuse(Kind::operator_, quote(name) + " is not allowed: a cluster file is data, not a "
                                                   "program");
    push(Kind::word);
  }

  bool key_follows() const { return peek() == ':' && peek(1) != ':'; }

  void key(Kind kind) {
    std::string_view name = text_.substr(start_, at_ - start_);
    ++at_;
    char after = peek();
    if (after != ' ' && after != '\t' && after != '\n' && after != '\0')
      return refuse(Kind::invalid, "no space after " + quote(std::string(name) + ":"),
                    "write " + quote(std::string(name) + ": value"));
    push(kind);
  }

  void alias() {
    for (;;) {
      while (is_word_character(peek()))
        ++at_;
      if (peek() != '.' || !is_upper(peek(1))) break;
      ++at_;
    }
    std::string_view name = text_.substr(start_, at_ - start_);
    if (key_follows() && name.find('.') == std::string_view::npos) return key(Kind::key);
    push(Kind::alias);
  }

  void number() {
    if (peek() == '-') ++at_;
    bool radix = peek() == '0' && (peek(1) == 'x' || peek(1) == 'b' || peek(1) == 'o');
    bool legal = !radix && digits();
    Kind kind = Kind::integer;
    if (legal && peek() == '.' && is_digit(peek(1))) {
      ++at_;
      kind = Kind::real;
      legal = digits();
      if (legal && (peek() == 'e' || peek() == 'E')) {
        ++at_;
        if (peek() == '+' || peek() == '-') ++at_;
        legal = digits();
      }
    }
    if (legal && !is_word_character(peek())) return push(kind);
    while (is_word_character(peek()))
      ++at_;
    std::string_view written = text_.substr(start_, at_ - start_);
    if (radix)
      return refuse(Kind::invalid, quote(written) + " is hexadecimal, octal or binary",
                    "write the number in decimal");
    bool underscore = written.find('_') != std::string_view::npos;
    refuse(Kind::invalid, quote(written) + " is not a number",
           underscore ? "underscores stand between digits: 1_000"
                      : "with a unit it is a text: \"" + std::string(written.substr(0, 60)) + "\"");
  }

  /// digits with single underscores between them
  bool digits() {
    if (!is_digit(peek())) return false;
    while (is_digit(peek()) || (peek() == '_' && is_digit(peek(1))))
      ++at_;
    return true;
  }

  void atom() {
    ++at_;
    if (peek() == '"') {
      if (string_body()) return push(Kind::quoted_atom);
      return push(Kind::invalid);
    }
    if (peek() == '\'') {
      skip_to_quote('\'');
      return refuse(Kind::invalid, "a name in single quotes", "write :\"name\"");
    }
    if (is_word_start(peek())) {
      while (is_word_character(peek()) || peek() == '@')
        ++at_;
      if (peek() == '?' || peek() == '!') ++at_;
      return push(Kind::atom);
    }
    if (peek() == ':') ++at_;
    if (at_ - start_ == 2) return refuse(Kind::operator_, operator_message("::"));
    while (is_word_character(peek()) || static_cast<unsigned char>(peek()) >= 0x80)
      ++at_;
    refuse(Kind::invalid,
           at_ - start_ > 1
               ? quote(text_.substr(start_, at_ - start_)) + " needs quotes to be a name"
               : std::string("`:` starts a name, and none follows"),
           "a name is :letters_digits, or in quotes: :\"llama-70b\"");
  }

  void attribute() {
    ++at_;
    while (is_word_character(peek()))
      ++at_;
    if (at_ - start_ == 1) return refuse(Kind::operator_, operator_message("@"));
    push(Kind::attribute);
  }

  void string_or_key() {
    if (ahead("\"\"\"")) return heredoc();
    if (!string_body()) return push(Kind::invalid);
    if (key_follows()) return key(Kind::quoted_key);
    push(Kind::string);
  }

  /// From the quote to behind the closing one. False, with a fault noted, if that fails.
  bool string_body() {
    std::size_t open = at_++;
    for (; at_ < text_.size(); ++at_) {
      char c = text_[at_];
      if (c == '"') {
        ++at_;
        return result_.faults.count(start_) == 0;
      }
      if (c == '\n' && one_line_strings_) break;
      if (c == '\\' && at_ + 1 < text_.size()) {
        ++at_;
        if (text_[at_] == '\n' && one_line_strings_) break;
      } else if (c == '#' && peek(1) == '{') {
        interpolation();
      }
    }
    if (at_ >= text_.size()) string_ran_to_the_end_ = true;
    at_ = std::min(at_, text_.size());
    fault_at(open, "this string is not closed", "end it with `\"`");
    std::string_view swallowed = text_.substr(open, at_ - open);
    swallowed = swallowed.substr(0, swallowed.find_last_not_of(" \t") + 1);
    if (swallowed.ends_with(" do")) result_.swallowed_do = true;
    return false;
  }

  /// Stands on "#{"; leaves at its "}" (or where the line ends) so that the string goes on.
  void interpolation() {
    fault_at(at_, "interpolation `#{…}` is not allowed: a cluster file is data, not a program",
             "write the text itself; for a literal `#{` write `\\#{`");
    int depth = 0;
    bool quoted = false;
    for (std::size_t i = at_ + 1; i < text_.size() && text_[i] != '\n'; ++i) {
      if (text_[i] == '"') quoted = !quoted;
      if (quoted) continue;
      if (text_[i] == '{') ++depth;
      if (text_[i] == '}' && --depth == 0) {
        at_ = i;
        return;
      }
    }
  }

  void heredoc() {
    std::size_t open = at_;
    at_ += 3;
    std::size_t line_end = std::min(text_.find('\n', at_), text_.size());
    bool text_behind =
        text_.substr(at_, line_end - at_).find_first_not_of(" \t") != std::string_view::npos;
    if (text_behind)
      fault_at(open, "text behind the opening `\"\"\"`", "the text starts on the next line");
    at_ = line_end;
    while (at_ < text_.size()) {
      std::size_t first = std::min(text_.find_first_not_of(" \t", at_ + 1), text_.size());
      if (text_.substr(first).starts_with("\"\"\"")) {
        at_ = first + 3;
        return push(result_.faults.count(start_) == 0 ? Kind::heredoc : Kind::invalid);
      }
      at_ = std::min(text_.find('\n', std::max(first, at_ + 1)), text_.size());
      note_interpolation(first, at_);
    }
    if (text_behind) {
      at_ = line_end;
      return push(Kind::invalid);
    }
    // The rest of the file may be text of this heredoc or not: nothing more can be said about it.
    result_.faults.erase(start_);
    result_.cut = true;
    fault_at(open, "this `\"\"\"` is not closed", "end it with `\"\"\"` on a line of its own");
    push(Kind::invalid);
  }

  void note_interpolation(std::size_t from, std::size_t to) {
    for (std::size_t i = from; i + 1 < to; ++i) {
      if (text_[i] == '\\') {
        ++i;
      } else if (text_[i] == '#' && text_[i + 1] == '{') {
        fault_at(i, "interpolation `#{…}` is not allowed: a cluster file is data, not a program",
                 "for a literal `#{` write `\\#{`");
        return;
      }
    }
  }

  /// To behind the next unescaped quote of that kind on this line, else to the end of the line.
  void skip_to_quote(char quote_character) {
    std::size_t end = std::min(text_.find('\n', at_), text_.size());
    for (++at_; at_ < end; ++at_) {
      if (text_[at_] == '\\')
        ++at_;
      else if (text_[at_] == quote_character)
        break;
    }
    at_ = std::min(at_ + 1, std::max(end, start_ + 1));
  }

  void skip_past(std::string_view closing) {
    std::size_t found = text_.find(closing, at_);
    at_ = found == std::string_view::npos ? text_.size() : found + closing.size();
  }

  void charlist() {
    if (ahead("'''")) {
      at_ += 3;
      skip_past("'''");
    } else {
      skip_to_quote('\'');
    }
    refuse(Kind::invalid, "text in single quotes is a charlist in Elixir, not a string",
           "use double quotes");
  }

  void sigil() {
    ++at_;
    std::size_t letters = at_;
    while (is_word_start(peek()))
      ++at_;
    if (at_ == letters) return refuse(Kind::operator_, operator_message("~"));
    static constexpr std::string_view opening = "([{<\"'/|";
    static constexpr std::string_view closing = ")]}>\"'/|";
    std::size_t which = peek() == '\0' ? std::string_view::npos : opening.find(peek());
    if (ahead("\"\"\"")) {
      at_ += 3;
      skip_past("\"\"\"");
    } else if (which != std::string_view::npos) {
      skip_to_quote(closing[which]);
    }
    refuse(Kind::invalid, "sigils (`~s`, `~w` …) are not allowed",
           "write a string \"…\", or a list of strings");
  }

  void character() {
    ++at_;
    if (peek() == '\\') ++at_;
    if (peek() != '\n' && peek() != '\0') at_ += std::max<std::size_t>(1, utf8_length(text_, at_));
    refuse(Kind::invalid, "`?` (a character's number) is not allowed",
           "write the number, or a string");
  }

  static std::string operator_message(std::string_view sign) {
    return "operator " + quote(sign) + " is not allowed: a cluster file is data, not a program";
  }

  void other() {
    static constexpr std::array<std::string_view, 3> open{"%{", "{", "<<"};
    for (std::string_view sign : open) {
      if (!ahead(sign)) continue;
      at_ += sign.size();
      return refuse(Kind::open_other, "maps, tuples and binaries are not allowed",
                    "write a list [1, 2] or a keyword list [key: value]");
    }
    for (std::string_view sign : {std::string_view("}"), std::string_view(">>")}) {
      if (!ahead(sign)) continue;
      at_ += sign.size();
      return refuse(Kind::close_other, quote(sign) + " closes nothing");
    }
    if (static_cast<unsigned char>(peek()) >= 0x80) return beyond_ascii();
    static constexpr std::string_view signs = "+-*/=<>!|&^.%\\";
    if (signs.find(peek()) != std::string_view::npos) return operator_sign();
    ++at_;
    refuse(Kind::invalid, unexpected(text_.substr(start_, 1)));
  }

  void operator_sign() {
    static constexpr std::string_view signs = "+-*/=<>!|&^.%\\";
    while (peek() != '\0' && signs.find(peek()) != std::string_view::npos)
      ++at_;
    std::string_view sign = text_.substr(start_, at_ - start_);
    if (sign == "=")
      return refuse(Kind::operator_,
                    "variables are not allowed: a cluster file is data, not a "
                    "program",
                    "write the value where it is used");
    if (sign == "|>")
      return refuse(Kind::operator_,
                    "pipes are not allowed: a cluster file is data, not a program");
    if (sign == ".")
      return refuse(Kind::operator_, "calling functions is not allowed: a cluster file is data, "
                                     "not a program");
    if (sign == "\\")
      return refuse(Kind::operator_, "`\\` outside a string", "a line may be broken after a comma");
    refuse(Kind::operator_, operator_message(sign));
  }

  static std::string unexpected(std::string_view character) {
    switch (character.front()) {
    case '\r': return "a carriage return that ends no line";
    case '\f': return "an unexpected form feed";
    case '\v': return "an unexpected vertical tab";
    default: return "unexpected character " + quote(character);
    }
  }

  void beyond_ascii() {
    static constexpr std::array<std::string_view, 6> curly{"“", "”", "„", "‘", "’", "«"};
    std::string_view first = text_.substr(at_, std::max<std::size_t>(1, utf8_length(text_, at_)));
    at_ += first.size();
    if (std::find(curly.begin(), curly.end(), first) != curly.end())
      return refuse(Kind::invalid, quote(first) + " does not open a string",
                    "use the plain quotation mark `\"`");
    if (first == "\u00A0" || first == "\u200B" || first == "\uFEFF" || first == "\u3000")
      return refuse(Kind::invalid, "an invisible character that is no space",
                    "replace it by a space");
    while (is_word_character(peek()) || static_cast<unsigned char>(peek()) >= 0x80)
      ++at_;
    refuse(Kind::invalid, "unexpected " + quote(text_.substr(start_, at_ - start_)),
           "verbs and keys are plain ASCII; other letters go into strings and quoted names");
  }

  std::string_view text_;
  bool one_line_strings_;
  bool string_ran_to_the_end_ = false;
  std::size_t at_ = 0;
  std::size_t start_ = 0;
  bool space_before_ = false;
  Tokens result_;
};

}  // namespace

bool is_plain_atom(std::string_view name) {
  return is_name(name, true);
}
bool is_plain_key(std::string_view name) {
  return is_name(name, false);
}

Tokens lex(std::string_view text) {
  Lexer lexer(text, false);
  Tokens tokens = lexer.run();
  if (!lexer.string_ran_to_the_end()) return tokens;
  // One missing quote turns every later string inside out. Strings that span lines are rare: take
  // those as the mistake, so that the line with the missing quote is the one reported.
  return Lexer(text, true).run();
}

}  // namespace zed::spec
