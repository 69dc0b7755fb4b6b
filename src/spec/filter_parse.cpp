// Recursive descent over a filter expression; `deepest_filter` bounds the recursion.

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.hpp"
#include "spec/filter.hpp"
#include "spec/filter_units.hpp"
#include "spec/source.hpp"

namespace zed::spec {
namespace {

using Kind = Filter::Kind;

class FilterParser {
public:
  explicit FilterParser(std::string_view text) : text_(text) {}

  std::variant<Filter, FilterFault> run() {
    if (text_.size() > longest_filter) {
      refuse(longest_filter, "the filter is longer than 4096 bytes");
      return *fault_;
    }
    skip_blanks();
    if (at_ >= text_.size()) return Filter{};
    auto root = either();
    if (root && at_ < text_.size())
      expected("`and`, `or` or the end of the filter", hint_behind_clause());
    if (fault_) return *fault_;
    return std::move(filter_);
  }

private:
  using Index = std::optional<std::size_t>;

  static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static bool is_property(char c) {
    return is_letter(c) || is_digit(c) || c == '-' || c == '.' || c == ':';
  }

  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  void skip_blanks() {
    while (peek() == ' ' || peek() == '\t' || peek() == '\n')
      ++at_;
  }

  std::nullopt_t refuse(std::size_t offset, std::string message, std::string hint = {}) {
    if (!fault_) fault_ = FilterFault{offset, std::move(message), std::move(hint)};
    return std::nullopt;
  }
  std::nullopt_t expected(std::string_view what, std::string hint = {}) {
    std::string got = "the end of the filter";
    if (at_ < text_.size()) {
      std::size_t end = at_;
      while (end < text_.size() && is_property(text_[end]))
        ++end;
      if (end == at_) end += std::max<std::size_t>(1, utf8_length(text_, at_));
      got = quote(text_.substr(at_, end - at_));
    }
    return refuse(at_, "in the filter: expected " + std::string(what) + ", got " + got,
                  std::move(hint));
  }

  std::string hint_behind_clause() const {
    if (peek() == '&') return "write `and`";
    if (peek() == '|') return "write `or`";
    auto near = nearest_word(word_ahead(), {"and", "or"});
    if (near && !word_ahead().empty()) return "did you mean `" + *near + "`?";
    bool letters = word_ahead().find_first_of("_0123456789") == std::string_view::npos;
    if (after_number_ && letters && !word_ahead().empty())
      return "units of size are B, kB, MB, GB, TB, KiB, MiB, GiB and TiB";
    return {};
  }

  std::string_view word_ahead() const {
    std::size_t end = at_;
    if (!is_letter(peek())) return {};
    while (end < text_.size() && is_property(text_[end]))
      ++end;
    return text_.substr(at_, end - at_);
  }
  bool take_word(std::string_view word) {
    if (word_ahead() != word) return false;
    at_ += word.size();
    skip_blanks();
    return true;
  }
  bool take_sign(char sign) {
    if (peek() != sign) return false;
    ++at_;
    skip_blanks();
    return true;
  }

  std::size_t add(Filter::Node node) {
    filter_.nodes.push_back(std::move(node));
    return filter_.nodes.size() - 1;
  }
  std::size_t add(Kind kind, std::size_t left, std::size_t right) {
    Filter::Node node;
    node.kind = kind;
    node.left = left;
    node.right = right;
    return add(std::move(node));
  }

  Index either() { return chain(Kind::or_, "or", &FilterParser::both); }
  Index both() { return chain(Kind::and_, "and", &FilterParser::negation); }

  Index chain(Kind kind, std::string_view word, Index (FilterParser::*operand)()) {
    Index left = (this->*operand)();
    while (left && take_word(word)) {
      Index right = (this->*operand)();
      if (!right) return std::nullopt;
      left = add(kind, *left, *right);
    }
    return left;
  }

  Index negation() {
    std::size_t start = at_;
    if (++depth_ > deepest_filter)
      return refuse(start, "in the filter: parentheses and `not` are nested more than 64 deep");
    Index result = take_word("not") ? negated() : primary();
    --depth_;
    return result;
  }
  Index negated() {
    Index inner = negation();
    return inner ? Index(add(Kind::not_, *inner, 0)) : std::nullopt;
  }

  Index primary() {
    if (take_sign('(')) {
      Index inner = either();
      if (!inner) return std::nullopt;
      if (!take_sign(')')) return expected("`)`, `and` or `or`");
      return inner;
    }
    return comparison();
  }

  Index comparison() {
    std::string_view property = word_ahead();
    if (peek() == '!') return expected("a property's name", "write `not`");
    if (property.empty())
      return expected("a property's name", peek() == '"' || is_digit(peek())
                                               ? "the property stands on the left: size_gb < 20"
                                               : "");
    if (property == "and" || property == "or" || property == "in")
      return expected("a property's name");
    Filter::Node node;
    node.property = property;
    at_ += property.size();
    skip_blanks();
    std::size_t start = at_;
    if (take_word("not")) {
      if (take_word("in")) return negated_in(std::move(node));
      at_ = start;
    }
    if (take_word("in")) return list(std::move(node));
    auto kind = comparison_sign();
    if (!kind) return std::nullopt;
    node.kind = *kind;
    auto literal = this->literal();
    if (!literal) return std::nullopt;
    node.literals.push_back(std::move(*literal));
    return add(std::move(node));
  }

  Index negated_in(Filter::Node node) {
    Index inner = list(std::move(node));
    return inner ? Index(add(Kind::not_, *inner, 0)) : std::nullopt;
  }

  std::optional<Kind> comparison_sign() {
    struct Sign {
      std::string_view text;
      Kind kind;
    };
    static constexpr std::array<Sign, 6> signs{{{"==", Kind::equal},
                                                {"!=", Kind::unequal},
                                                {"<=", Kind::at_most},
                                                {">=", Kind::at_least},
                                                {"<", Kind::less},
                                                {">", Kind::more}}};
    for (const Sign& sign : signs) {
      if (!text_.substr(at_).starts_with(sign.text)) continue;
      at_ += sign.text.size();
      skip_blanks();
      return sign.kind;
    }
    expected("`==`, `!=`, `<`, `<=`, `>`, `>=`, `in` or `not in`",
             peek() == '=' ? "equality is written `==`" : "");
    return std::nullopt;
  }

  Index list(Filter::Node node) {
    node.kind = Kind::in;
    if (!take_sign('[')) return expected("`[`", "write for example: version in [\"1.0\", \"2.1\"]");
    while (!take_sign(']')) {
      auto literal = this->literal();
      if (!literal) return std::nullopt;
      node.literals.push_back(std::move(*literal));
      if (peek() != ']' && !take_sign(',')) return expected("`,` or `]`");
    }
    return add(std::move(node));
  }

  std::optional<FilterLiteral> literal() {
    if (peek() == '"') return string();
    if (is_digit(peek()) || (peek() == '-' && is_digit(peek(1)))) return number();
    std::string_view word = word_ahead();
    return expected("a number or a string",
                    word.empty() ? "" : "a text stands in quotes: \"" + std::string(word) + "\"");
  }

  std::optional<FilterLiteral> string() {
    std::size_t open = at_++;
    after_number_ = false;
    std::string value;
    for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\' && (peek(1) == '"' || peek(1) == '\\')) ++at_;
      value += text_[at_];
    }
    if (at_ >= text_.size()) return refuse(open, "in the filter: this string is not closed");
    ++at_;
    skip_blanks();
    return FilterLiteral(std::move(value));
  }

  std::optional<FilterLiteral> number() {
    std::size_t start = at_;
    if (peek() == '-') ++at_;
    auto digits = [this] {
      while (is_digit(peek()) || (peek() == '_' && is_digit(peek(1))))
        ++at_;
    };
    digits();
    if (peek() == '.' && is_digit(peek(1))) {
      ++at_;
      digits();
    }
    std::string plain;
    for (char c : text_.substr(start, at_ - start))
      if (c != '_') plain += c;
    FilterNumber number;
    auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), number.value);
    if (error != std::errc{} || end != plain.data() + plain.size())
      return refuse(start, "in the filter: this number is out of range");
    number.text = plain;
    return unit(std::move(number));
  }

  /// The unit may stand behind a blank; any other word there is not part of the number.
  std::optional<FilterLiteral> unit(FilterNumber number) {
    skip_blanks();
    std::string_view word = word_ahead();
    if (auto known = size_unit(word)) {
      number.unit = known->name;
      number.text += number.unit;
      at_ += word.size();
      skip_blanks();
    }
    after_number_ = number.unit.empty();
    return FilterLiteral(std::move(number));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  bool after_number_ = false;  ///< the last literal is a number without unit
  Filter filter_;
  std::optional<FilterFault> fault_;
};

}  // namespace

std::variant<Filter, FilterFault> parse_filter(std::string_view text) {
  return FilterParser(text).run();
}

Result<Filter> Filter::parse(std::string_view text) {
  auto parsed = parse_filter(text);
  if (auto* filter = std::get_if<Filter>(&parsed)) return std::move(*filter);
  FilterFault& fault = std::get<FilterFault>(parsed);
  return fail(ErrorCode::invalid,
              fault.message + " (column " + std::to_string(fault.offset + 1) + ")",
              std::move(fault.hint));
}

}  // namespace zed::spec
