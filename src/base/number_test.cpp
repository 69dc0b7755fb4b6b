#include "base/number.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace zed {
namespace {

TEST(ParseNumber, IsAllOfTheText) {
  EXPECT_EQ(parse_number<int>("17"), 17);
  EXPECT_EQ(parse_number<int>("-17"), -17);
  EXPECT_EQ(parse_number<int>("007"), 7);
  EXPECT_EQ(parse_number<std::uint32_t>("fF", 16), 255U);
  EXPECT_EQ(parse_number<double>("-2.5e3"), -2500);
  for (const char* text : {"", " 1", "1 ", "+1", "1x", "x", "-", "--1", "1.0", "0x1"})
    EXPECT_EQ(parse_number<int>(text), std::nullopt) << text;
  for (const char* text : {"", " 1", "1,5", "1e", ".", "+1"})
    EXPECT_EQ(parse_number<double>(text), std::nullopt) << text;
}

TEST(ParseNumber, FitsOrIsNone) {
  EXPECT_EQ(parse_number<std::uint16_t>("65535"), 65535);
  EXPECT_EQ(parse_number<std::uint16_t>("65536"), std::nullopt);
  EXPECT_EQ(parse_number<std::uint64_t>("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(parse_number<std::uint64_t>("18446744073709551616"), std::nullopt);
  EXPECT_EQ(parse_number<std::uint64_t>("-1"), std::nullopt);
  EXPECT_EQ(parse_number<std::int64_t>("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(parse_number<double>("1e999"), std::nullopt);
}

}  // namespace
}  // namespace zed
