#include <bit>

#include "beam/etf.hpp"
#include "beam/etf_tags.hpp"
#include "beam/wire.hpp"

namespace zed::beam {
namespace {

class Writer {
public:
  explicit Writer(std::string& out) : out_(out) {}

  void write(const Term& term) {
    std::visit([this](const auto& value) { one(value); }, term.data());
  }

private:
  void put_tag(std::uint8_t tag) { put(out_, tag, 1); }

  void one(const Atom& atom) {
    // 255 characters of UTF-8 are at most 1,020 bytes, so two bytes of length always do.
    const bool small = atom.name.size() <= 0xFF;
    put_tag(small ? tag::small_utf8_atom : tag::utf8_atom);
    ZED_ASSERT(atom.name.size() <= 1020);
    put(out_, atom.name.size(), small ? 1 : 2);
    out_ += atom.name;
  }

  void one(std::int64_t n) {
    if (n >= 0 && n <= 0xFF) {
      put_tag(tag::small_integer);
      put(out_, static_cast<std::uint64_t>(n), 1);
    } else if (n >= INT32_MIN && n <= INT32_MAX) {
      put_tag(tag::integer);
      put(out_, static_cast<std::uint64_t>(n), 4);
    } else {
      const auto bits = static_cast<std::uint64_t>(n);
      big(n < 0, n < 0 ? ~bits + 1 : bits);
    }
  }
  void one(std::uint64_t n) {
    if (n <= static_cast<std::uint64_t>(INT64_MAX)) return one(static_cast<std::int64_t>(n));
    big(false, n);
  }
  void big(bool negative, std::uint64_t magnitude) {
    const auto size = (static_cast<std::size_t>(std::bit_width(magnitude)) + 7) / 8;
    put_tag(tag::small_big);
    put(out_, size, 1);
    put(out_, negative ? 1 : 0, 1);
    for (std::size_t i = 0; i < size; ++i)
      put(out_, magnitude >> (8 * i), 1);
  }

  void one(double d) {
    // A BEAM has no float that is not finite and drops the connection of whoever sends one.
    ZED_ASSERT(d - d == 0);
    put_tag(tag::new_float);
    put(out_, std::bit_cast<std::uint64_t>(d), 8);
  }

  void one(const Binary& binary) {
    ZED_ASSERT(binary.bytes.size() <= UINT32_MAX);
    put_tag(tag::binary);
    put(out_, binary.bytes.size(), 4);
    out_ += binary.bytes;
  }

  void one(const ByteList& text) {
    if (text.bytes.empty()) return put_tag(tag::nil);
    if (text.bytes.size() <= 0xFFFF) {
      put_tag(tag::string);
      put(out_, text.bytes.size(), 2);
      out_ += text.bytes;
      return;
    }
    put_tag(tag::list);
    put(out_, text.bytes.size(), 4);
    for (char c : text.bytes)
      one(std::int64_t{static_cast<unsigned char>(c)});
    put_tag(tag::nil);
  }

  void one(const List& list) {
    if (!list.items.empty()) {
      put_tag(tag::list);
      put(out_, list.items.size(), 4);
      for (const Term& item : list.items)
        write(item);
    }
    put_tag(tag::nil);
  }

  void one(const ImproperList& list) {
    ZED_ASSERT(list.items.size() >= 2);
    put_tag(tag::list);
    put(out_, list.items.size() - 1, 4);
    for (const Term& item : list.items)
      write(item);
  }

  void one(const Tuple& tuple) {
    const bool small = tuple.items.size() <= 0xFF;
    put_tag(small ? tag::small_tuple : tag::large_tuple);
    put(out_, tuple.items.size(), small ? 1 : 4);
    for (const Term& item : tuple.items)
      write(item);
  }

  void one(const Map& map) {
    put_tag(tag::map);
    put(out_, map.members.size(), 4);
    for (const auto& [key, value] : map.members) {
      write(key);
      write(value);
    }
  }

  void one(const Pid& pid) {
    put_tag(tag::new_pid);
    one(pid.node);
    put(out_, pid.id, 4);
    put(out_, pid.serial, 4);
    put(out_, pid.creation, 4);
  }

  void one(const Reference& reference) {
    put_tag(tag::newer_reference);
    put(out_, reference.count, 2);
    one(reference.node);
    put(out_, reference.creation, 4);
    for (std::uint8_t i = 0; i < reference.count; ++i)
      put(out_, reference.ids[i], 4);
  }

  void one(const Port& port) {
    const bool wide = port.id > 0xFFFFFFFF;
    put_tag(wide ? tag::v4_port : tag::new_port);
    one(port.node);
    put(out_, port.id, wide ? 8 : 4);
    put(out_, port.creation, 4);
  }

  void one(const Opaque& opaque) { out_ += opaque.bytes; }

  std::string& out_;
};

/// Counts as TermReader does.
class Measure {
public:
  explicit Measure(TermLimits limits) : limits_(limits) {}

  Status measure(const Term& term, std::size_t depth) {
    if (depth >= limits_.max_depth)
      return fail(ErrorCode::invalid,
                  "the term is nested deeper than " + std::to_string(limits_.max_depth));
    if (const List* t = term.as<List>())
      return t->items.empty() ? count(1) : all(t->items, 2, depth);
    if (const ImproperList* t = term.as<ImproperList>()) return all(t->items, 1, depth);
    if (const Tuple* t = term.as<Tuple>()) return all(t->items, 1, depth);
    if (const Map* t = term.as<Map>()) {
      ZED_CHECK(count(1));
      for (const auto& [key, value] : t->members) {
        ZED_CHECK(measure(key, depth + 1));
        ZED_CHECK(measure(value, depth + 1));
      }
      return {};
    }
    // What an opaque term is made of takes at least a byte a part.
    if (const Opaque* t = term.as<Opaque>()) return count(t->bytes.size());
    return count(1);
  }

private:
  Status all(const std::vector<Term>& items, std::size_t own, std::size_t depth) {
    ZED_CHECK(count(own));
    // An empty tuple apart, a list has at least its tail one level down.
    if (own == 2 && depth + 1 >= limits_.max_depth) return measure(List{}, depth + 1);
    for (const Term& item : items)
      ZED_CHECK(measure(item, depth + 1));
    return {};
  }
  Status count(std::size_t terms) {
    if (terms > limits_.max_terms - terms_)
      return fail(ErrorCode::invalid,
                  "the term has more than " + std::to_string(limits_.max_terms) + " parts");
    terms_ += terms;
    return {};
  }

  TermLimits limits_;
  std::size_t terms_ = 0;
};

}  // namespace

Status check_limits(const Term& term, TermLimits limits) {
  return Measure(limits).measure(term, 0);
}

void encode_to(std::string& out, const Term& term) {
  Writer(out).write(term);
}

std::string encode(const Term& term) {
  std::string out(1, static_cast<char>(etf_version));
  encode_to(out, term);
  return out;
}

}  // namespace zed::beam
