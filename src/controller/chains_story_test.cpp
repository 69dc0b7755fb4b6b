// Stories of one stream that visits several nodes, each passing it on.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/describe.hpp"
#include "controller/lab_testing.hpp"

namespace zed::controller {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::lab_with;
using testing::node;
using ::testing::Not;
using testing::World;

std::string to_three(const std::string& clauses = "") {
  return lab_with("  replicate :models do\n    from :server\n    to [:a, :b, :c]\n    " + clauses +
                  "\n  end");
}

/// "from>to" of every send, and "from=>to" of one that passes on what still arrives, oldest first.
std::vector<std::string> sends_of(World& world, const std::vector<std::string>& nodes) {
  std::vector<std::string> sends;
  for (const std::string& name : nodes)
    for (const PlanStep& step : world.agent(name).orders)
      if (const auto* send = std::get_if<SendSnapshot>(&step.action))
        sends.push_back(name + (send->through ? "=>" : ">") + send->ticket.target.str());
  return sends;
}

bool has_model(World& world, const std::string& name) {
  const auto& datasets = world.agent(name).datasets;
  const auto found = datasets.find(testing::dataset("models/llama"));
  return found != datasets.end() && found->second.snapshots.size() == 1;
}

const std::vector<std::string> all{"server", "a", "b", "c"};

TEST(Chains, APolicySendsAModelOutOfItsSourceOnce) {
  World world("server:; a:; b:; c:");
  world.has_model("server", "llama");
  ASSERT_TRUE(world.apply(to_three()));
  world.pass(seconds(10));
  EXPECT_THAT(sends_of(world, all), ElementsAre("server>a", "a=>b", "b=>c"));
  for (const char* name : {"a", "b", "c"})
    EXPECT_EQ(world.agent(name).datasets.at(testing::dataset("models/llama")).snapshots.size(), 1u);
  std::vector<std::string> told;
  for (const api::FleetEvent& event : world.events)
    if (event.kind == "transfer") told.push_back(event.text);
  EXPECT_THAT(told, ElementsAre(Not(HasSubstr("passed on")),
                                HasSubstr("a -> b, 0 B, passed on while it arrived there"),
                                HasSubstr("b -> c")));
}

TEST(Chains, TransfersShowWhoSendsToWhom) {
  World world("server:; a:; b:; c:");
  world.has_model("server", "llama", gibibytes(2));
  for (const std::string& name : all)
    world.agent(name).swallows = {"send-snapshot", "receive-snapshot"};
  ASSERT_TRUE(world.apply(to_three()));
  world.pass(seconds(3));
  const auto rows =
      from_value<api::TransfersReply>(world.must(api::ListTransfers{})).value().transfers;
  std::map<std::string, api::TransferRow> by_target;
  for (const api::TransferRow& row : rows)
    by_target[row.target] = row;
  ASSERT_EQ(by_target.size(), 3u);
  EXPECT_EQ(by_target["a"].source, "server");
  EXPECT_EQ(by_target["b"].source, "a");
  EXPECT_EQ(by_target["c"].source, "b");
  EXPECT_THAT(by_target["c"].why, HasSubstr("passed on by b"));
  EXPECT_EQ(by_target["c"].total, gibibytes(2)) << "as the source says; b does not have it yet";
}

TEST(Chains, ABrokenHopIsSplicedOutAndNotTriedAgainSoon) {
  World world("server:; a:; b:; c:");
  world.has_model("server", "llama");
  world.agent("b").refuses = {"receive-snapshot"};
  ASSERT_TRUE(world.apply(to_three()));
  world.pass(Millis{500});
  EXPECT_THAT(sends_of(world, all), ElementsAre("server>a", "a=>b", "b=>c"));
  // c does not wait for b, whose disk may be full for days; a has by now what c lacks.
  world.pass(seconds(5));
  EXPECT_TRUE(has_model(world, "c"));
  EXPECT_THAT(sends_of(world, {"a"}), ElementsAre("a=>b", "a>c"));
  EXPECT_THAT(sends_of(world, {"b"}), ElementsAre("b=>c"));
  EXPECT_FALSE(has_model(world, "b"));
  world.agent("b").refuses.clear();
  world.pass(seconds(60));
  EXPECT_TRUE(has_model(world, "b"));

  // b is not behind a for a while; c was not to blame.
  for (const std::string& name : all)
    world.agent(name).orders.clear();
  world.has_model("server", "qwen");
  world.pass(seconds(10));
  EXPECT_THAT(sends_of(world, {"a"}), ElementsAre("a=>c"));
  EXPECT_THAT(sends_of(world, {"server"}), ElementsAre("server>a", "server>b"));
  world.leap(minutes(11));
  for (const std::string& name : all)
    world.agent(name).orders.clear();
  world.has_model("server", "phi");
  world.pass(seconds(10));
  EXPECT_THAT(sends_of(world, all), ElementsAre("server>a", "a=>b", "b=>c"));
}

TEST(Chains, ANodeThatIsAwayIsLeftOutOfIt) {
  World world("server:; a:; b:; c:");
  world.has_model("server", "llama");
  world.goes_silent("b");
  world.pass(seconds(40));
  ASSERT_TRUE(world.apply(to_three()));
  world.pass(seconds(10));
  EXPECT_THAT(sends_of(world, all), ElementsAre("server>a", "a=>c"));
  world.returns("b");
  world.pass(seconds(10));
  EXPECT_THAT(sends_of(world, {"server"}), ElementsAre("server>a", "server>b"));
}

TEST(Chains, TheNextSnapshotWaitsUntilTheLastOneIsAtItsEnd) {
  World world("server:; a:; b:; c:");
  world.has_model("server", "llama");
  Dataset& model = world.agent("server").datasets.at(testing::dataset("models/llama"));
  Snapshot second = model.snapshots.back();
  second.id.bytes[3] ^= 1;
  second.name = "v2";
  ++second.createtxg;
  model.snapshots.push_back(second);
  world.say(world.agent("server"), DatasetChanged{model, false, {}});
  world.agent("c").swallows = {"receive-snapshot"};
  ASSERT_TRUE(world.apply(to_three()));
  world.pass(seconds(10));
  EXPECT_THAT(sends_of(world, {"server"}), ElementsAre("server>a"));
  world.goes_silent("c");
  world.pass(seconds(40));
  EXPECT_THAT(sends_of(world, {"server", "a"}),
              ElementsAre("server>a", "server>a", "a=>b", "a=>b"));
}

TEST(Chains, ManyModelsKeepWithinTheTransfersOfANode) {
  World world("server:; a:; b:; c:");
  for (int i = 0; i < 6; ++i)
    world.has_model("server", "m" + std::to_string(i));
  for (const std::string& name : all)
    world.agent(name).swallows = {"send-snapshot", "receive-snapshot"};
  ASSERT_TRUE(world.apply(to_three()));
  world.pass(seconds(3));
  std::map<std::string, std::size_t> halves;
  for (const std::string& name : all)
    for (const PlanStep& step : world.agent(name).orders)
      halves[name] += std::holds_alternative<SendSnapshot>(step.action) ||
                      std::holds_alternative<ReceiveSnapshot>(step.action);
  for (const auto& [name, count] : halves)
    EXPECT_LE(count, 4u) << name;
  EXPECT_GE(halves["server"], 2u);
}

TEST(Chains, TheRateOfAPolicyHoldsWhereItLeavesTheSource) {
  World world("server:; a:; b:; c:");
  world.has_model("server", "llama");
  ASSERT_TRUE(world.apply(to_three("max_rate \"20 MB/s\"")));
  world.pass(seconds(5));
  const auto rate_at = [&](const std::string& name) {
    std::optional<Bytes> rate;
    for (const PlanStep& step : world.agent(name).orders)
      if (const auto* receive = std::get_if<ReceiveSnapshot>(&step.action))
        rate = receive->ticket.max_rate;
    return rate;
  };
  EXPECT_EQ(rate_at("a"), Bytes{20'000'000});
  EXPECT_FALSE(rate_at("b"));
}

TEST(Chains, CopiesOfAJobLeaveItsHomeOnce) {
  World world("server: A100/80; a:; b:");
  ASSERT_TRUE(world.apply(
      lab_with("  job :train do\n    run [\"train\"]\n    requires gpus: 1\n    copies 2\n  end")));
  api::Dispatch dispatch;
  dispatch.job = "train";
  world.must(dispatch);
  world.commits("train", "epoch-1");
  world.pass(seconds(10));
  EXPECT_EQ(world.holds("a", "train"), "epoch-1");
  EXPECT_EQ(world.holds("b", "train"), "epoch-1");
  EXPECT_THAT(sends_of(world, {"server", "a", "b"}),
              AnyOf(ElementsAre("server>a", "a=>b"), ElementsAre("server>b", "b=>a")));
}

}  // namespace
}  // namespace zed::controller
