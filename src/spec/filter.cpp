#include "spec/filter.hpp"

#include <algorithm>
#include <charconv>

#include "base/text.hpp"
#include "spec/filter_units.hpp"

namespace zed::spec {

std::optional<SizeUnit> size_unit(std::string_view word) {
  for (const SizeUnit& unit : units_of_size)
    if (lower(unit.name) == lower(word)) return unit;
  return std::nullopt;
}

namespace {

using Kind = Filter::Kind;

// --- text

std::string show(const FilterLiteral& literal) {
  if (auto* number = std::get_if<FilterNumber>(&literal)) return number->text;
  std::string quoted = "\"";
  for (char c : std::get<std::string>(literal)) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

std::string_view sign_of(Kind kind) {
  switch (kind) {
  case Kind::equal: return "==";
  case Kind::unequal: return "!=";
  case Kind::less: return "<";
  case Kind::at_most: return "<=";
  case Kind::more: return ">";
  case Kind::at_least: return ">=";
  case Kind::in: return "in";
  case Kind::not_: return "not";
  case Kind::and_: return "and";
  case Kind::or_: return "or";
  }
  return "";
}

/// "< 20", "in ["1.0"]": the clause without its property.
std::string condition(const Filter::Node& node) {
  std::string text(sign_of(node.kind));
  if (node.kind != Kind::in) return text + " " + show(node.literals.front());
  text += " [";
  for (std::size_t i = 0; i < node.literals.size(); ++i)
    text += (i > 0 ? ", " : "") + show(node.literals[i]);
  return text + "]";
}

// --- comparing

struct Amount {
  double value = 0;
  std::optional<double> unit;  ///< in bytes
};

/// "140", "1.5 GiB": a property's value as a number.
std::optional<Amount> amount_of(std::string_view text) {
  text = trim(text);
  Amount amount;
  const char* last = text.data() + text.size();
  auto [end, error] = std::from_chars(text.data(), last, amount.value);
  if (text.empty() || error != std::errc{} || amount.value != amount.value) return std::nullopt;
  std::string_view rest = trim(text.substr(static_cast<std::size_t>(end - text.data())));
  if (rest.empty()) return amount;
  auto unit = size_unit(rest);
  if (!unit) return std::nullopt;
  amount.unit = unit->bytes;
  return amount;
}

/// The unit that a property's name promises: size_gb, vram_mib, disk_bytes.
std::optional<double> unit_of_name(std::string_view property) {
  if (property.ends_with("_bytes")) return 1.0;
  std::size_t underscore = property.rfind('_');
  if (underscore == std::string_view::npos) return std::nullopt;
  std::string_view suffix = property.substr(underscore + 1);
  auto unit = suffix.size() >= 2 ? size_unit(suffix) : std::nullopt;
  return unit ? std::optional<double>(unit->bytes) : std::nullopt;
}

/// <0, 0, >0, or nothing and why.
struct Order {
  std::optional<int> sign;
  std::string why;
};

int sign_between(double a, double b) {
  return a < b ? -1 : a > b ? 1 : 0;
}

Order compare_number(const std::string& property, const std::string& text,
                     const FilterNumber& literal) {
  auto amount = amount_of(text);
  if (!amount) return {std::nullopt, property + " is \"" + text + "\", not a number"};
  auto named = unit_of_name(property);
  auto written = literal.unit.empty() ? std::nullopt : size_unit(literal.unit);
  auto left = amount->unit ? amount->unit : named;
  auto right = written ? std::optional<double>(written->bytes) : named;
  if (left.has_value() != right.has_value())
    return {std::nullopt,
            property + " is " + text + ": only one side of " + literal.text + " has a unit"};
  // Equal units need no conversion: 0.1 < 0.2 stays exact in what was written.
  if (!left || *left == *right) return {sign_between(amount->value, literal.value), {}};
  return {sign_between(amount->value * *left, literal.value * *right), {}};
}

bool is_version(std::string_view text) {
  if (text.empty() || text.front() == '.' || text.back() == '.') return false;
  return text.find("..") == std::string_view::npos &&
         text.find_first_not_of("0123456789.") == std::string_view::npos;
}

/// Digits without leading zeros: the longer one is greater, whatever their size.
int compare_digits(std::string_view a, std::string_view b) {
  auto strip = [](std::string_view digits) {
    std::size_t first = digits.find_first_not_of('0');
    return first == std::string_view::npos ? std::string_view() : digits.substr(first);
  };
  a = strip(a);
  b = strip(b);
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  return a.compare(b);
}

int compare_text(const std::string& a, const std::string& b) {
  if (!is_version(a) || !is_version(b)) return a.compare(b);
  auto left = split(a, '.');
  auto right = split(b, '.');
  for (std::size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
    int order = compare_digits(i < left.size() ? left[i] : "", i < right.size() ? right[i] : "");
    if (order != 0) return order;
  }
  return 0;
}

Order compare(const std::string& property, const std::string& text, const FilterLiteral& literal) {
  if (auto* number = std::get_if<FilterNumber>(&literal))
    return compare_number(property, text, *number);
  return {compare_text(text, std::get<std::string>(literal)), {}};
}

Truth truth_of(bool holds) {
  return holds ? Truth::yes : Truth::no;
}

bool holds(Kind kind, int sign) {
  switch (kind) {
  case Kind::equal: return sign == 0;
  case Kind::unequal: return sign != 0;
  case Kind::less: return sign < 0;
  case Kind::at_most: return sign <= 0;
  case Kind::more: return sign > 0;
  default: return sign >= 0;
  }
}

/// Equality of texts is equality of characters: "2.0" is not "2".
Truth equality(const std::string& property, const std::string& text, const FilterLiteral& literal,
               std::string& why) {
  if (auto* wanted = std::get_if<std::string>(&literal)) return truth_of(text == *wanted);
  Order order = compare(property, text, literal);
  if (!order.sign) {
    why = order.why;
    return Truth::unknown;
  }
  return truth_of(*order.sign == 0);
}

Verdict verdict(Truth truth, const Filter::Node& node, const std::string& text) {
  std::string is = node.property + " is " + text + ", ";
  return {truth, is + (truth == Truth::yes ? "" : "not ") + condition(node)};
}

Verdict evaluate_in(const Filter::Node& node, const std::string& text) {
  Verdict best{Truth::no, {}};
  for (const FilterLiteral& literal : node.literals) {
    std::string why;
    Truth truth = equality(node.property, text, literal, why);
    if (truth == Truth::yes) return verdict(truth, node, text);
    if (truth == Truth::unknown) best = {truth, why};
  }
  return best.truth == Truth::unknown ? best : verdict(Truth::no, node, text);
}

Verdict evaluate_clause(const Filter::Node& node, const Properties& properties) {
  auto found = properties.find(node.property);
  if (found == properties.end()) return {Truth::unknown, node.property + " is not set"};
  const std::string& text = found->second;
  if (node.kind == Kind::in) return evaluate_in(node, text);
  const FilterLiteral& literal = node.literals.front();
  if (node.kind == Kind::equal || node.kind == Kind::unequal) {
    std::string why;
    Truth equal = equality(node.property, text, literal, why);
    if (equal == Truth::unknown) return {equal, why};
    return verdict(truth_of((equal == Truth::yes) == (node.kind == Kind::equal)), node, text);
  }
  Order order = compare(node.property, text, literal);
  if (!order.sign) return {Truth::unknown, order.why};
  return verdict(truth_of(holds(node.kind, *order.sign)), node, text);
}

Verdict negated(Verdict inner) {
  if (inner.truth == Truth::unknown) return inner;
  inner.truth = inner.truth == Truth::yes ? Truth::no : Truth::yes;
  return inner;
}

// no < unknown < yes: `and` is the lesser, `or` the greater; the reason is of the one that decides.
Verdict lesser(const Verdict& a, const Verdict& b) {
  return b.truth < a.truth ? b : a;
}
Verdict greater(const Verdict& a, const Verdict& b) {
  return b.truth > a.truth ? b : a;
}

int binding(Kind kind) {
  switch (kind) {
  case Kind::or_: return 1;
  case Kind::and_: return 2;
  case Kind::not_: return 3;
  default: return 4;
  }
}

}  // namespace

std::string Filter::str() const {
  std::vector<std::string> texts;
  auto within = [&](std::size_t child, int least) {
    bool bare = binding(nodes[child].kind) >= least;
    return bare ? texts[child] : "(" + texts[child] + ")";
  };
  for (const Node& node : nodes) {
    switch (node.kind) {
    case Kind::not_: texts.push_back("not " + within(node.left, 3)); break;
    case Kind::and_:
    case Kind::or_: {
      int own = binding(node.kind);
      // Both associate to the left: an equal operator on the right keeps its parentheses.
      texts.push_back(within(node.left, own) + " " + std::string(sign_of(node.kind)) + " " +
                      within(node.right, own + 1));
      break;
    }
    default: texts.push_back(node.property + " " + condition(node));
    }
  }
  return texts.empty() ? "" : texts.back();
}

Verdict evaluate(const Filter& filter, const Properties& properties) {
  std::vector<Verdict> verdicts;
  verdicts.reserve(filter.nodes.size());
  for (const Filter::Node& node : filter.nodes) {
    switch (node.kind) {
    case Kind::not_: verdicts.push_back(negated(verdicts[node.left])); break;
    case Kind::and_: verdicts.push_back(lesser(verdicts[node.left], verdicts[node.right])); break;
    case Kind::or_: verdicts.push_back(greater(verdicts[node.left], verdicts[node.right])); break;
    default: verdicts.push_back(evaluate_clause(node, properties));
    }
  }
  return verdicts.empty() ? Verdict{} : verdicts.back();
}

}  // namespace zed::spec
