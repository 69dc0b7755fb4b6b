#pragma once
// Enums with names: `constexpr auto enum_names(E)` returns a std::array of the names in order.

#include <array>
#include <optional>
#include <string_view>
#include <type_traits>

namespace zed {

template <class E>
concept NamedEnum = std::is_enum_v<E> && requires(E e) {
  enum_names(e);
};

template <NamedEnum E> constexpr std::string_view to_string(E e) {
  return enum_names(e)[static_cast<std::size_t>(e)];
}

template <NamedEnum E> constexpr std::optional<E> enum_of(std::string_view name) {
  constexpr auto names = enum_names(E{});
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<E>(i);
  return std::nullopt;
}

}  // namespace zed
