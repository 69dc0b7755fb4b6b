#include <gtest/gtest.h>

#include "api/operations.hpp"
#include "api/vocabulary.hpp"
#include "base/json.hpp"

namespace zed::api {
namespace {

TEST(Operations, AreFoundByNameAndReadTheirArguments) {
  auto arguments = parse_json(R"({"job":"train_001","checkpoint":"@epoch-20","discard":true})");
  auto request = make_request("rollback", *arguments);
  ASSERT_TRUE(request) << request.error().describe();
  EXPECT_TRUE(std::get<Rollback>(*request).discard);
  EXPECT_EQ(std::get<Rollback>(*request).job, "train_001");
}

TEST(Operations, AnUnknownOneNamesTheNearest) {
  auto request = make_request("rolback", Value::map());
  ASSERT_FALSE(request);
  EXPECT_EQ(request.error().code, ErrorCode::not_found);
  EXPECT_EQ(request.error().hint, "did you mean \"rollback\"?");
}

TEST(Operations, AWrongArgumentIsNamed) {
  auto request = make_request("rollback", *parse_json(R"({"discard":"yes"})"));
  ASSERT_FALSE(request);
  EXPECT_EQ(request.error().describe(), "rollback: discard: expected true or false, got text");
}

TEST(Operations, AnUnknownArgumentIsNotPassedOver) {
  auto request = make_request("match", *parse_json(R"({"requirment":"vram:48"})"));
  ASSERT_FALSE(request);
  EXPECT_EQ(request.error().describe(),
            "match has no argument \"requirment\" (did you mean \"requirement\"?)");
  EXPECT_TRUE(make_request("match", *parse_json(R"({"later":"","more":[],"flag":false})")))
      << "a newer client that asks for nothing new";
}

TEST(Operations, NamesAreUnique) {
  auto operations = all_operations();
  for (std::size_t i = 0; i < operations.size(); ++i)
    for (std::size_t j = i + 1; j < operations.size(); ++j)
      EXPECT_NE(operations[i].name, operations[j].name);
}

TEST(Operations, ARequirementMayBeText) {
  auto request = make_request("match", *parse_json(R"({"requirement":"vram:48"})"));
  ASSERT_TRUE(request) << request.error().describe();
  EXPECT_EQ(std::get<MatchNodes>(*request).requirement.vram, MemorySize::parse("48"));
}

TEST(Replies, CarryTheSchema) {
  Value reply = encode_reply(EventsReply{});
  EXPECT_EQ(to_json(reply), R"({"schema":1,"events":[]})");
}

TEST(Vocabulary, HoldsMembersOfRepliesAndNothingThatAPersonTyped) {
  for (const char* word : {"jobs", "checkpoint", "vram_reported", "schema", "time_left"})
    EXPECT_TRUE(is_member_name(word)) << word;
  for (const char* word : {"", "loss", "my-gpu-node"})
    EXPECT_FALSE(is_member_name(word)) << word;
}

}  // namespace
}  // namespace zed::api
