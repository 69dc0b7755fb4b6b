// What jobs are made of: code that is known by its content, data as of the submit.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/records.hpp"
#include "controller/testing.hpp"

namespace zed::controller {
namespace {

using testing::FakeAgent;
using ::testing::HasSubstr;
using testing::World;
using Kind = ExitRecord::Kind;

const char* const cluster = R"(
deploy :lab do
  job :first do
    run "true"
    code "./src"
  end
  job :second do
    run "true {lr}"
    code "./other"
  end
  job :reader do
    run "true"
    data "datasets/digits"
  end
end
)";

World lab() {
  World world("server: A100/80 x8; laptop:", testing::node("server"));
  world.contents = {{"./src", 1}, {"./other", 1}};
  EXPECT_TRUE(world.apply(cluster));
  return world;
}

void dispatch(World& world, const std::string& job) {
  auto reply = world.dispatch(job);
  EXPECT_TRUE(reply) << (reply ? "" : reply.error().describe());
  world.settle();
}

/// Names of the datasets of submitted code on a node.
std::vector<std::string> code_on(World& world, const std::string& node) {
  std::vector<std::string> names;
  for (const auto& [name, dataset] : world.agent(node).datasets)
    if (dataset.property(property::type) == "code") names.push_back(name.str());
  return names;
}

TEST(Code, OfTheSameContentIsStoredOnce) {
  World world = lab();
  dispatch(world, "first");
  dispatch(world, "second");
  ASSERT_EQ(code_on(world, "server").size(), 1U);
  EXPECT_EQ(world.job("first").job.content, world.job("second").job.content);
  EXPECT_EQ(code_on(world, "server").front(), code_dataset(*world.job("first").job.content).str());
}

/// Its first attempt has to wait: all nodes are cordoned.
Value submit_and_wait(World& world) {
  for (const char* node : {"server", "laptop"})
    world.must(api::SetNodeDuty{node, api::NodeDuty::cordon});
  world.pass(seconds(2));
  auto reply = world.dispatch("first");
  EXPECT_TRUE(reply);
  EXPECT_EQ(world.show("first"), "pending");
  return reply.value_or(Value::map());
}

TEST(Code, IsOnTwoMachinesBeforeASubmitIsSafe) {
  World world = lab();
  const Value reply = submit_and_wait(world);
  EXPECT_TRUE(*reply.find("safe")->as_bool());
  EXPECT_EQ(code_on(world, "server").size(), 1U);
  EXPECT_EQ(code_on(world, "laptop").size(), 1U);
}

TEST(Code, ThatIsOnOneMachineMakesItsJobNotSafe) {
  World world = lab();
  world.agent("laptop").swallows.insert("receive-snapshot");
  const Instant before = world.now().monotonic;
  const Value reply = submit_and_wait(world);
  EXPECT_FALSE(*reply.find("safe")->as_bool());
  EXPECT_LT(world.now().monotonic - before, seconds(4)) << "nobody waits for it";
  EXPECT_EQ(code_on(world, "laptop").size(), 0U);
}

TEST(Code, IsCopiedAgainWhenANodeThatHadItIsLost) {
  World world("server: A100/80 x8; laptop:; third:", testing::node("server"));
  world.contents = {{"./src", 1}};
  EXPECT_TRUE(world.apply(cluster));
  world.must(api::SetNodeDuty{"third", api::NodeDuty::cordon});
  submit_and_wait(world);
  const std::string second = code_on(world, "laptop").empty() ? "third" : "laptop";
  const std::string other = second == "laptop" ? "third" : "laptop";
  EXPECT_EQ(code_on(world, other).size(), 0U);
  world.goes_silent(second);
  world.pass(minutes(2));
  EXPECT_EQ(code_on(world, other).size(), 1U);
}

TEST(Code, ThatChangedIsAnother) {
  World world = lab();
  dispatch(world, "first");
  world.contents["./other"] = 2;
  dispatch(world, "second");
  EXPECT_EQ(code_on(world, "server").size(), 2U);
}

TEST(Code, IsPackedOnceForAnArray) {
  World world = lab();
  api::Dispatch op;
  op.job = "second";
  op.array = {{"lr", {"0.1", "0.2", "0.3"}}};
  world.must(op);
  world.settle();
  EXPECT_EQ(code_on(world, "server").size(), 1U);
  EXPECT_EQ(world.live_attempts(), 3U);
  EXPECT_TRUE(world.job("second-3").job.content);
}

TEST(Code, GoesMinutesAfterTheLastJobThatNeedsIt) {
  World world = lab();
  dispatch(world, "first");
  dispatch(world, "second");
  world.exits("first", Kind::success);
  world.settle();
  world.pass(minutes(10));
  EXPECT_EQ(code_on(world, "server").size(), 1U) << "the second may need it";
  world.exits("second", Kind::success);
  world.settle();
  world.pass(minutes(2));
  EXPECT_EQ(code_on(world, "server").size(), 1U) << "somebody may be submitting it";
  world.pass(minutes(5));
  EXPECT_TRUE(code_on(world, "server").empty());
}

TEST(Code, OfAFailedJobStays) {
  World world = lab();
  dispatch(world, "first");
  for (int i = 0; i < 4; ++i) {
    world.exits("first", Kind::exit_code);
    world.settle();
    world.pass(minutes(2));
  }
  EXPECT_EQ(world.show("first"), "failed");
  world.pass(minutes(30));
  EXPECT_EQ(code_on(world, "server").size(), 1U) << "it may be resumed from its beginning";
}

Snapshot& add_data(World& world, const std::string& node, const std::string& snapshot) {
  FakeAgent& agent = world.agent(node);
  const auto name = *DatasetName::parse("datasets/digits");
  if (!agent.datasets.contains(name)) {
    Dataset data;
    data.name = name;
    data.uuid = DatasetId{{7}};
    data.properties = {
        {property::type, "data"}, {property::uuid, data.uuid.str()}, {property::home, node}};
    agent.datasets.emplace(name, data);
  }
  Dataset& data = agent.datasets.at(name);
  Snapshot taken;
  taken.name = snapshot;
  taken.id.bytes[0] = static_cast<std::uint8_t>(data.snapshots.size() + 1);
  taken.guid = taken.createtxg = data.snapshots.size() + 1;
  taken.properties[property::id] = taken.id.str();
  data.snapshots.push_back(taken);
  world.say(agent, DatasetChanged{data, false, {}});
  world.settle();
  return data.snapshots.back();
}

TEST(Data, IsThatOfTheSubmitForAllAttempts) {
  World world = lab();
  const CheckpointId first = add_data(world, "server", "v1").id;
  dispatch(world, "reader");
  ASSERT_EQ(world.job("reader").job.inputs.size(), 1U);
  EXPECT_EQ(world.job("reader").job.inputs.front().snapshot, first);
  add_data(world, "server", "v2");
  world.exits("reader", Kind::exit_code);
  world.settle();
  world.pass(minutes(1));
  EXPECT_EQ(world.job("reader").attempts, 2);
  EXPECT_EQ(world.job("reader").job.inputs.front().snapshot, first);
  const auto lineage = world.must(api::ShowLineage{"reader"});
  EXPECT_EQ(*lineage.find("from")->as_list()->front().find("name")->as_text(),
            "datasets/digits@v1");
}

TEST(Data, ThatIsToComeIsPinnedWhenItIsThere) {
  World world("server: A100/80", testing::node("server"));
  ASSERT_TRUE(world.apply(R"(
deploy :lab do
  dataset "datasets/digits" do
    file "digits.csv"
  end
  job :reader do
    run "true"
    data "datasets/digits"
  end
end
)"));
  dispatch(world, "reader");
  world.pass(seconds(10));
  EXPECT_EQ(world.job("reader").job.inputs.size(), 1U);
  EXPECT_EQ(world.show("reader"), "running on server");
}

TEST(Fold, WhatIsPinnedStays) {
  DesiredState state;
  Job job;
  job.id.bytes[0] = 1;
  job.name = JobName("a");
  job.data = {*DatasetName::parse("datasets/x")};
  fold(state, Submitted{job, "me", {}, {}}, 1);
  const Input one{job.data.front(), CheckpointId{{1}}};
  const Input two{job.data.front(), CheckpointId{{2}}};
  fold(state, InputsPinned{job.id, CheckpointId{{3}}, {one}}, 2);
  fold(state, InputsPinned{job.id, CheckpointId{{4}}, {two}}, 3);
  EXPECT_EQ(state.find(job.id)->job.content, (CheckpointId{{3}}));
  EXPECT_EQ(state.find(job.id)->job.inputs, std::vector<Input>{one});
}

}  // namespace
}  // namespace zed::controller
