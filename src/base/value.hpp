#pragma once
// Value: the one tree of plain data that every outside form (JSON, Erlang terms, journal records)
// is made from and read into. base/describe.hpp maps structs to it.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace zed {

/// A word from a closed vocabulary (an enum's name, a declared name): an atom in Erlang, a string
/// in JSON.
struct Symbol {
  std::string name;
  friend bool operator==(const Symbol&, const Symbol&) = default;
};

class Value {
public:
  struct Member;
  using List = std::vector<Value>;
  using Map = std::vector<Member>;  ///< in the order written; keys are unique

  Value() = default;  ///< null
  Value(bool b);
  Value(int n);
  Value(std::int64_t n);
  Value(double d);
  Value(const char* s);
  Value(std::string s);
  Value(std::string_view s);
  Value(Symbol s);
  Value(List l);
  Value(Map m);

  static Value map();
  static Value list();

  bool is_null() const { return std::holds_alternative<std::monostate>(data_); }
  const bool* as_bool() const { return std::get_if<bool>(&data_); }
  const std::int64_t* as_int() const { return std::get_if<std::int64_t>(&data_); }
  const double* as_double() const { return std::get_if<double>(&data_); }
  /// Text of a string or of a symbol.
  const std::string* as_text() const;
  const Symbol* as_symbol() const { return std::get_if<Symbol>(&data_); }
  const List* as_list() const { return std::get_if<List>(&data_); }
  List* as_list() { return std::get_if<List>(&data_); }
  const Map* as_map() const { return std::get_if<Map>(&data_); }

  /// The member of that key, or nullptr (also if this is no map).
  const Value* find(std::string_view key) const;
  /// Sets or replaces a member. This must be a map or null (which becomes one).
  Value& set(std::string_view key, Value value);
  /// Appends to a list. This must be a list or null (which becomes one).
  Value& push(Value value);

  /// What a person would call the kind: "a number", "text".
  std::string_view kind() const;

  friend bool operator==(const Value&, const Value&);

private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Symbol, List, Map> data_;
};

struct Value::Member {
  std::string key;
  Value value;
  friend bool operator==(const Member&, const Member&) = default;
};

// Here and not in the class: clang 14 wants Member complete where the variant is first made.
inline Value::Value(bool b) : data_(b) {}
inline Value::Value(int n) : data_(std::int64_t{n}) {}
inline Value::Value(std::int64_t n) : data_(n) {}
inline Value::Value(double d) : data_(d) {}
inline Value::Value(const char* s) : data_(std::string(s)) {}
inline Value::Value(std::string s) : data_(std::move(s)) {}
inline Value::Value(std::string_view s) : data_(std::string(s)) {}
inline Value::Value(Symbol s) : data_(std::move(s)) {}
inline Value::Value(List l) : data_(std::move(l)) {}
inline Value::Value(Map m) : data_(std::move(m)) {}
inline Value Value::map() {
  return Value(Map{});
}
inline Value Value::list() {
  return Value(List{});
}

}  // namespace zed
