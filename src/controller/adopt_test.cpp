// `adopt`: a dataset that a person made becomes one of the fleet's.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/testing.hpp"

namespace zed::controller {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::World;

CheckpointId id_of(std::uint64_t n) {
  return id_from_guid(n);
}

Dataset by_hand(const std::string& name, std::vector<std::uint64_t> guids = {}) {
  Dataset made;
  made.name = testing::dataset(name);
  for (std::uint64_t guid : guids) {
    Snapshot snapshot;
    snapshot.name = "s" + std::to_string(guid);
    snapshot.guid = guid;
    snapshot.createtxg = guid;
    snapshot.id = id_of(guid);
    made.snapshots.push_back(std::move(snapshot));
  }
  return made;
}

/// server with pool nvme, workstation with pool tank; a person made nvme/stuff/llama.
World fleet() {
  World world("server: A100/80 x2; workstation: RTX 4090/24");
  world.agent("server").facts.pool = "nvme";
  world.agent("server").datasets.emplace(testing::dataset("stuff/llama"), by_hand("stuff/llama"));
  world.agent("server").answers = [](const NodeQuestion&) -> Result<NodeReply> {
    return NodeReply(ModelFacts{{{"size_gb", "4.92"}, {"quantized", "q4_k_m"}}, ""});
  };
  world.restart();
  world.pass(seconds(2));
  return world;
}

api::Adopt adopt(const std::string& dataset, const std::string& as = "",
                 const std::string& name = "") {
  api::Adopt op;
  op.dataset = dataset;
  op.as = as;
  op.name = name;
  return op;
}

api::AdoptReply must(World& world, const api::Adopt& op) {
  return from_value<api::AdoptReply>(world.must(op)).value();
}

const Dataset& on_server(World& world, const std::string& name) {
  return world.agent("server").datasets.at(testing::dataset(name));
}

TEST(Adopt, SaysFirstWhatItWouldDoAndDoesIt) {
  World world = fleet();
  api::Adopt op = adopt("nvme/stuff/llama", "model", "llama");
  op.dry_run = true;
  api::AdoptReply preview = must(world, op);
  EXPECT_FALSE(world.was_told("server", "adopt-dataset"));
  EXPECT_TRUE(preview.dry_run);
  EXPECT_THAT(preview.steps, Contains("set com.zed:uuid=(a new one)"));
  EXPECT_THAT(preview.steps, Contains("set com.zed:size_gb=4.92"));
  EXPECT_THAT(preview.steps, Contains("take a first snapshot, @v1"));
  ASSERT_EQ(preview.warnings.size(), 1u);
  EXPECT_THAT(preview.warnings[0], HasSubstr("--to models/llama"));
  op.dry_run = false;
  api::AdoptReply reply = must(world, op);
  const Dataset there = on_server(world, "stuff/llama");
  EXPECT_EQ(there.uuid.str(), reply.uuid);
  EXPECT_EQ(there.property(property::type), "model");
  EXPECT_EQ(there.property("quantized"), "q4_k_m");
  EXPECT_EQ(there.property("version"), "1");
  EXPECT_NE(there.find("v1"), nullptr);
  EXPECT_THAT(must(world, op).steps, IsEmpty()) << "asked again, nothing has to be done";
}

TEST(Adopt, ItsOrderIsOneThatAnAgentCanRead) {
  World world = fleet();
  must(world, adopt("nvme/stuff/llama", "data"));
  for (const PlanStep& order : world.agent("server").orders) {
    auto read = from_value<PlanStep>(to_value(order));
    ASSERT_TRUE(read) << read.error().describe();
    EXPECT_EQ(*read, order);
  }
  EXPECT_TRUE(world.was_told("server", "adopt-dataset"));
}

TEST(Adopt, RenamesOnlyIfAskedTo) {
  World world = fleet();
  api::Adopt op = adopt("nvme/stuff/llama", "model");
  op.to = "nvme/models/llama";
  api::AdoptReply reply = must(world, op);
  EXPECT_EQ(reply.dataset, "models/llama");
  EXPECT_THAT(reply.warnings, IsEmpty());
  EXPECT_FALSE(world.agent("server").datasets.contains(testing::dataset("stuff/llama")));
  EXPECT_EQ(on_server(world, "models/llama").property(property::name), "llama");
}

TEST(Adopt, WhatAPersonSetStays) {
  World world("server: A100/80 x2");
  Dataset made = by_hand("models/llama-70b", {7});
  made.properties = {{property::type, "model"}, {"version", "2.1"}, {"size_gb", "140"}};
  world.agent("server").datasets.emplace(made.name, made);
  world.agent("server").answers = [](const NodeQuestion&) -> Result<NodeReply> {
    return NodeReply(ModelFacts{{{"size_gb", "139"}}, ""});
  };
  world.restart();
  world.pass(seconds(2));
  api::AdoptReply reply = must(world, adopt("tank/models/llama-70b"));
  EXPECT_EQ(reply.properties.count("size_gb"), 0u);
  const Dataset there = on_server(world, "models/llama-70b");
  EXPECT_EQ(there.property("version"), "2.1");
  EXPECT_EQ(there.property("size_gb"), "140");
  EXPECT_EQ(there.snapshots.size(), 1u) << "the person's snapshot is enough";
}

TEST(Adopt, FilesThatCannotBeReadAreNoObstacle) {
  World world = fleet();
  world.agent("server").answers = [](const NodeQuestion&) -> Result<NodeReply> {
    return fail(ErrorCode::io, "the disk is slow");
  };
  api::AdoptReply reply = must(world, adopt("nvme/stuff/llama", "model"));
  ASSERT_FALSE(reply.warnings.empty());
  EXPECT_THAT(reply.warnings.back(), HasSubstr("the disk is slow"));
  EXPECT_FALSE(on_server(world, "stuff/llama").uuid.is_nil());
}

TEST(Adopt, ACopyThatAPersonSentGetsTheIdentityOfWhatItIsACopyOf) {
  World world("server: A100/80; workstation: RTX 4090/24");
  Dataset original = by_hand("models/llama", {1, 2});
  original.uuid = DatasetId{{1, 2, 3}};
  original.properties = {{property::uuid, original.uuid.str()}, {property::type, "model"}};
  world.agent("server").datasets.emplace(original.name, original);
  world.agent("workstation")
      .datasets.emplace(testing::dataset("models/llama"), by_hand("models/llama", {1}));
  world.restart();
  world.pass(seconds(2));
  api::Adopt op = adopt("models/llama");
  EXPECT_THAT(world.ask(op).error().describe(), HasSubstr("which of them is not said"));
  op.node = "workstation";
  api::AdoptReply reply = must(world, op);
  EXPECT_EQ(reply.uuid, original.uuid.str());
  EXPECT_EQ(world.agent("workstation").datasets.at(testing::dataset("models/llama")).uuid,
            original.uuid);
}

TEST(Adopt, AJobsDatasetIsGoneOnWithWhenTheJobIsDispatched) {
  World world("server: A100/80");
  world.agent("server").datasets.emplace(testing::dataset("jobs/train-001"),
                                         by_hand("jobs/train-001", {5}));
  world.restart();
  world.pass(seconds(2));
  ASSERT_TRUE(world.apply("deploy :x, pool: \"tank\" do\n  job :train do\n"
                          "    dataset \"jobs/train-001\"\n    run \"train.py\"\n  end\nend\n"));
  EXPECT_FALSE(world.dispatch("train")) << "a dataset that nobody adopted is nobody's to use";
  api::AdoptReply reply = must(world, adopt("tank/jobs/train-001", "job", "train"));
  EXPECT_THAT(reply.warnings, IsEmpty());
  ASSERT_TRUE(world.dispatch("train"));
  world.pass(seconds(5));
  EXPECT_EQ(world.job("train").job.id.str(), reply.uuid);
  EXPECT_EQ(world.show("train"), "running on server");
  EXPECT_NE(on_server(world, "jobs/train-001").find("s5"), nullptr);
}

TEST(Adopt, SaysWhatCannotBeDone) {
  World world = fleet();
  world.agent("server").datasets.at(testing::dataset("stuff/llama")).receiving = true;
  world.agent("server").datasets.emplace(testing::dataset("zed/node"), by_hand("zed/node"));
  world.restart();
  world.pass(seconds(2));
  auto refused = world.ask(adopt("fast/models/x"));
  EXPECT_EQ(refused.error().code, ErrorCode::not_found);
  EXPECT_THAT(refused.error().hint, HasSubstr("nvme (server)"));
  EXPECT_EQ(world.ask(adopt("nvme/stuff/llama", "thing")).error().code, ErrorCode::invalid);
  EXPECT_EQ(world.ask(adopt("nvme/stuff/llama")).error().code, ErrorCode::busy);
  EXPECT_EQ(world.ask(adopt("nvme/zed/node")).error().code, ErrorCode::refused);
  EXPECT_FALSE(world.was_told("server", "adopt-dataset"));
}

}  // namespace
}  // namespace zed::controller
