// The term codec against erl's own term_to_binary and binary_to_term, on thousands of terms that
// neither side chose for the other.
#include <gtest/gtest.h>

#include <algorithm>

#include "beam/etf.hpp"
#include "beam/test_terms.hpp"
#include "beam/wire.hpp"
#include "fixture.hpp"

namespace zed::interop {
namespace {

constexpr int terms = 3000;

/// Printed with every failure; a test that failed is repeated with it.
std::uint64_t seed() {
  const char* given = std::getenv("ZED_CODEC_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : 20'240'413;
}

/// What two encodings of one Erlang term have in common: a list of bytes is a list, a map has its
/// keys in one order, and each once.
Term canonical(const Term& term);

std::vector<Term> all_canonical(const std::vector<Term>& items) {
  std::vector<Term> out;
  out.reserve(items.size());
  for (const Term& item : items)
    out.push_back(canonical(item));
  return out;
}

struct Canonical {
  Term operator()(const beam::ByteList& bytes) const {
    beam::List list;
    for (char c : bytes.bytes)
      list.items.push_back(Term(std::int64_t{static_cast<unsigned char>(c)}));
    return list;
  }
  Term operator()(const beam::List& list) const { return beam::List{all_canonical(list.items)}; }
  Term operator()(const beam::ImproperList& list) const {
    std::vector<Term> items = all_canonical(list.items);
    // [a | [b, c]] is [a, b, c].
    const auto* tail = items.back().as<beam::List>();
    if (tail == nullptr) return beam::ImproperList{std::move(items)};
    std::vector<Term> whole(items.begin(), items.end() - 1);
    whole.insert(whole.end(), tail->items.begin(), tail->items.end());
    return beam::List{std::move(whole)};
  }
  Term operator()(const beam::Tuple& t) const { return beam::Tuple{all_canonical(t.items)}; }
  Term operator()(const beam::Map& map) const {
    std::map<std::string, std::pair<Term, Term>> members;
    for (const auto& [key, value] : map.members) {
      Term known = canonical(key);
      members.insert_or_assign(beam::encode(known), std::make_pair(known, canonical(value)));
    }
    beam::Map out;
    for (auto& entry : members)
      out.members.push_back(std::move(entry.second));
    return out;
  }
  template <class Leaf> Term operator()(const Leaf& leaf) const { return leaf; }
};

Term canonical(const Term& term) {
  return std::visit(Canonical{}, term.data());
}

Term generated(std::uint64_t number) {
  static const auto generator = beam::arbitrary_term(4);
  return canonical(generator(rc::Random(seed() + number), 40).value());
}

TEST_F(Interop, OursAreReadByErlAndComeBackTheSame) {
  int checked = 0;
  answer = [&](const beam::Call& call) {
    const auto* parts = call.request.tuple_of(2);
    if (parts == nullptr) return false;
    const auto number = static_cast<std::uint64_t>(*(*parts)[0].as<std::int64_t>());
    if (const auto* bytes = (*parts)[1].as<beam::Binary>()) {
      auto back = beam::decode(beam::bytes_of(bytes->bytes));
      EXPECT_TRUE(back) << back.error().describe();
      if (back) {
        EXPECT_TRUE(canonical(*back) == generated(number))
            << "term " << number << " was\n"
            << show(generated(number), 2000) << "\nand is\n"
            << show(canonical(*back), 2000);
      }
      ++checked;
    }
    (void)node->reply(call, binary(beam::encode(generated(number + 1))));
    return true;
  };
  EXPECT_EQ(eval("F = fun F(" + std::to_string(terms) +
                 ", _) -> done;"
                 " F(I, B) -> T = binary_to_term(B, [safe]),"
                 "   F(I + 1, gen_server:call({zed,N}, {I, term_to_binary(T)})) end,"
                 // Atoms that the terms use, so that `safe` holds: nothing new may be made.
                 " _ = [ok, 'Elixir.Zed', '', list_to_atom([252]), a@b, zed@server, head, tail],"
                 " F(0, gen_server:call({zed,N}, {-1, first}))"),
            "done")
      << "ZED_CODEC_SEED=" << seed();
  EXPECT_EQ(checked, terms);
}

/// Every kind of term that Erlang has, nested: big integers of both signs, floats with all bits,
/// improper lists, maps in maps, bit strings, functions, unicode atoms, ports, pids, references.
std::string generator_with(const std::string& closure) {
  std::string text = R"(
  Leaf = fun() -> case rand:uniform(22) of
    1 -> rand:uniform(1 bsl 8) - 1;
    2 -> rand:uniform(1 bsl 33) - (1 bsl 32);
    3 -> (1 bsl rand:uniform(70)) * (1 - 2 * rand:uniform(2) + 2) - rand:uniform(3) + 1;
    4 -> -(1 bsl rand:uniform(700)) + rand:uniform(1 bsl 60);
    5 -> (1 bsl (2048 + rand:uniform(64))) - rand:uniform(9);
    6 -> rand:normal() * math:pow(10, rand:uniform(300) - 150);
    7 -> -0.0;
    8 -> 5.0e-324;
    9 -> lists:nth(rand:uniform(4), [ok, 'Grüße', '模型', '']);
    10 -> list_to_atom([16#1F600 || _ <- lists:seq(1, 63)] ++ integer_to_list(rand:uniform(9)));
    11 -> rand:bytes(rand:uniform(300) - 1);
    12 -> S = rand:uniform(50), <<B:S/bitstring, _/bitstring>> = rand:bytes(8), B;
    13 -> [rand:uniform(256) - 1 || _ <- lists:seq(1, rand:uniform(40))];
    14 -> [rand:uniform(300) - 1 || _ <- lists:seq(1, rand:uniform(40))];
    15 -> "text äöü";
    16 -> binary_to_term(<<131,88,119,3,"a@b",(rand:uniform(1 bsl 32) - 1):32,1:32,7:32>>);
    17 -> binary_to_term(<<131,90,3:16,119,3,"a@b",7:32,(rand:uniform(1 bsl 18) - 1):32,2:32,3:32>>);
    18 -> binary_to_term(<<131,120,119,3,"a@b",(rand:uniform(1 bsl 64) - 1):64,7:32>>);
    19 -> fun lists:map/2;
    20 -> X = rand:uniform(99), CLOSURE;
    21 -> {};
    22 -> [] end end,
  Term = fun Term(0) -> Leaf();
    Term(D) -> M = fun() -> Term(D - 1) end, K = rand:uniform(6) - 1, case rand:uniform(7) of
      1 -> [M() || _ <- lists:seq(1, K)];
      2 -> list_to_tuple([M() || _ <- lists:seq(1, K)]);
      3 -> [M() | M()];
      4 -> maps:from_list([{M(), M()} || _ <- lists:seq(1, K)]);
      5 -> maps:from_list([{I, Leaf()} || I <- lists:seq(1, 30 + K)]);
      6 -> list_to_tuple(lists:duplicate(253 + K, Leaf()));
      7 -> Leaf() end end,
)";
  const std::string mark = "CLOSURE";
  return text.replace(text.find(mark), mark.size(), closure);
}

TEST_F(Interop, TheirsAreReadByUsAndComeBackTheSame) {
  answer = [&](const beam::Call& call) {
    const auto* bytes = call.request.as<beam::Binary>();
    if (bytes == nullptr) return false;
    auto term = beam::decode(beam::bytes_of(bytes->bytes));
    (void)node->reply(call, term ? binary(beam::encode(*term))
                                 : tuple({atom("refused"), binary(term.error().describe())}));
    return true;
  };
  const std::string count = std::to_string(terms);
  EXPECT_EQ(
      eval("rand:seed(exsss, " + std::to_string(seed()) + "), " +
           generator_with("fun(Y) -> {X, Y} end") +
           " Try = fun(T) -> B = term_to_binary(T),"
           "   case gen_server:call({zed,N}, B) of"
           "     R when is_binary(R) -> case binary_to_term(R) of T -> same; _ -> {differs, T} end;"
           "     {refused, Why} -> {Why, byte_size(B), T} end end,"
           " lists:usort([Try(Term(rand:uniform(4) - 1)) || _ <- lists:seq(1, " +
           count + ")])"),
      "[same]")
      << "ZED_CODEC_SEED=" << seed();
}

TEST_F(Interop, TheirCutAndChangedBytesAreRefusedOrMeanTheSameToBoth) {
  int refused = 0;
  answer = [&](const beam::Call& call) {
    const auto* bytes = call.request.as<beam::Binary>();
    if (bytes == nullptr) return false;
    auto term = beam::decode(beam::bytes_of(bytes->bytes));
    refused += term ? 0 : 1;
    (void)node->reply(call, term ? binary(beam::encode(*term)) : atom("refused"));
    return true;
  };
  // What we take, erl takes too, and it is the same term. (What we refuse may be legal: compressed
  // terms, atom cache references.) No closures: of those made by its own node erl checks more.
  EXPECT_EQ(eval("rand:seed(exsss, " + std::to_string(seed()) + "), " + generator_with("X") +
                 R"(
  Harm = fun(B) -> At = rand:uniform(byte_size(B)) - 1,
    <<Head:At/binary, Byte, Tail/binary>> = B,
    case rand:uniform(3) of
      1 -> <<Head/binary, (Byte bxor (1 bsl (rand:uniform(8) - 1))), Tail/binary>>;
      2 -> Head;
      3 -> <<Head/binary, Tail/binary>> end end,
  Safe = fun(B) -> try {ok, binary_to_term(B)} catch error:badarg -> badarg end end,
  Try = fun(T) -> B = Harm(term_to_binary(T)),
    case gen_server:call({zed,N}, B) of
      refused -> fine;
      R -> case {Safe(B), Safe(R)} of
        {{ok, Same}, {ok, Same}} -> fine;
        {badarg, _} -> {we_are_lenient, B};
        {A, Z} -> {differs, B, A, Z} end end end,
  lists:usort([Try(Term(rand:uniform(3) - 1)) || _ <- lists:seq(1, 3000)]))"),
            "[fine]")
      << "ZED_CODEC_SEED=" << seed();
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace zed::interop
