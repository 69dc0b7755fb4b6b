// Words that stand for versions, as single copies tell them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/operations/aliases.hpp"

namespace zed::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

Properties applied(Properties copy, const PropertyChanges& changes) {
  for (const auto& [name, value] : changes)
    if (value)
      copy[name] = *value;
    else
      copy.erase(name);
  return copy;
}

AliasChange came(std::int64_t ms) {
  return {WallTime{ms}, true};
}
AliasChange went(std::int64_t ms) {
  return {WallTime{ms}, false};
}

TEST(Aliases, ACopyRemembersWhenAWordCameAndWent) {
  Properties copy = applied({}, with_alias({}, "production", came(100)));
  copy = applied(copy, with_alias(copy, "best", came(200)));
  EXPECT_EQ(copy.at("aliases"), "best,production");
  copy = applied(copy, with_alias(copy, "production", went(300)));
  EXPECT_EQ(copy.at("aliases"), "best");
  EXPECT_THAT(alias_changes(copy),
              ElementsAre(Pair("best", came(200)), Pair("production", went(300))));
}

TEST(Aliases, WhatAPersonDidToTheListByHandCountsAfterwards) {
  EXPECT_THAT(alias_changes({{"aliases", "old"}}), ElementsAre(Pair("old", came(0))));
  Properties copy = applied({}, with_alias({}, "production", came(100)));
  copy["aliases"] = "best";
  EXPECT_THAT(alias_changes(copy),
              ElementsAre(Pair("best", came(0)), Pair("production", went(101))));
}

TEST(Aliases, OfTwoChangesAtOnceTheOneThatLetsItStandIsLater) {
  EXPECT_LT(went(100), came(100));
  EXPECT_LT(came(100), went(101));
}

TEST(Aliases, GarbageInAPropertyIsNoWord) {
  EXPECT_THAT(alias_changes({{"alias_times", "x,=,y=,z=abc,w=99999999999999999999"}}), IsEmpty());
  EXPECT_THAT(alias_changes({}), IsEmpty());
}

TEST(Aliases, ACopyRemembersABoundedNumberAndNeverForgetsOneThatStands) {
  Properties copy = applied({}, with_alias({}, "stays", came(1)));
  for (int i = 0; i < 200; ++i)
    copy = applied(copy, with_alias(copy, "word" + std::to_string(i), went(10 + i)));
  EXPECT_EQ(alias_changes(copy).size(), 64U);
  EXPECT_EQ(copy.at("aliases"), "stays");
}

}  // namespace
}  // namespace zed::controller
