#include "controller/link_rates.hpp"

#include <gtest/gtest.h>

namespace zed::controller {
namespace {

NodeName node(const char* name) {
  return *NodeName::parse(name);
}

TEST(LinkRates, FinishedTransfersMakeTheRateAndTheHistory) {
  LinkRates rates;
  rates.finished(node("a"), node("b"), Bytes{100'000'000}, seconds(1), WallTime{5'000});
  EXPECT_EQ(rates.rate(node("a"), node("b")), Bytes{100'000'000});
  EXPECT_EQ(rates.rate(node("b"), node("a")), Bytes{}) << "the way back is another link";
  rates.finished(node("a"), node("b"), Bytes{400'000'000}, seconds(2), WallTime{9'000});
  EXPECT_EQ(rates.rate(node("a"), node("b")), Bytes{125'000'000}) << "three parts old, one new";
  auto links = rates.from(node("a"));
  ASSERT_EQ(links.size(), 1U);
  EXPECT_EQ(links.at(node("b")).at, WallTime{9'000});
  EXPECT_EQ(links.at(node("b")).recent,
            (std::deque<Bytes>{Bytes{100'000'000}, Bytes{200'000'000}}));
}

TEST(LinkRates, WhatIsTooSmallOrTooShortShowsNothing) {
  LinkRates rates;
  rates.finished(node("a"), node("b"), LinkRates::least_moved - Bytes{1}, seconds(1), {});
  rates.finished(node("a"), node("b"), mebibytes(100), LinkRates::least_time - Millis{1}, {});
  rates.finished(node("a"), node("b"), mebibytes(100), Millis{}, {});
  rates.note(node("a"), node("b"), Bytes{});
  EXPECT_TRUE(rates.from(node("a")).empty());
}

TEST(LinkRates, HistoryAndLinksAreBounded) {
  LinkRates rates;
  for (std::size_t i = 0; i < LinkRates::longest * 3; ++i)
    rates.finished(node("a"), node("b"), mebibytes(100), seconds(1), {});
  EXPECT_EQ(rates.from(node("a")).at(node("b")).recent.size(), LinkRates::longest);
  for (std::size_t i = 0; i < LinkRates::most_links + 10; ++i)
    rates.note(node("c"), node(("n" + std::to_string(i)).c_str()), Bytes{1000});
  EXPECT_EQ(rates.from(node("c")).size(), LinkRates::most_links - 1);
  rates.note(node("a"), node("b"), Bytes{1});
  EXPECT_LT(rates.rate(node("a"), node("b")), mebibytes(100)) << "known links go on";
}

TEST(LinkRates, AForgottenNodeIsInNoLink) {
  LinkRates rates;
  rates.note(node("a"), node("b"), Bytes{10});
  rates.note(node("b"), node("c"), Bytes{20});
  rates.note(node("d"), node("c"), Bytes{30});
  EXPECT_EQ(rates.best_to(node("c")), Bytes{30});
  rates.forget(node("b"));
  EXPECT_TRUE(rates.from(node("a")).empty());
  EXPECT_TRUE(rates.from(node("b")).empty());
  EXPECT_EQ(rates.rates_from(node("d")), (std::map<NodeName, Bytes>{{node("c"), Bytes{30}}}));
}

}  // namespace
}  // namespace zed::controller
