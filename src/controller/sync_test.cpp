// `sync`: one snapshot to another machine, because a person asks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/testing.hpp"

namespace zed::controller {
namespace {

using ::testing::HasSubstr;
using testing::World;

/// server with pool nvme and the model llama-finetune@v1, workstation with pool tank.
World fleet() {
  World world("server: A100/80 x2; workstation: RTX 4090/24; laptop:");
  world.agent("server").facts.pool = "nvme";
  world.agent("laptop").facts.pool = "data";
  world.restart();
  world.pass(seconds(2));
  api::AddModel add;
  add.name = "llama-finetune";
  add.path = "/data/llama.gguf";
  add.node = "server";
  world.must(add);
  return world;
}

api::SyncToRemote sync(const std::string& snapshot = "nvme/models/llama-finetune@v1",
                       const std::string& destination = "root@workstation",
                       const std::string& dataset = "tank/models/llama-finetune") {
  return {snapshot, destination, dataset};
}

std::string text(const Value& value, std::string_view key) {
  const Value* member = value.find(key);
  return member != nullptr && member->as_text() != nullptr ? *member->as_text() : "";
}

TEST(Sync, SendsTheSnapshotToTheNodeOfThatHost) {
  World world = fleet();
  Value reply = world.must(sync());
  EXPECT_EQ(text(reply, "snapshot"), "models/llama-finetune@v1");
  EXPECT_EQ(text(reply, "source"), "server");
  EXPECT_EQ(text(reply, "target"), "workstation");
  EXPECT_EQ(text(reply, "dataset"), "tank/models/llama-finetune");
  EXPECT_FALSE(*reply.find("was_there")->as_bool());
  const Dataset& copy =
      world.agent("workstation").datasets.at(testing::dataset("models/llama-finetune"));
  EXPECT_NE(copy.find("v1"), nullptr);
  EXPECT_TRUE(*world.must(sync()).find("was_there")->as_bool()) << "asked again, it is there";
}

TEST(Sync, AFailedTransferIsToldAndTriedAgainWhenAskedAgain) {
  World world = fleet();
  world.agent("workstation").refuses.insert("receive-snapshot");
  auto failed = world.ask(sync());
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::io);
  EXPECT_THAT(failed.error().describe(), HasSubstr("send models/llama-finetune@v1 from server"));
  world.agent("workstation").refuses.clear();
  EXPECT_FALSE(*world.must(sync()).find("was_there")->as_bool());
}

struct Refused {
  api::SyncToRemote asked;
  ErrorCode code;
  std::string says;
  std::string hint;
};

TEST(Sync, SaysWhatCannotBeDoneAndWhatToDoInstead) {
  World world = fleet();
  const std::vector<Refused> cases = {
      {sync("nvme/models/llama-finetune"), ErrorCode::invalid, "names no snapshot", "@v1"},
      {sync("llama@v1"), ErrorCode::invalid, "names a pool and no dataset", ""},
      {sync("nvme/../etc@v1"), ErrorCode::invalid, "..", ""},
      {sync("fast/models/llama-finetune@v1"), ErrorCode::not_found, "no node has a pool", ""},
      {sync("nvme/models/other@v1"), ErrorCode::not_found, "there is no models/other", ""},
      {sync("nvme/models/llama-finetune@v2"), ErrorCode::not_found, "is not there", "@v1"},
      {sync(sync().snapshot, "root@work station"), ErrorCode::invalid, "is not [user@]host", ""},
      {sync(sync().snapshot, "-oProxyCommand=x"), ErrorCode::invalid, "is not [user@]host", ""},
      {sync(sync().snapshot, "root@elsewhere"), ErrorCode::unsupported,
       "only an OpenZFS dataset can be sent over ssh", "run zed-agent on elsewhere"},
      {sync(sync().snapshot, "laptop", "tank/models/llama-finetune"), ErrorCode::invalid,
       "the pool of node laptop is data, not tank", "write data/models/llama-finetune"},
      {sync(sync().snapshot, "workstation", "tank/models/mine"), ErrorCode::unsupported,
       "keeps its dataset's name", "write tank/models/llama-finetune"},
      {sync(sync().snapshot, "server", "nvme/models/llama-finetune"), ErrorCode::invalid,
       "to itself", ""},
  };
  for (const Refused& c : cases) {
    auto refused = world.ask(c.asked);
    ASSERT_FALSE(refused) << c.says;
    EXPECT_EQ(refused.error().code, c.code) << refused.error().describe();
    EXPECT_THAT(refused.error().describe(), HasSubstr(c.says));
    EXPECT_THAT(refused.error().hint, HasSubstr(c.hint));
  }
  EXPECT_FALSE(world.was_told("server", "send-snapshot"));
}

TEST(Sync, AMachineWithoutAnAgentIsReachedBySshFromOpenZfs) {
  World world = fleet();
  world.agent("server").facts.store = StoreKind::zfs;
  world.restart();
  world.pass(seconds(2));
  Value reply =
      world.must(sync("nvme/models/llama-finetune@v1", "root@elsewhere", "tank/models/mine"));
  EXPECT_EQ(text(reply, "target"), "root@elsewhere");
  EXPECT_EQ(text(reply, "dataset"), "tank/models/mine") << "it may have another name there";
  EXPECT_TRUE(*reply.find("by_ssh")->as_bool());
  const auto& send = std::get<SendToHost>(world.agent("server").orders.back().action);
  EXPECT_EQ(send.snapshot_name, "v1");
  EXPECT_EQ(send.destination, "root@elsewhere");
}

TEST(Sync, WhatFailsBySshIsToldWithItsWayOut) {
  World world = fleet();
  world.agent("server").facts.store = StoreKind::zfs;
  world.agent("server").refuses.insert("send-to-host");
  world.restart();
  world.pass(seconds(2));
  auto failed = world.ask(sync("nvme/models/llama-finetune@v1", "elsewhere", "tank/models/mine"));
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().describe(), HasSubstr("by ssh"));
  EXPECT_THAT(world.ask(sync("nvme/models/llama-finetune@v1", "elsewhere", "tank")).error().message,
              HasSubstr("names a pool and no dataset"));
}

TEST(Sync, TwoNodesThatCouldSendAreNotGuessedBetween) {
  World world("a: A100/80; b: A100/80; c: A100/80");
  world.agent("c").facts.pool = "other";
  world.restart();
  world.has_model("a", "llama");
  world.has_model("b", "llama");
  world.pass(seconds(2));
  const std::string name =
      world.agent("a").datasets.at(testing::dataset("models/llama")).snapshots.front().name;
  auto refused = world.ask(sync("tank/models/llama@" + name, "c", "other/models/llama"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::refused);
  EXPECT_THAT(refused.error().message, HasSubstr("is on a, b"));
}

TEST(Sync, WhoAsksIsToldAtOnceThatTheSenderWentAway) {
  World world = fleet();
  world.agent("server").swallows.insert("send-snapshot");
  world.agent("workstation").swallows.insert("receive-snapshot");
  world.deliver(Requested{77, sync(), {"me", "test"}});
  world.settle();
  ASSERT_EQ(world.answer_of(77), nullptr) << "it is under way";
  world.goes_silent("server");
  world.settle();
  ASSERT_NE(world.answer_of(77), nullptr);
  EXPECT_EQ(world.answer_of(77)->error().code, ErrorCode::unavailable);
}

TEST(Sync, ASilentTargetIsUnavailable) {
  World world = fleet();
  world.goes_silent("workstation");
  world.pass(seconds(60));
  auto refused = world.ask(sync());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable) << refused.error().describe();
}

}  // namespace
}  // namespace zed::controller
