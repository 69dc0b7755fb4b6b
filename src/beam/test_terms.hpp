#pragma once
// Arbitrary terms for property tests.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <rapidcheck.h>

#include "beam/term.hpp"

namespace zed::beam {

inline rc::Gen<Term> arbitrary_leaf() {
  const auto node = rc::gen::map(rc::gen::element<std::string>("a@b", "zed@server"),
                                 [](std::string name) { return Atom{std::move(name)}; });
  const auto word = rc::gen::arbitrary<std::uint32_t>();
  return rc::gen::oneOf(
      rc::gen::map(rc::gen::arbitrary<std::int64_t>(), [](std::int64_t n) { return Term(n); }),
      rc::gen::map(rc::gen::inRange<std::int64_t>(-300, 300),
                   [](std::int64_t n) { return Term(n); }),
      rc::gen::map(
          word,
          [](std::uint32_t n) { return Term(static_cast<std::uint64_t>(INT64_MAX) + 1 + n); }),
      rc::gen::map(word, [](std::uint32_t n) { return Term(n / 7.0); }),
      rc::gen::map(rc::gen::element<std::string>("", "ok", "\xc3\xbc", "Elixir.Zed"),
                   [](const std::string& name) { return atom(name); }),
      rc::gen::map(rc::gen::arbitrary<std::string>(), [](std::string s) { return binary(s); }),
      rc::gen::map(rc::gen::nonEmpty<std::string>(),
                   [](std::string s) { return Term(ByteList{std::move(s)}); }),
      rc::gen::map(
          rc::gen::tuple(node, word, word, word),
          [](std::tuple<Atom, std::uint32_t, std::uint32_t, std::uint32_t> t) {
            return Term(Pid{std::get<0>(t), std::get<1>(t), std::get<2>(t), std::get<3>(t)});
          }),
      rc::gen::map(rc::gen::tuple(node, word, word, rc::gen::inRange(1, 6)),
                   [](std::tuple<Atom, std::uint32_t, std::uint32_t, int> t) {
                     Reference reference{std::get<0>(t), std::get<1>(t), {}, 0};
                     reference.count = static_cast<std::uint8_t>(std::get<3>(t));
                     for (std::uint8_t i = 0; i < reference.count; ++i)
                       reference.ids[i] = std::get<2>(t) + i;
                     return Term(reference);
                   }),
      rc::gen::map(rc::gen::tuple(node, rc::gen::arbitrary<std::uint64_t>(), word),
                   [](std::tuple<Atom, std::uint64_t, std::uint32_t> t) {
                     return Term(Port{std::get<0>(t), std::get<1>(t), std::get<2>(t)});
                   }));
}

inline rc::Gen<Term> arbitrary_term(int depth = 3) {
  if (depth == 0) return arbitrary_leaf();
  const auto some = [depth] {
    return rc::gen::resize(5, rc::gen::container<std::vector<Term>>(arbitrary_term(depth - 1)));
  };
  return rc::gen::oneOf(
      arbitrary_leaf(),
      rc::gen::map(rc::gen::lazy(some), [](std::vector<Term> t) { return list(std::move(t)); }),
      rc::gen::map(rc::gen::lazy(some), [](std::vector<Term> t) { return tuple(std::move(t)); }),
      rc::gen::map(rc::gen::lazy(some),
                   [](std::vector<Term> t) {
                     // Two leaves more: at least two items, and a tail that is no list.
                     t.push_back(atom("head"));
                     t.push_back(atom("tail"));
                     return Term(ImproperList{std::move(t)});
                   }),
      rc::gen::map(rc::gen::lazy(some), [](std::vector<Term> t) {
        Map map;
        for (std::size_t i = 0; i + 1 < t.size(); i += 2) {
          const bool is_new =
              std::none_of(map.members.begin(), map.members.end(),
                           [&](const auto& member) { return member.first == t[i]; });
          if (is_new) map.members.emplace_back(t[i], t[i + 1]);
        }
        return Term(std::move(map));
      }));
}

}  // namespace zed::beam
