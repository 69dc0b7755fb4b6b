#include <algorithm>
#include <bit>

#include "base/number.hpp"
#include "base/text.hpp"
#include "beam/etf.hpp"
#include "beam/etf_tags.hpp"
#include "beam/wire.hpp"

namespace zed::beam {
namespace {

constexpr std::size_t max_atom_characters = 255;

std::size_t characters_of(std::string_view utf8) {
  return static_cast<std::size_t>(std::count_if(utf8.begin(), utf8.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

}  // namespace

TermReader::TermReader(std::span<const std::uint8_t> bytes, TermLimits limits)
    : bytes_(bytes), limits_(limits) {}

tl::unexpected<Error> TermReader::corrupt(std::string what) const {
  return fail(ErrorCode::corrupt, what + " at byte " + std::to_string(offset_) + " of the term");
}

/// Counts terms before memory is taken for them. Each takes at least one byte, so what the rest of
/// the message cannot hold is refused as well.
Status TermReader::reserve(std::size_t terms) {
  if (terms > bytes_.size() - offset_) return corrupt("a length beyond the end of the message");
  if (terms > limits_.max_terms - terms_)
    return fail(ErrorCode::invalid,
                "the message has more than " + std::to_string(limits_.max_terms) + " terms");
  terms_ += terms;
  return {};
}

Result<std::uint64_t> TermReader::number(std::size_t bytes) {
  if (bytes_.size() - offset_ < bytes) return corrupt("a term is cut short");
  const std::uint64_t value = get(bytes_, offset_, bytes);
  offset_ += bytes;
  return value;
}

Result<std::string> TermReader::take(std::size_t size) {
  if (bytes_.size() - offset_ < size) return corrupt("a length beyond the end of the message");
  std::string taken = string_of(bytes_.subspan(offset_, size));
  offset_ += size;
  return taken;
}

Opaque TermReader::opaque_since(std::size_t start) const {
  return {string_of(bytes_.subspan(start, offset_ - start))};
}

Result<Term> TermReader::read() {
  if (bytes_.size() > limits_.max_bytes)
    return fail(ErrorCode::invalid, "the message has " + std::to_string(bytes_.size()) +
                                        " bytes, more than " + std::to_string(limits_.max_bytes));
  ZED_CHECK(reserve(1));
  return read_at(0);
}

Result<Term> TermReader::read_versioned() {
  ZED_TRY(const std::uint64_t version, number(1));
  if (version != etf_version) return corrupt("no version byte 131");
  return read();
}

Result<Term> TermReader::read_at(std::size_t depth) {
  if (depth >= limits_.max_depth)
    return fail(ErrorCode::invalid,
                "the term is nested deeper than " + std::to_string(limits_.max_depth));
  const std::size_t start = offset_;
  ZED_TRY(const std::uint64_t byte, number(1));
  return read_tagged(static_cast<std::uint8_t>(byte), start, depth);
}

Result<Term> TermReader::read_tagged(std::uint8_t tag, std::size_t start, std::size_t depth) {
  switch (tag) {
  case tag::small_integer:
  case tag::integer:
  case tag::new_float:
  case tag::old_float: return read_integer_or_float(tag);
  case tag::latin1_atom:
  case tag::small_latin1_atom:
  case tag::utf8_atom:
  case tag::small_utf8_atom: {
    ZED_TRY(Atom name, read_atom(tag));
    return Term(std::move(name));
  }
  case tag::nil: return Term(List{});
  case tag::list: return read_list(depth);
  case tag::map: return read_map(depth);
  case tag::old_pid: return read_pid(false);
  case tag::new_pid: return read_pid(true);
  case tag::old_port:
  case tag::new_port:
  case tag::v4_port: return read_port(tag);
  case tag::new_reference: return read_reference(false);
  case tag::newer_reference: return read_reference(true);
  case tag::exported: return read_export(start, depth);
  case tag::new_function: return read_function(start, depth);
  default: break;
  }
  // What is left begins with a length.
  switch (tag) {
  case tag::small_tuple:
  case tag::large_tuple: {
    ZED_TRY(const std::uint64_t arity, number(tag == tag::small_tuple ? 1 : 4));
    return read_tuple(arity, depth);
  }
  case tag::string: {
    ZED_TRY(const std::uint64_t size, number(2));
    ZED_TRY(std::string bytes, take(size));
    if (bytes.empty()) return Term(List{});
    return Term(ByteList{std::move(bytes)});
  }
  case tag::binary: {
    ZED_TRY(const std::uint64_t size, number(4));
    ZED_TRY(std::string bytes, take(size));
    return Term(Binary{std::move(bytes)});
  }
  case tag::bit_binary: {
    ZED_TRY(const std::uint64_t size, number(4));
    ZED_TRY(const std::uint64_t bits, number(1));
    if (bits < 1 || bits > 8 || size == 0) return corrupt("a bit string of impossible size");
    ZED_TRY(const std::string skipped, take(size));
    return Term(opaque_since(start));
  }
  case tag::small_big:
  case tag::large_big: {
    ZED_TRY(const std::uint64_t size, number(tag == tag::small_big ? 1 : 4));
    return read_big(size, start);
  }
  case tag::compressed: return fail(ErrorCode::unsupported, "compressed terms are not accepted");
  default: return corrupt("unknown tag " + std::to_string(tag));
  }
}

Result<Term> TermReader::read_integer_or_float(std::uint8_t tag) {
  if (tag == tag::small_integer) {
    ZED_TRY(const std::uint64_t value, number(1));
    return Term(static_cast<std::int64_t>(value));
  }
  if (tag == tag::integer) {
    ZED_TRY(const std::uint64_t value, number(4));
    return Term(std::int64_t{static_cast<std::int32_t>(static_cast<std::uint32_t>(value))});
  }
  double parsed = 0;
  if (tag == tag::new_float) {
    ZED_TRY(const std::uint64_t bits, number(8));
    parsed = std::bit_cast<double>(bits);
  } else {
    // 31 bytes of "%.20e", padded with zeros.
    ZED_TRY(std::string digits, take(31));
    digits.resize(std::min(digits.size(), digits.find('\0')));
    const auto number = parse_number<double>(digits);
    if (!number) return corrupt("a float that is no number");
    parsed = *number;
  }
  if (!(parsed - parsed == 0)) return corrupt("a float that is not finite");
  return Term(parsed);
}

Result<Term> TermReader::read_big(std::size_t size, std::size_t start) {
  ZED_TRY(const std::uint64_t sign, number(1));
  if (sign > 1) return corrupt("an integer with an impossible sign");
  ZED_TRY(const std::string digits, take(size));
  const std::size_t used = digits.find_last_not_of('\0') + 1;  // npos + 1 is 0
  if (used > 8) return Term(opaque_since(start));
  std::uint64_t magnitude = 0;
  for (std::size_t i = used; i > 0; --i)
    magnitude = (magnitude << 8) | static_cast<unsigned char>(digits[i - 1]);
  constexpr auto limit = static_cast<std::uint64_t>(INT64_MAX);
  if (sign == 0) {
    if (magnitude > limit) return Term(magnitude);
    return Term(static_cast<std::int64_t>(magnitude));
  }
  if (magnitude > limit + 1) return Term(opaque_since(start));
  return Term(static_cast<std::int64_t>(~magnitude + 1));
}

Result<Term> TermReader::read_tuple(std::size_t arity, std::size_t depth) {
  ZED_CHECK(reserve(arity));
  Tuple tuple;
  tuple.items.reserve(arity);
  for (std::size_t i = 0; i < arity; ++i) {
    ZED_TRY(Term item, read_at(depth + 1));
    tuple.items.push_back(std::move(item));
  }
  return Term(std::move(tuple));
}

Result<Term> TermReader::read_list(std::size_t depth) {
  ZED_TRY(const std::uint64_t length, number(4));
  ZED_CHECK(reserve(length + 1));
  std::vector<Term> items;
  items.reserve(length + 1);
  for (std::uint64_t i = 0; i < length; ++i) {
    ZED_TRY(Term item, read_at(depth + 1));
    items.push_back(std::move(item));
  }
  ZED_TRY(Term tail, read_at(depth + 1));
  if (const List* rest = tail.as<List>()) {
    // A list whose tail is a list is a list; a BEAM never sends it so, but it is legal.
    items.insert(items.end(), rest->items.begin(), rest->items.end());
    return Term(List{std::move(items)});
  }
  if (items.empty()) return corrupt("an empty list with a tail");
  if (const ByteList* rest = tail.as<ByteList>()) {
    // Not counted by reserve() so far: each byte becomes a term.
    if (rest->bytes.size() > limits_.max_terms - terms_)
      return fail(ErrorCode::invalid,
                  "the message has more than " + std::to_string(limits_.max_terms) + " terms");
    terms_ += rest->bytes.size();
    for (char c : rest->bytes)
      items.push_back(Term(std::int64_t{static_cast<unsigned char>(c)}));
    return Term(List{std::move(items)});
  }
  if (const ImproperList* rest = tail.as<ImproperList>()) {
    items.insert(items.end(), rest->items.begin(), rest->items.end());
    return Term(ImproperList{std::move(items)});
  }
  items.push_back(std::move(tail));
  return Term(ImproperList{std::move(items)});
}

Result<Term> TermReader::read_map(std::size_t depth) {
  ZED_TRY(const std::uint64_t size, number(4));
  ZED_CHECK(reserve(size * 2));
  Map map;
  map.members.reserve(size);
  std::vector<std::string_view> keys;
  keys.reserve(size);
  const std::string_view text(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
  for (std::uint64_t i = 0; i < size; ++i) {
    const std::size_t start = offset_;
    ZED_TRY(Term key, read_at(depth + 1));
    keys.push_back(text.substr(start, offset_ - start));
    ZED_TRY(Term value, read_at(depth + 1));
    map.members.emplace_back(std::move(key), std::move(value));
  }
  // A BEAM refuses such a map, so it must not be passed on to one.
  std::sort(keys.begin(), keys.end());
  if (std::adjacent_find(keys.begin(), keys.end()) != keys.end())
    return corrupt("a map that has one key twice");
  return Term(std::move(map));
}

Result<Atom> TermReader::read_atom(std::uint8_t tag) {
  const bool small = tag == tag::small_latin1_atom || tag == tag::small_utf8_atom;
  ZED_TRY(const std::uint64_t size, number(small ? 1 : 2));
  ZED_TRY(std::string name, take(size));
  if (tag == tag::latin1_atom || tag == tag::small_latin1_atom) {
    name = utf8_of_latin1(name);
  } else if (!is_valid_utf8(name)) {
    return corrupt("an atom that is not UTF-8");
  }
  if (characters_of(name) > max_atom_characters) return corrupt("an atom of over 255 characters");
  return Atom{std::move(name)};
}

Result<Atom> TermReader::read_node() {
  ZED_TRY(const std::uint64_t byte, number(1));
  switch (byte) {
  case tag::latin1_atom:
  case tag::small_latin1_atom:
  case tag::utf8_atom:
  case tag::small_utf8_atom: return read_atom(static_cast<std::uint8_t>(byte));
  default: return corrupt("no atom where a node's name belongs");
  }
}

Result<Term> TermReader::read_pid(bool wide_creation) {
  Pid pid;
  ZED_TRY(pid.node, read_node());
  ZED_TRY(const std::uint64_t id, number(4));
  ZED_TRY(const std::uint64_t serial, number(4));
  ZED_TRY(const std::uint64_t creation, number(wide_creation ? 4 : 1));
  pid.id = static_cast<std::uint32_t>(id);
  pid.serial = static_cast<std::uint32_t>(serial);
  pid.creation = static_cast<std::uint32_t>(creation);
  return Term(std::move(pid));
}

Result<Term> TermReader::read_port(std::uint8_t tag) {
  Port port;
  ZED_TRY(port.node, read_node());
  ZED_TRY(port.id, number(tag == tag::v4_port ? 8 : 4));
  ZED_TRY(const std::uint64_t creation, number(tag == tag::old_port ? 1 : 4));
  port.creation = static_cast<std::uint32_t>(creation);
  return Term(std::move(port));
}

Result<Term> TermReader::read_reference(bool wide_creation) {
  Reference reference;
  ZED_TRY(const std::uint64_t count, number(2));
  if (count < 1 || count > reference.ids.size())
    return corrupt("a reference of " + std::to_string(count) + " words");
  ZED_TRY(reference.node, read_node());
  ZED_TRY(const std::uint64_t creation, number(wide_creation ? 4 : 1));
  reference.creation = static_cast<std::uint32_t>(creation);
  reference.count = static_cast<std::uint8_t>(count);
  for (std::uint8_t i = 0; i < reference.count; ++i) {
    ZED_TRY(const std::uint64_t word, number(4));
    reference.ids[i] = static_cast<std::uint32_t>(word);
  }
  return Term(std::move(reference));
}

/// fun m:f/a. The parts are read so that what is kept is known to be well-formed.
Result<Term> TermReader::read_export(std::size_t start, std::size_t depth) {
  ZED_CHECK(reserve(3));
  for (int i = 0; i < 3; ++i) {
    ZED_TRY(const Term part, read_at(depth + 1));
    const bool right = i < 2 ? part.as<Atom>() != nullptr : part.as<std::int64_t>() != nullptr;
    if (!right) return corrupt("a malformed function name");
  }
  return Term(opaque_since(start));
}

Result<Term> TermReader::read_function(std::size_t start, std::size_t depth) {
  const std::size_t counted_from = offset_;
  ZED_TRY(const std::uint64_t size, number(4));
  ZED_TRY(const std::string fixed, take(1 + 16 + 4));  // arity, uniq, index
  ZED_TRY(const std::uint64_t free_variables, number(4));
  constexpr std::uint64_t fields = 4;  // module, old index, old uniq, pid
  ZED_CHECK(reserve(free_variables + fields));
  ZED_TRY(const Term module, read_at(depth + 1));
  ZED_TRY(const Term old_index, read_at(depth + 1));
  ZED_TRY(const Term old_uniq, read_at(depth + 1));
  ZED_TRY(const Term creator, read_at(depth + 1));
  if (module.as<Atom>() == nullptr || old_index.as<std::int64_t>() == nullptr ||
      old_uniq.as<std::int64_t>() == nullptr || creator.as<Pid>() == nullptr)
    return corrupt("a function that is none");
  for (std::uint64_t i = 0; i < free_variables; ++i) {
    ZED_TRY(const Term variable, read_at(depth + 1));
  }
  if (offset_ - counted_from != size) return corrupt("a function of the wrong size");
  return Term(opaque_since(start));
}

Result<Term> decode(std::span<const std::uint8_t> bytes, TermLimits limits) {
  TermReader reader(bytes, limits);
  ZED_TRY(Term term, reader.read_versioned());
  if (!reader.at_end())
    return fail(ErrorCode::corrupt, std::to_string(bytes.size() - reader.offset()) +
                                        " bytes are left over after the term");
  return term;
}

}  // namespace zed::beam
