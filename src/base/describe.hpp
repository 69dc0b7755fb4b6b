#pragma once
// Structs to Values and back, from one description a type:
//
//   struct Heartbeat {
//     Bytes pool_free;
//     std::vector<AttemptPhase> attempts;
//     template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
//       visit("pool_free", self.pool_free);
//       visit("attempts", self.attempts);
//     }
//   };
//
//   Value v = to_value(heartbeat);
//   Result<Heartbeat> back = from_value<Heartbeat>(v);
//
// Decoding is total: a missing member keeps its default, an unknown one is ignored, a member of the
// wrong kind is an error naming its path. An enum is described by `constexpr auto enum_names(E)`
// returning a std::array of its names in order; a std::variant's alternatives each carry
// `static constexpr std::string_view tag`, written as the member "type".

#include <array>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/enum.hpp"
#include "base/id.hpp"
#include "base/result.hpp"
#include "base/units.hpp"
#include "base/value.hpp"

namespace zed {

template <class T>
concept Described = requires(T& t) {
  T::fields(t, [](std::string_view, auto&) {});
};

/// A type that is text outside: has `std::string str() const` and a static `parse` that gives an
/// optional or a Result of itself. With a static member `empty_is_unset`, "" is its default.
template <class T>
concept Textual = requires(const T& t) {
  { t.str() } -> std::convertible_to<std::string>;
  T::parse(std::string_view{});
};

/// What every decoder says of a wrong member.
inline tl::unexpected<Error> wrong_kind(std::string_view wanted, const Value& got) {
  return fail(ErrorCode::invalid,
              "expected " + std::string(wanted) + ", got " + std::string(got.kind()));
}

// One specialisation of Codec a shape of type; to_value and from_value below are the entry points.
template <class T> struct Codec;

template <class T> Value to_value(const T& object) {
  return Codec<T>::encode(object);
}
template <class T> Result<T> from_value(const Value& value) {
  return Codec<T>::decode(value);
}

template <> struct Codec<Value> {
  static Value encode(const Value& v) { return v; }
  static Result<Value> decode(const Value& v) { return v; }
};

template <> struct Codec<bool> {
  static Value encode(bool b) { return b; }
  static Result<bool> decode(const Value& v) {
    if (auto* b = v.as_bool()) return *b;
    return wrong_kind("true or false", v);
  }
};

template <std::integral T>
requires(!std::same_as<T, bool>) struct Codec<T> {
  // Unsigned 64-bit numbers are guids and counters; those beyond the signed range travel as text,
  // which no JSON reader rounds.
  static Value encode(T n) {
    if constexpr (sizeof(T) == 8 && std::unsigned_integral<T>) {
      if (n > static_cast<T>(INT64_MAX)) return std::to_string(n);
    }
    return static_cast<std::int64_t>(n);
  }
  static Result<T> decode(const Value& v) {
    if (auto* n = v.as_int()) {
      if (std::in_range<T>(*n)) return static_cast<T>(*n);
      return fail(ErrorCode::invalid, std::to_string(*n) + " is out of range");
    }
    if (auto* text = v.as_text(); text != nullptr && std::unsigned_integral<T>) {
      T n{};
      auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), n);
      if (error == std::errc{} && end == text->data() + text->size()) return n;
    }
    return wrong_kind("a whole number", v);
  }
};

template <> struct Codec<double> {
  static Value encode(double d) { return d; }
  static Result<double> decode(const Value& v) {
    if (auto* d = v.as_double()) return *d;
    if (auto* n = v.as_int()) return static_cast<double>(*n);
    return wrong_kind("a number", v);
  }
};

template <> struct Codec<std::string> {
  static Value encode(const std::string& s) { return s; }
  static Result<std::string> decode(const Value& v) {
    if (auto* text = v.as_text()) return *text;
    return wrong_kind("text", v);
  }
};

template <class Tag> struct Codec<Quantity<Tag>> {
  static Value encode(Quantity<Tag> q) { return q.value; }
  static Result<Quantity<Tag>> decode(const Value& v) {
    ZED_TRY(auto n, from_value<std::int64_t>(v));
    return Quantity<Tag>{n};
  }
};

template <> struct Codec<WallTime> {
  static Value encode(WallTime t) { return t.ms; }
  static Result<WallTime> decode(const Value& v) {
    ZED_TRY(auto n, from_value<std::int64_t>(v));
    return WallTime{n};
  }
};

template <Textual T> struct Codec<T> {
  static Value encode(const T& t) { return std::string(t.str()); }
  static Result<T> decode(const Value& v) {
    auto* text = v.as_text();
    if (text == nullptr) return wrong_kind("text", v);
    if constexpr (requires { T::empty_is_unset; })
      if (text->empty()) return T{};
    auto parsed = T::parse(*text);
    if (parsed) return std::move(*parsed);
    if constexpr (requires { parsed.error(); })
      return fail(std::move(parsed).error());
    else
      return fail(ErrorCode::invalid, "cannot read \"" + text->substr(0, 80) + "\"");
  }
};

template <class Tag> struct Codec<Name<Tag>> {
  static Value encode(const Name<Tag>& n) { return n.str(); }
  static Result<Name<Tag>> decode(const Value& v) {
    if (auto* text = v.as_text()) return Name<Tag>(*text);
    return wrong_kind("text", v);
  }
};

template <NamedEnum E> struct Codec<E> {
  static Value encode(E e) { return Symbol{std::string(to_string(e))}; }
  static Result<E> decode(const Value& v) {
    auto* text = v.as_text();
    if (text == nullptr) return wrong_kind("a word", v);
    if (auto e = enum_of<E>(*text)) return *e;
    return fail(ErrorCode::invalid, "unknown word \"" + text->substr(0, 80) + "\"");
  }
};

template <class T> struct Codec<std::optional<T>> {
  static Value encode(const std::optional<T>& o) { return o ? to_value(*o) : Value(); }
  static Result<std::optional<T>> decode(const Value& v) {
    if (v.is_null()) return std::optional<T>{};
    ZED_TRY(auto inner, from_value<T>(v));
    return std::optional<T>(std::move(inner));
  }
};

template <class T> struct Codec<std::vector<T>> {
  static Value encode(const std::vector<T>& items) {
    Value::List list;
    list.reserve(items.size());
    for (const T& item : items)
      list.push_back(to_value(item));
    return list;
  }
  static Result<std::vector<T>> decode(const Value& v) {
    auto* list = v.as_list();
    if (list == nullptr) return wrong_kind("a list", v);
    std::vector<T> items;
    items.reserve(list->size());
    for (std::size_t i = 0; i < list->size(); ++i) {
      auto item = from_value<T>((*list)[i]);
      if (!item) return fail(std::move(item).error().with("[" + std::to_string(i) + "]"));
      items.push_back(std::move(*item));
    }
    return items;
  }
};

/// Maps with textual keys; std::string keys stand for themselves.
template <class K, class T> struct Codec<std::map<K, T>> {
  static Value encode(const std::map<K, T>& entries) {
    Value::Map members;
    members.reserve(entries.size());
    for (const auto& [key, item] : entries)
      members.push_back({*to_value(key).as_text(), to_value(item)});
    return members;
  }
  static Result<std::map<K, T>> decode(const Value& v) {
    auto* members = v.as_map();
    if (members == nullptr) return wrong_kind("a map", v);
    std::map<K, T> entries;
    for (const auto& member : *members) {
      ZED_TRY(auto key, from_value<K>(Value(member.key)));
      auto item = from_value<T>(member.value);
      if (!item) return fail(std::move(item).error().with(member.key));
      entries.emplace(std::move(key), std::move(*item));
    }
    return entries;
  }
};

template <class T> struct Codec<std::set<T>> {
  static Value encode(const std::set<T>& items) {
    return to_value(std::vector<T>(items.begin(), items.end()));
  }
  static Result<std::set<T>> decode(const Value& v) {
    ZED_TRY(auto items, from_value<std::vector<T>>(v));
    return std::set<T>(items.begin(), items.end());
  }
};

template <Described T> struct Codec<T> {
  static Value encode(const T& object) {
    Value v = Value::map();
    T::fields(object,
              [&v](std::string_view name, const auto& field) { v.set(name, to_value(field)); });
    return v;
  }
  static Result<T> decode(const Value& v) {
    if (v.as_map() == nullptr) return wrong_kind("a map", v);
    T object{};
    std::optional<Error> error;
    T::fields(object, [&](std::string_view name, auto& field) {
      const Value* member = error ? nullptr : v.find(name);
      if (member == nullptr) return;
      auto decoded = from_value<std::remove_reference_t<decltype(field)>>(*member);
      if (decoded)
        field = std::move(*decoded);
      else
        error = std::move(decoded).error().with(std::string(name));
    });
    if (error) return fail(std::move(*error));
    return object;
  }
};

template <> struct Codec<Error> {
  static Value encode(const Error& error) {
    Value v = Value::map();
    v.set("code", Symbol{std::string(to_string(error.code))});
    v.set("message", error.message);
    v.set("frames", to_value(error.frames));
    v.set("hint", error.hint);
    return v;
  }
  static Result<Error> decode(const Value& v) {
    if (v.as_map() == nullptr) return wrong_kind("a map", v);
    auto text = [&v](std::string_view key) {
      const Value* member = v.find(key);
      const std::string* found = member != nullptr ? member->as_text() : nullptr;
      return found != nullptr ? *found : std::string();
    };
    Error error{error_code_of(text("code")), text("message"), {}, text("hint")};
    if (const Value* frames = v.find("frames")) {
      ZED_TRY(error.frames, from_value<std::vector<std::string>>(*frames));
    }
    return error;
  }
};

template <class... Alternatives> struct Codec<std::variant<Alternatives...>> {
  using Variant = std::variant<Alternatives...>;
  static Value encode(const Variant& variant) {
    return std::visit(
        [](const auto& alternative) {
          Value v = to_value(alternative);
          v.set("type", Symbol{std::string(std::decay_t<decltype(alternative)>::tag)});
          return v;
        },
        variant);
  }
  static Result<Variant> decode(const Value& v) {
    const Value* type = v.find("type");
    const std::string* tag = type != nullptr ? type->as_text() : nullptr;
    if (tag == nullptr) return fail(ErrorCode::invalid, "no \"type\" says what this is");
    Result<Variant> result =
        fail(ErrorCode::unsupported, "unknown type \"" + tag->substr(0, 80) + "\"");
    (try_one<Alternatives>(*tag, v, result), ...);
    return result;
  }

private:
  template <class Alternative>
  static void try_one(const std::string& tag, const Value& v, Result<Variant>& result) {
    if (tag != Alternative::tag) return;
    auto decoded = from_value<Alternative>(v);
    if (decoded)
      result = Variant(std::move(*decoded));
    else
      result = fail(std::move(decoded).error().with(tag));
  }
};

}  // namespace zed
