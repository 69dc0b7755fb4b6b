#include "spec/filter.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

namespace zed::spec {
namespace {

const Properties llama{{"type", "model"},   {"name", "llama70b"},    {"size_gb", "140"},
                       {"version", "2.10"}, {"quantized", "q4_k_m"}, {"loss", "0.0023"},
                       {"disk", "1.5 TiB"}, {"odd", "about 7"}};

Verdict judge(const std::string& text, const Properties& properties = llama) {
  auto filter = Filter::parse(text);
  EXPECT_TRUE(filter) << text << ": " << (filter ? "" : filter.error().describe());
  return filter ? evaluate(*filter, properties) : Verdict{};
}

std::string say(const std::string& text) {
  Verdict verdict = judge(text);
  return std::string(to_string(verdict.truth)) +
         (verdict.reason.empty() ? "" : ": " + verdict.reason);
}

TEST(Filter, ComparesNumbersAndTexts) {
  EXPECT_EQ(say("size_gb < 20"), "no: size_gb is 140, not < 20");
  EXPECT_EQ(say("size_gb >= 140"), "yes: size_gb is 140, >= 140");
  EXPECT_EQ(say("loss <= 0.0023"), "yes: loss is 0.0023, <= 0.0023");
  EXPECT_EQ(say("size_gb == 140.0"), "yes: size_gb is 140, == 140.0");
  EXPECT_EQ(say("size_gb != 140"), "no: size_gb is 140, not != 140");
  EXPECT_EQ(say("quantized == \"q4_k_m\""), "yes: quantized is q4_k_m, == \"q4_k_m\"");
  EXPECT_EQ(say("quantized > \"q3\""), "yes: quantized is q4_k_m, > \"q3\"");
}

TEST(Filter, ComparesVersionsByTheirParts) {
  EXPECT_TRUE(judge("version > \"2.9\"").selects());
  EXPECT_TRUE(judge("version >= \"2.010\"").selects());
  EXPECT_FALSE(judge("version < \"2.10.0\"").selects());
  EXPECT_FALSE(judge("version == \"2.1\"").selects());
  EXPECT_TRUE(judge("version > \"1.99999999999999999999999\"").selects());
}

TEST(Filter, ConvertsUnits) {
  EXPECT_TRUE(judge("size_gb > 0.1TB").selects());
  EXPECT_TRUE(judge("size_gb < 131 GiB").selects());
  EXPECT_FALSE(judge("size_gb < 130 GiB").selects());
  EXPECT_TRUE(judge("disk == 1536GiB").selects());
  EXPECT_TRUE(judge("disk < 1.65 tb").selects());
  EXPECT_EQ(say("disk < 20"), "unknown: disk is 1.5 TiB: only one side of 20 has a unit");
  EXPECT_EQ(say("loss < 20GB"), "unknown: loss is 0.0023: only one side of 20GB has a unit");
}

TEST(Filter, WhatIsUnsetOrIncomparableIsUnknown) {
  EXPECT_EQ(say("epochs > 3"), "unknown: epochs is not set");
  EXPECT_EQ(say("epochs != 3"), "unknown: epochs is not set");
  EXPECT_EQ(say("not epochs in [3]"), "unknown: epochs is not set");
  EXPECT_EQ(say("odd < 7"), "unknown: odd is \"about 7\", not a number");
  EXPECT_EQ(say("odd in [7, \"x\"]"), "unknown: odd is \"about 7\", not a number");
  EXPECT_EQ(say("odd in [7, \"about 7\"]"), "yes: odd is about 7, in [7, \"about 7\"]");
  EXPECT_EQ(say("version in []"), "no: version is 2.10, not in []");
}

TEST(Filter, TheReasonIsOfTheClauseThatDecides) {
  EXPECT_EQ(say("epochs > 3 and size_gb < 20"), "no: size_gb is 140, not < 20");
  EXPECT_EQ(say("epochs > 3 or size_gb > 20"), "yes: size_gb is 140, > 20");
  EXPECT_EQ(say("epochs > 3 and size_gb > 20"), "unknown: epochs is not set");
  EXPECT_EQ(say("size_gb < 20 or epochs > 3"), "unknown: epochs is not set");
  EXPECT_EQ(say("not (size_gb > 20 or epochs > 3)"), "no: size_gb is 140, > 20");
}

TEST(Filter, TheExampleOfTheLanguage) {
  const std::string text =
      "size_gb < 20 and not (quantized == \"q8_0\" or version in [\"1.0\", \"2.1\"])";
  EXPECT_FALSE(judge(text).selects());
  EXPECT_TRUE(
      judge(text, {{"size_gb", "4.7"}, {"quantized", "q4_0"}, {"version", "2.0"}}).selects());
  EXPECT_EQ(judge(text, {{"size_gb", "4.7"}, {"quantized", "q8_0"}}).truth, Truth::no);
  EXPECT_EQ(judge(text, {{"size_gb", "4.7"}, {"quantized", "q4_0"}}).truth, Truth::unknown);
}

TEST(Filter, BindsNotBeforeAndBeforeOr) {
  auto text = [](const char* filter) { return Filter::parse(filter).value().str(); };
  EXPECT_EQ(Filter::parse("not a == 1 and b == 2 or c == 3").value(),
            Filter::parse("(((not (a == 1)) and (b == 2)) or (c == 3))").value());
  EXPECT_EQ(Filter::parse("a not in [1]").value(), Filter::parse("not a in [1]").value());
  EXPECT_EQ(text("a == 1 or (b == 2 or (c == 3 and (d == \"x\\\"\")))"),
            "a == 1 or (b == 2 or c == 3 and d == \"x\\\"\")");
  EXPECT_EQ(text("not (a == 1 and b == 2)"), "not (a == 1 and b == 2)");
  EXPECT_EQ(Filter::parse("order == 1 and nothing == 2")->nodes.size(), 3U);
}

TEST(Filter, AnEmptyOneSelectsAll) {
  EXPECT_TRUE(judge("").selects());
  EXPECT_TRUE(judge(" \n").selects());
}

TEST(Filter, ErrorsNameTheColumn) {
  auto filter = Filter::parse("size_gb < 20 adn loss < 1");
  ASSERT_FALSE(filter);
  EXPECT_EQ(filter.error().describe(),
            "in the filter: expected `and`, `or` or the end of the filter, got `adn` (column 14) "
            "(did you mean `and`?)");
}

TEST(Filter, IsBounded) {
  std::string deep = std::string(63, '(') + "a == 1" + std::string(63, ')');
  EXPECT_TRUE(Filter::parse(deep));
  EXPECT_FALSE(Filter::parse("(((" + deep + ")))"));
  EXPECT_FALSE(Filter::parse("a in [" + std::string(longest_filter, ' ') + "1]"));
  std::string chain = "a == 1";
  while (chain.size() + 10 < longest_filter)
    chain += " or a == 1";
  EXPECT_TRUE(judge(chain, {{"a", "1"}}).selects());
}

// --- laws

const std::vector<std::string> words{"a", "b", "c"};

rc::Gen<std::string> any_clause() {
  return rc::gen::element<std::string>("a < 2", "a == 1", "b in [1, 2]", "b != 3", "c >= 2",
                                       "c == \"x\"", "a not in [2]");
}

rc::Gen<std::string> any_filter(int depth = 3) {
  if (depth == 0) return any_clause();
  return rc::gen::mapcat(rc::gen::inRange(0, 4), [depth](int kind) -> rc::Gen<std::string> {
    auto inner = any_filter(depth - 1);
    if (kind == 0) return any_clause();
    if (kind == 1) return rc::gen::map(inner, [](std::string f) { return "not (" + f + ")"; });
    std::string sign = kind == 2 ? " and " : " or ";
    return rc::gen::map(rc::gen::pair(inner, inner),
                        [sign](const std::pair<std::string, std::string>& f) {
                          return "(" + f.first + ")" + sign + "(" + f.second + ")";
                        });
  });
}

Properties any_properties() {
  Properties properties;
  for (const std::string& word : words)
    if (*rc::gen::inRange(0, 3) > 0)
      properties[word] = *rc::gen::element<std::string>("1", "2", "3", "x");
  return properties;
}

Truth truth(const std::string& text, const Properties& properties) {
  return evaluate(*Filter::parse(text), properties).truth;
}

RC_GTEST_PROP(FilterLaw, ItsTextMeansTheSame, ()) {
  auto filter = *Filter::parse(*any_filter());
  auto again = Filter::parse(filter.str());
  RC_ASSERT(again.has_value());
  RC_ASSERT(again->str() == filter.str());
  Properties properties = any_properties();
  RC_ASSERT(evaluate(*again, properties).truth == evaluate(filter, properties).truth);
}

RC_GTEST_PROP(FilterLaw, DeMorgan, ()) {
  std::string p = "(" + *any_filter() + ")";
  std::string q = "(" + *any_filter() + ")";
  Properties properties = any_properties();
  RC_ASSERT(truth("not (" + p + " and " + q + ")", properties) ==
            truth("not " + p + " or not " + q, properties));
  RC_ASSERT(truth("not (" + p + " or " + q + ")", properties) ==
            truth("not " + p + " and not " + q, properties));
  RC_ASSERT(truth("not not " + p, properties) == truth(p, properties));
}

RC_GTEST_PROP(FilterLaw, CommutesAndAbsorbs, ()) {
  std::string p = "(" + *any_filter() + ")";
  std::string q = "(" + *any_filter() + ")";
  Properties properties = any_properties();
  RC_ASSERT(truth(p + " and " + q, properties) == truth(q + " and " + p, properties));
  RC_ASSERT(truth(p + " or " + q, properties) == truth(q + " or " + p, properties));
  RC_ASSERT(truth(p + " and (" + p + " or " + q + ")", properties) == truth(p, properties));
}

RC_GTEST_PROP(FilterLaw, LearningMoreNeverContradicts, ()) {
  std::string text = *any_filter();
  Properties properties = any_properties();
  Truth before = truth(text, properties);
  for (const std::string& word : words)
    properties.try_emplace(word, *rc::gen::element<std::string>("1", "2", "x"));
  if (before != Truth::unknown) RC_ASSERT(truth(text, properties) == before);
}

RC_GTEST_PROP(FilterLaw, AnyTextIsReadOrRefused, (const std::string& text)) {
  auto parsed = parse_filter(text);
  if (auto* fault = std::get_if<FilterFault>(&parsed)) {
    RC_ASSERT(fault->offset <= text.size());
    RC_ASSERT(!fault->message.empty());
  }
}

}  // namespace
}  // namespace zed::spec
