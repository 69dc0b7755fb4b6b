#include "beam/term_value.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.hpp"
#include "beam/wire.hpp"

namespace zed::beam {
namespace {

constexpr std::size_t max_atom_bytes = 255;

bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte >= ' ' && byte < 0x7F) || byte >= 0xA0 || c == '\n' || c == '\t' || c == '\r';
  });
}

tl::unexpected<Error> no_counterpart(std::string_view what) {
  return fail(ErrorCode::invalid, std::string(what) + " cannot be an argument here",
              "use numbers, atoms, strings, lists, tuples and maps");
}

class ToValue {
public:
  explicit ToValue(ByteLists byte_lists) : byte_lists_(byte_lists) {}

  Result<Value> convert(const Term& term) const {
    return std::visit([this](const auto& t) { return one(t); }, term.data());
  }

private:
  Result<Value> one(const Atom& a) const {
    if (a.name == "true") return Value(true);
    if (a.name == "false") return Value(false);
    if (a.name == "nil" || a.name == "undefined") return Value();
    return Value(Symbol{a.name});
  }
  Result<Value> one(std::int64_t n) const { return Value(n); }
  Result<Value> one(std::uint64_t n) const { return Value(std::to_string(n)); }
  Result<Value> one(double d) const { return Value(d); }
  Result<Value> one(const Binary& b) const {
    if (!is_valid_utf8(b.bytes)) return no_counterpart("a binary that is not UTF-8");
    return Value(b.bytes);
  }
  Result<Value> one(const ByteList& s) const {
    if (byte_lists_ == ByteLists::text_if_printable && is_printable(s.bytes))
      return Value(utf8_of_latin1(s.bytes));
    Value::List numbers;
    for (char c : s.bytes)
      numbers.push_back(Value(std::int64_t{static_cast<unsigned char>(c)}));
    return Value(std::move(numbers));
  }
  Result<Value> one(const List& l) const {
    return is_keyword_list(l.items) ? keywords(l.items) : items(l.items);
  }
  Result<Value> one(const Tuple& t) const { return items(t.items); }
  Result<Value> one(const Map& m) const { return members(m); }
  Result<Value> one(const ImproperList&) const { return no_counterpart("an improper list"); }
  Result<Value> one(const Pid&) const { return no_counterpart("a process identifier"); }
  Result<Value> one(const Reference&) const { return no_counterpart("a reference"); }
  Result<Value> one(const Port&) const { return no_counterpart("a port"); }
  Result<Value> one(const Opaque&) const {
    return no_counterpart("a function, bit string or number beyond 64 bits");
  }

  Result<Value> items(const std::vector<Term>& terms) const {
    Value::List out;
    out.reserve(terms.size());
    for (std::size_t i = 0; i < terms.size(); ++i) {
      auto value = convert(terms[i]);
      if (!value) return fail(std::move(value).error().with("[" + std::to_string(i) + "]"));
      out.push_back(std::move(*value));
    }
    return Value(std::move(out));
  }

  static bool is_keyword_list(const std::vector<Term>& terms) {
    std::set<std::string_view> keys;
    for (const Term& term : terms) {
      const auto* pair = term.tuple_of(2);
      const Atom* key = pair != nullptr ? (*pair)[0].as<Atom>() : nullptr;
      if (key == nullptr || !keys.insert(key->name).second) return false;
    }
    return !terms.empty();
  }
  Result<Value> keywords(const std::vector<Term>& terms) const {
    Value::Map out;
    out.reserve(terms.size());
    for (const Term& term : terms) {
      const auto& pair = term.as<Tuple>()->items;
      ZED_CHECK(add(out, pair[0].as<Atom>()->name, pair[1]));
    }
    return Value(std::move(out));
  }
  Result<Value> members(const Map& m) const {
    Value::Map out;
    out.reserve(m.members.size());
    std::set<std::string> keys;
    for (const auto& [key, value] : m.members) {
      auto name = text_of(key);
      if (!name) return no_counterpart("a map key that is neither an atom nor a string");
      if (!keys.insert(*name).second)
        return fail(ErrorCode::invalid, "the map has the key \"" + name->substr(0, 80) +
                                            "\" twice, as an atom and as a string");
      ZED_CHECK(add(out, *name, value));
    }
    return Value(std::move(out));
  }
  Status add(Value::Map& out, const std::string& key, const Term& term) const {
    auto value = convert(term);
    if (!value) return fail(std::move(value).error().with(key));
    out.push_back({key, std::move(*value)});
    return {};
  }

  ByteLists byte_lists_;
};

Term number_term(double d) {
  if (std::isfinite(d)) return Term(d);
  if (std::isnan(d)) return binary("NaN");
  return binary(d > 0 ? "Infinity" : "-Infinity");
}

}  // namespace

Result<Value> value_of(const Term& term, ByteLists byte_lists) {
  return ToValue(byte_lists).convert(term);
}

Term term_of(const Value& value, const IsOurWord& is_our_word) {
  if (value.is_null()) return atom("nil");
  if (auto* b = value.as_bool()) return atom(*b ? "true" : "false");
  if (auto* n = value.as_int()) return Term(*n);
  if (auto* d = value.as_double()) return number_term(*d);
  if (auto* symbol = value.as_symbol())
    return symbol->name.size() <= max_atom_bytes ? atom(symbol->name) : binary(symbol->name);
  if (auto* text = value.as_text()) return binary(*text);
  if (auto* items = value.as_list()) {
    List out;
    out.items.reserve(items->size());
    for (const Value& item : *items)
      out.items.push_back(term_of(item, is_our_word));
    return Term(std::move(out));
  }
  Map out;
  for (const Value::Member& member : *value.as_map()) {
    const bool ours = member.key.size() <= max_atom_bytes && is_our_word && is_our_word(member.key);
    out.members.emplace_back(ours ? atom(member.key) : binary(member.key),
                             term_of(member.value, is_our_word));
  }
  return Term(std::move(out));
}

std::optional<std::string> text_of(const Term& term) {
  if (const Atom* a = term.as<Atom>()) return a->name;
  if (const Binary* b = term.as<Binary>()) {
    if (is_valid_utf8(b->bytes)) return b->bytes;
    return std::nullopt;
  }
  if (const ByteList* s = term.as<ByteList>()) return utf8_of_latin1(s->bytes);
  return std::nullopt;
}

}  // namespace zed::beam
