#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/describe.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

namespace zed {
namespace {

enum class Fruit { apple, pear };
constexpr auto enum_names(Fruit) {
  return std::array<std::string_view, 2>{"apple", "pear"};
}

struct Basket {
  static constexpr std::string_view tag = "basket";
  Fruit fruit = Fruit::apple;
  Bytes weight;
  std::optional<std::string> owner;
  std::vector<std::uint64_t> guids;
  std::map<std::string, double> prices;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("fruit", self.fruit);
    visit("weight", self.weight);
    visit("owner", self.owner);
    visit("guids", self.guids);
    visit("prices", self.prices);
  }
  friend bool operator==(const Basket&, const Basket&) = default;
};

struct Empty {
  static constexpr std::string_view tag = "empty";
  template <class Self, class Visit> static void fields(Self&, Visit&&) {}
  friend bool operator==(const Empty&, const Empty&) = default;
};

TEST(Describe, RoundTripsThroughJson) {
  Basket basket{Fruit::pear, {12}, "Ada", {1, UINT64_MAX}, {{"a", 1.5}}};
  auto value = parse_json(to_json(to_value(basket)));
  ASSERT_TRUE(value);
  EXPECT_EQ(from_value<Basket>(*value).value(), basket);
}

TEST(Describe, MissingMembersKeepDefaultsAndUnknownOnesAreIgnored) {
  auto value = parse_json(R"({"weight":3,"colour":"red"})");
  EXPECT_EQ(from_value<Basket>(*value).value(), (Basket{Fruit::apple, {3}, {}, {}, {}}));
}

TEST(Describe, AnErrorNamesThePath) {
  auto value = parse_json(R"({"guids":[1,"x"]})");
  auto basket = from_value<Basket>(*value);
  ASSERT_FALSE(basket);
  EXPECT_EQ(basket.error().describe(), "guids: [1]: expected a whole number, got text");
}

TEST(Describe, AVariantIsChosenByItsType) {
  using Any = std::variant<Basket, Empty>;
  EXPECT_EQ(from_value<Any>(to_value(Any{Empty{}})).value(), Any{Empty{}});
  auto unknown = from_value<Any>(*parse_json(R"({"type":"sock"})"));
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message, "unknown type \"sock\"");
}

TEST(Json, RefusesWhatItShould) {
  for (const char* text : {"", "{", "[1,]", "{\"a\":1}x", "nul", "\"\\ud800\"", "01"})
    EXPECT_FALSE(parse_json(text)) << text;
  EXPECT_FALSE(parse_json(std::string(200, '[')));
  EXPECT_FALSE(parse_json("[1,2,3]", {.max_bytes = 4}));
}

RC_GTEST_PROP(Text, PercentEncodingRoundTrips, (const std::string& text)) {
  std::string encoded = percent_encode(text);
  for (char c : encoded)
    RC_ASSERT(c >= 0x20 && c < 0x7F);
  RC_ASSERT(percent_decode(encoded).value() == text);
}

TEST(Text, PercentDecodeRefusesTornEscapes) {
  for (const char* text : {"%", "a%4", "%zz"})
    EXPECT_FALSE(percent_decode(text)) << text;
}

TEST(Text, NearestWordForgivesSlipsOnly) {
  EXPECT_EQ(nearest_word("modle", {"job", "model", "node"}), "model");
  EXPECT_EQ(nearest_word("banana", {"job", "model", "node"}), std::nullopt);
}

TEST(Text, Utf8IsCheckedStrictly) {
  EXPECT_TRUE(is_valid_utf8("h\xC3\xA9llo \xF0\x9F\x98\x80"));
  for (const char* text : {"\xC0\xAF", "\xED\xA0\x80", "\xF5\x80\x80\x80", "\xE2\x82", "\xFF"})
    EXPECT_FALSE(is_valid_utf8(text));
}

TEST(Text, ShowsQuantitiesForPeople) {
  EXPECT_EQ(show(Bytes{312}), "312 B");
  EXPECT_EQ(show(gibibytes(24)), "24.0 GiB");
  EXPECT_EQ(show(Millis{200'000}), "3 min 20 s");
  EXPECT_EQ(to_iso8601(WallTime{1'712'998'800'123}), "2024-04-13T09:00:00.123Z");
}

}  // namespace
}  // namespace zed
