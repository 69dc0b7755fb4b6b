#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>

#include "beam/etf.hpp"
#include "beam/term_value.hpp"
#include "beam/test_terms.hpp"
#include "beam/wire.hpp"

namespace zed::beam {
namespace {

using namespace std::string_literals;

struct Row {
  const char* shown;
  std::string bytes;  ///< without the version byte; what a BEAM writes, unless `reads_only`
  bool reads_only = false;
};

/// As OTP 25 writes them: term_to_binary in an Erlang shell.
const std::vector<Row>& table() {
  static const std::vector<Row> rows{
      {"0", "a\x00"s},
      {"255", "a\xff"s},
      {"256", "b\x00\x00\x01\x00"s},
      {"-1", "b\xff\xff\xff\xff"s},
      {"2147483647", "b\x7f\xff\xff\xff"s},
      {"2147483648", "n\x04\x00\x00\x00\x00\x80"s},
      {"-2147483649", "n\x04\x01\x01\x00\x00\x80"s},
      {"9223372036854775807", "n\x08\x00\xff\xff\xff\xff\xff\xff\xff\x7f"s},
      {"-9223372036854775808", "n\x08\x01\x00\x00\x00\x00\x00\x00\x00\x80"s},
      {"18446744073709551615", "n\x08\x00\xff\xff\xff\xff\xff\xff\xff\xff"s},
      {"#Opaque<12 bytes>", "n\x09\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01"s},
      {"#Opaque<11 bytes>", "n\x08\x01\x01\x00\x00\x00\x00\x00\x00\x80"s},
      {"7", "n\x01\x00\x07"s, true},
      {"0", "n\x00\x00"s, true},
      {"7", "o\x00\x00\x00\x0a\x00\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00"s, true},
      {"1.5", "F\x3f\xf8\x00\x00\x00\x00\x00\x00"s},
      {"1.5", "c1.50000000000000000000e+00\x00\x00\x00\x00\x00"s, true},
      {"ok", "w\x02ok"s},
      {"ok", "d\x00\x02ok"s, true},
      {"ok", "s\x02ok"s, true},
      {"ok", "v\x00\x02ok"s, true},
      {"'\xc3\xbc'", "s\x01\xfc"s, true},
      {"'\xc3\xbc'", "w\x02\xc3\xbc"s},
      {"'$gen_call'", "w\x09$gen_call"s},
      {"<<\"hi\">>", "m\x00\x00\x00\x02hi"s},
      {"\"abc\"", "k\x00\x03"
                  "abc"s},
      {"[]", "j"s},
      {"[]", "k\x00\x00"s, true},
      {"[]", "l\x00\x00\x00\x00j"s, true},
      {"[ok]", "l\x00\x00\x00\x01w\x02okj"s},
      {"[ok|ok]", "l\x00\x00\x00\x01w\x02okw\x02ok"s},
      {"[ok,ok]", "l\x00\x00\x00\x01w\x02okl\x00\x00\x00\x01w\x02okj"s, true},
      {"[ok,97]",
       "l\x00\x00\x00\x01w\x02okk\x00\x01"
       "a"s,
       true},
      {"{}", "h\x00"s},
      {"{ok,1}", "h\x02w\x02ok"
                 "a\x01"s},
      {"{ok}", "i\x00\x00\x00\x01w\x02ok"s, true},
      {"#{ok=>1}", "t\x00\x00\x00\x01w\x02ok"
                   "a\x01"s},
      {"<a@b.1.2>", "Xw\x03"
                    "a@b\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x03"s},
      {"<a@b.1.2>",
       "gw\x03"
       "a@b\x00\x00\x00\x01\x00\x00\x00\x02\x03"s,
       true},
      {"#Ref<a@b.1.2.3>", "Z\x00\x03w\x03"
                          "a@b\x00\x00\x00\x09\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x03"s},
      {"#Ref<a@b.1.2.3.4.5>",
       "Z\x00\x05w\x03"
       "a@b\x00\x00\x00\x09\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00"
       "\x00\x04\x00\x00\x00\x05"s},
      {"#Ref<a@b.1>",
       "r\x00\x01w\x03"
       "a@b\x09\x00\x00\x00\x01"s,
       true},
      {"#Port<a@b.7>", "Yw\x03"
                       "a@b\x00\x00\x00\x07\x00\x00\x00\x03"s},
      {"#Port<a@b.4294967296>", "xw\x03"
                                "a@b\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x03"s},
      {"#Opaque<7 bytes>", "M\x00\x00\x00\x01\x03\xa0"s},
      {"#Opaque<10 bytes>", "qw\x02osw\x01xa\x01"s},
  };
  return rows;
}

TEST(Etf, EveryFormIsReadAndWrittenAsABeamDoes) {
  for (const Row& row : table()) {
    auto term = decode(bytes_of("\x83" + row.bytes));
    ASSERT_TRUE(term) << row.shown << ": " << term.error().describe();
    EXPECT_EQ(show(*term), row.shown);
    if (row.reads_only) continue;
    EXPECT_EQ(encode(*term), "\x83" + row.bytes) << row.shown;
  }
}

TEST(Etf, EveryFormCutShortOrLengthenedIsAnError) {
  for (const Row& row : table()) {
    const std::string whole = "\x83" + row.bytes;
    for (std::size_t size = 0; size < whole.size(); ++size)
      EXPECT_FALSE(decode(bytes_of(whole.substr(0, size)))) << row.shown << " at " << size;
    EXPECT_FALSE(decode(bytes_of(whole + "j"))) << row.shown;
  }
}

TEST(Etf, WhatNoBeamSendsIsRefused) {
  const std::vector<std::pair<const char*, std::string>> rows{
      {"version", "\x82j"},
      {"unknown tag", "\x83\x01"},
      {"compressed", "\x83P\x00\x00\x00\x05xxxxx"s},
      {"atom cache", "\x83R\x00"s},
      {"sign", "\x83n\x01\x02\x07"s},
      {"NaN", "\x83"
              "F\x7f\xf8\x00\x00\x00\x00\x00\x00"s},
      {"infinity", "\x83"
                   "F\x7f\xf0\x00\x00\x00\x00\x00\x00"s},
      {"text float", "\x83"
                     "c" +
                         std::string(31, 'x')},
      {"infinite text float", "\x83"
                              "cinf" +
                                  std::string(28, '\0')},
      {"atom not UTF-8", "\x83w\x01\xff"s},
      {"long atom", "\x83v\x01\x00" + std::string(256, 'a')},
      {"map with one key twice", "\x83t\x00\x00\x00\x02w\x01"
                                 "aa\x01w\x01"
                                 "aa\x02"s},
      {"reference of no words", "\x83Z\x00\x00w\x01"
                                "a\x00\x00\x00\x01"s},
      {"reference of six words", "\x83Z\x00\x06w\x01"
                                 "a\x00\x00\x00\x01" +
                                     std::string(24, '\0')},
      {"node that is no atom", "\x83Xa\x01" + std::string(12, '\0')},
      {"bit string without bytes", "\x83M\x00\x00\x00\x00\x03"s},
      {"bit string of 9 bits", "\x83M\x00\x00\x00\x01\x09\x00"s},
      {"empty list with tail", "\x83l\x00\x00\x00\x00"
                               "a\x01"s},
      {"export without arity", "\x83qw\x02osw\x01xw\x01x"s},
      {"function of wrong size", "\x83p\x00\x00\x00\x05" + std::string(25, '\0')},
  };
  for (const auto& [what, bytes] : rows)
    EXPECT_FALSE(decode(bytes_of(bytes))) << what;
}

TEST(Etf, AHostileLengthIsRefusedBeforeMemoryIsTaken) {
  for (const char tag : {'l', 'i', 't', 'm', 'o', 'p', 'M'}) {
    const std::string bytes = "\x83"s + tag + "\xff\xff\xff\xff" + std::string(40, 'j');
    auto term = decode(bytes_of(bytes));
    ASSERT_FALSE(term) << tag;
  }
}

TEST(Etf, DepthCountAndSizeAreLimited) {
  std::string deep = "\x83";
  for (int i = 0; i < 130; ++i)
    deep += "h\x01";
  deep += "j";
  auto term = decode(bytes_of(deep));
  ASSERT_FALSE(term);
  EXPECT_NE(term.error().message.find("128"), std::string::npos);

  std::string wide = "\x83l";
  put(wide, 200'000, 4);
  wide += std::string(200'001, 'j');
  term = decode(bytes_of(wide));
  ASSERT_FALSE(term);
  EXPECT_NE(term.error().message.find("131072"), std::string::npos);

  // Lists in tails take the budget too, also where the tail is bytes that become terms.
  TermLimits few;
  few.max_terms = 10;
  EXPECT_FALSE(decode(bytes_of("\x83l\x00\x00\x00\x01jk\x00\x0f"s + std::string(15, 'x')), few));

  std::string big = "\x83m";
  put(big, 2'000'000, 4);
  big += std::string(2'000'000, 'x');
  EXPECT_EQ(decode(bytes_of(big)).error().code, ErrorCode::invalid);
}

TEST(Etf, AFunctionIsKeptAsItCame) {
  std::string body;
  put(body, 1, 1);
  body += std::string(16, 'u');
  put(body, 0, 4);
  put(body, 1, 4);
  encode_to(body, atom("erl_eval"));
  encode_to(body, Term(6));
  encode_to(body, Term(12345));
  encode_to(body, Pid{Atom{"a@b"}, 1, 0, 2});
  encode_to(body, list({atom("free")}));
  std::string bytes = "\x83p";
  put(bytes, body.size() + 4, 4);
  bytes += body;
  auto term = decode(bytes_of(bytes));
  ASSERT_TRUE(term) << term.error().describe();
  EXPECT_NE(term->as<Opaque>(), nullptr);
  EXPECT_EQ(encode(*term), bytes);
}

TEST(Etf, ShowIsBounded) {
  EXPECT_LT(show(binary(std::string(1'000'000, 'x'))).size(), 1'000U);
  EXPECT_LT(show(list(std::vector<Term>(100'000, atom("x")))).size(), 1'000U);
}

RC_GTEST_PROP(EtfProperty, WhatIsWrittenIsReadBack, ()) {
  const Term term = *arbitrary_term();
  auto back = decode(bytes_of(encode(term)));
  RC_ASSERT(back.has_value());
  RC_ASSERT(*back == term);
}

RC_GTEST_PROP(EtfProperty, WhatIsWithinTheLimitsIsReadWithinThem, ()) {
  const Term term = *arbitrary_term(4);
  TermLimits limits;
  limits.max_depth = *rc::gen::inRange<std::size_t>(1, 6);
  limits.max_terms = *rc::gen::inRange<std::size_t>(1, 40);
  RC_ASSERT(check_limits(term, limits).has_value() ==
            decode(bytes_of(encode(term)), limits).has_value());
}

RC_GTEST_PROP(EtfProperty, AnyBytesGiveATermOrAnError, (const std::vector<std::uint8_t>& bytes)) {
  std::vector<std::uint8_t> versioned{131};
  versioned.insert(versioned.end(), bytes.begin(), bytes.end());
  if (auto term = decode(versioned)) {
    // What was accepted can be written and means the same.
    RC_ASSERT(decode(bytes_of(encode(*term))).value() == *term);
  }
}

RC_GTEST_PROP(EtfProperty, AFlippedByteNeverBreaksTheReader, ()) {
  std::string bytes = encode(*arbitrary_term());
  const auto at = *rc::gen::inRange<std::size_t>(0, bytes.size());
  bytes[at] = static_cast<char>(*rc::gen::arbitrary<std::uint8_t>());
  if (auto term = decode(bytes_of(bytes))) {
    RC_ASSERT(decode(bytes_of(encode(*term))).value() == *term);
  }
}

// --- Values -----------------------------------------------------------------------------------

const IsOurWord only_name = [](std::string_view key) { return key == "name"; };

TEST(TermValue, AValueBecomesWhatElixirExpects) {
  Value value = Value::map();
  value.set("name", "llama");
  value.set("typed by somebody", Value::list().push(1).push(1.5).push(true).push(Value()));
  value.set("status", Symbol{"running"});
  value.set("loss", std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(show(term_of(value, only_name)),
            "#{name=><<\"llama\">>,<<\"typed by somebody\">>=>[1,1.5,true,nil],"
            "<<\"status\">>=>running,<<\"loss\">>=><<\"NaN\">>}");
}

TEST(TermValue, ALongWordNeverBecomesAnAtom) {
  const std::string word(256, 'x');
  EXPECT_NE(term_of(Value(Symbol{word}), only_name).as<Binary>(), nullptr);
}

TEST(TermValue, KeysAreAtomsOrBinariesKeywordListsMapsTuplesLists) {
  const Term term = tuple({Map{{{atom("a"), 1}, {binary("b"), atom("undefined")}}},
                           list({tuple({atom("gpu"), binary("A100")})}),
                           list({tuple({atom("x"), 1}), tuple({atom("x"), 2})})});
  Value expected = Value::list();
  expected.push(Value(Value::Map{{"a", 1}, {"b", Value()}}));
  expected.push(Value(Value::Map{{"gpu", "A100"}}));
  expected.push(Value(Value::List{Value(Value::List{Value(Symbol{"x"}), Value(1)}),
                                  Value(Value::List{Value(Symbol{"x"}), Value(2)})}));
  EXPECT_EQ(value_of(term).value(), expected);
}

TEST(TermValue, ByteListsAreTextWherePrintable) {
  EXPECT_EQ(value_of(ByteList{"vram > 40"}).value(), Value("vram > 40"));
  EXPECT_EQ(value_of(ByteList{"gr\xfc\xdf"}).value(), Value("gr\xc3\xbc\xc3\x9f"));
  Value numbers = Value::list();
  numbers.push(0).push(1).push(2);
  EXPECT_EQ(value_of(ByteList{std::string("\0\1\2", 3)}).value(), numbers);
  EXPECT_EQ(value_of(ByteList{"a"}, ByteLists::numbers).value(), Value(Value::List{Value(97)}));
}

TEST(TermValue, WhatHasNoCounterpartIsRefusedByPath) {
  auto value = value_of(Map{{{atom("job"), list({1, Pid{}})}}});
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().describe().find("job: [1]: a process identifier"), 0U);
  EXPECT_FALSE(value_of(Binary{"\xff"}));
  EXPECT_FALSE(value_of(ImproperList{{1, 2}}));
  EXPECT_FALSE(value_of(Map{{{1, 2}}}));
  EXPECT_FALSE(value_of(Map{{{atom("a"), 2}, {binary("a"), 3}}}));
  EXPECT_EQ(value_of(std::uint64_t{UINT64_MAX}).value(), Value("18446744073709551615"));
}

}  // namespace
}  // namespace zed::beam
