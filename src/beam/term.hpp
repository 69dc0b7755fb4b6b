#pragma once
// Erlang's data as plain values. Reference: "External Term Format", ERTS user's guide.

#include <array>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace zed::beam {

/// UTF-8, at most 255 characters. A BEAM never frees an atom: none is ever made from a name that a
/// person typed, beyond those of the declared cluster.
struct Atom {
  std::string name;
  friend auto operator<=>(const Atom&, const Atom&) = default;
};

struct Binary {
  std::string bytes;
  friend bool operator==(const Binary&, const Binary&) = default;
};

/// STRING_EXT: how a BEAM sends a list of 1 to 65,535 integers that all fit in a byte. What Erlang
/// prints as "abc" and [97,98,99] alike.
struct ByteList {
  std::string bytes;
  friend bool operator==(const ByteList&, const ByteList&) = default;
};

struct Pid {
  Atom node;
  std::uint32_t id = 0;
  std::uint32_t serial = 0;
  std::uint32_t creation = 0;  ///< tells the starts of one node apart
  friend auto operator<=>(const Pid&, const Pid&) = default;
};

struct Reference {
  Atom node;
  std::uint32_t creation = 0;
  std::array<std::uint32_t, 5> ids{};
  std::uint8_t count = 0;  ///< how many of `ids` count: 1 to 5
  friend auto operator<=>(const Reference&, const Reference&) = default;
};

struct Port {
  Atom node;
  std::uint64_t id = 0;
  std::uint32_t creation = 0;
  friend auto operator<=>(const Port&, const Port&) = default;
};

/// A well-formed term that Zed has no use for, kept as its bytes (tag first): functions, bit
/// strings and integers beyond 64 bits.
struct Opaque {
  std::string bytes;
  friend bool operator==(const Opaque&, const Opaque&) = default;
};

class Term;

struct Tuple {
  std::vector<Term> items;
  friend bool operator==(const Tuple&, const Tuple&);
};
struct List {
  std::vector<Term> items;
  friend bool operator==(const List&, const List&);
};
/// [a, b | c]: the last item is the tail, which is no list. At least two items.
struct ImproperList {
  std::vector<Term> items;
  friend bool operator==(const ImproperList&, const ImproperList&);
};
/// In the order on the wire. Keys are unique: a BEAM refuses a map that has one twice.
struct Map {
  std::vector<std::pair<Term, Term>> members;
  friend bool operator==(const Map&, const Map&);
};

class Term {
public:
  /// std::uint64_t is used only beyond the signed range.
  using Data = std::variant<List, Atom, std::int64_t, std::uint64_t, double, Binary, ByteList,
                            ImproperList, Tuple, Map, Pid, Reference, Port, Opaque>;

  Term() = default;  ///< []
  template <class T>
  requires std::constructible_from<Data, T&&> Term(T&& value) : data_(std::forward<T>(value)) {}
  Term(int n) : data_(std::int64_t{n}) {}

  const Data& data() const { return data_; }
  template <class T> const T* as() const { return std::get_if<T>(&data_); }
  bool is_atom(std::string_view name) const {
    const Atom* atom = as<Atom>();
    return atom != nullptr && atom->name == name;
  }
  /// The items if this is a tuple of that size, else nullptr.
  const std::vector<Term>* tuple_of(std::size_t size) const {
    const Tuple* tuple = as<Tuple>();
    return tuple != nullptr && tuple->items.size() == size ? &tuple->items : nullptr;
  }

  friend bool operator==(const Term&, const Term&) = default;

private:
  Data data_;
};

inline bool operator==(const Tuple& a, const Tuple& b) {
  return a.items == b.items;
}
inline bool operator==(const List& a, const List& b) {
  return a.items == b.items;
}
inline bool operator==(const ImproperList& a, const ImproperList& b) {
  return a.items == b.items;
}
inline bool operator==(const Map& a, const Map& b) {
  return a.members == b.members;
}

inline Term atom(std::string_view name) {
  return Atom{std::string(name)};
}
inline Term binary(std::string_view bytes) {
  return Binary{std::string(bytes)};
}
inline Term tuple(std::vector<Term> items) {
  return Tuple{std::move(items)};
}
inline Term list(std::vector<Term> items) {
  return List{std::move(items)};
}

/// As Erlang's shell would print it, cut after about `max_bytes`. For logs, errors and tests.
std::string show(const Term& term, std::size_t max_bytes = 400);

}  // namespace zed::beam
