#include "api/vocabulary.hpp"

#include <set>
#include <string>

#include "api/operations.hpp"

namespace zed::api {
namespace {

using Words = std::set<std::string, std::less<>>;

// Walks a type, not a value: empty lists and unset members have words as well.
template <class T> struct Collector {
  static void collect(Words& words) {
    if constexpr (Described<T>) {
      T object{};
      T::fields(object, [&words](std::string_view name, auto& member) {
        words.emplace(name);
        Collector<std::remove_reference_t<decltype(member)>>::collect(words);
      });
    }
  }
};
template <class T> struct Collector<std::vector<T>> : Collector<T> {};
template <class T> struct Collector<std::optional<T>> : Collector<T> {};
// The keys of a map are data; its values may have members.
template <class K, class T> struct Collector<std::map<K, T>> : Collector<T> {};
template <class... Alternatives> struct Collector<std::variant<Alternatives...>> {
  static void collect(Words& words) { (Collector<Alternatives>::collect(words), ...); }
};

template <class... Operations> Words words_of(std::variant<Operations...>*) {
  Words words{"schema", "last", "type", "code", "message", "frames", "hint"};
  (Collector<typename Operations::Reply>::collect(words), ...);
  return words;
}

}  // namespace

bool is_member_name(std::string_view word) {
  static const Words words = words_of(static_cast<Request*>(nullptr));
  return words.contains(word);
}

}  // namespace zed::api
