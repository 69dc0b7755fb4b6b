#include "cli/axis.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace zed::cli {
namespace {

using ::testing::ElementsAre;

TEST(Axis, ValuesAreSeparatedByCommas) {
  auto axis = parse_axis("lr=0.1,0.01");
  ASSERT_TRUE(axis);
  EXPECT_EQ(axis->name, "lr");
  EXPECT_THAT(axis->values, ElementsAre("0.1", "0.01"));
  EXPECT_THAT(parse_axis("where=a=b")->values, ElementsAre("a=b"));
  EXPECT_THAT(parse_axis("pair=1\\,2,3")->values, ElementsAre("1,2", "3"));
  EXPECT_THAT(parse_axis("path=c:\\x")->values, ElementsAre("c:\\x"));
}

TEST(Axis, WhatIsNoneIsRefused) {
  for (const char* text : {"lr", "=1", "lr=", "lr=1,,2", "lr=1,"})
    EXPECT_EQ(parse_axis(text).error().code, ErrorCode::invalid) << text;
  EXPECT_FALSE(parse_axes({"lr=1", "seed"}));
  EXPECT_EQ(parse_axes({"lr=1,2", "seed=3"})->size(), 2u);
}

}  // namespace
}  // namespace zed::cli
