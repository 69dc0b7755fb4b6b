// Stories of what is lost: nodes, disks, controllers; and of what comes back.

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.hpp"
#include "controller/lab_testing.hpp"

namespace zed::controller {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = ExitRecord::Kind;

TEST(Story, ANodeThatIsBehindBecomesTheHomeAfterItWasBroughtUp) {
  World world("server: A100/80; workstation: RTX 4090/24; spare: RTX 3080/10");
  ASSERT_TRUE(world.apply(cluster));
  world.dispatch("finetune").value();
  world.commits("finetune", "epoch-1");
  world.pass(seconds(5));
  world.goes_silent("workstation");
  world.commits("finetune", "epoch-2");
  world.commits("finetune", "epoch-3");
  world.pass(seconds(40));
  ASSERT_EQ(world.holds("spare", "finetune"), "epoch-1 epoch-2 epoch-3") << "a new copy instead";
  ASSERT_EQ(world.holds("workstation", "finetune"), "epoch-1");
  world.goes_silent("server");
  world.pass(seconds(40));
  EXPECT_EQ(world.show("finetune"), "lost on server") << "the spare one is too small";
  world.returns("workstation");
  world.pass(seconds(10));
  EXPECT_EQ(world.show("finetune"), "running on workstation");
  EXPECT_EQ(world.holds("workstation", "finetune"), "epoch-1 epoch-2 epoch-3");
}

TEST(Story, ALostNodesJobGoesOnFromTheNewestReplicatedCheckpoint) {
  World world = lab();
  world.dispatch("finetune").value();
  world.commits("finetune", "epoch-1");
  world.pass(seconds(5));
  const Timeline before = world.job("finetune").timeline;
  world.goes_silent("server");
  world.pass(seconds(20));
  EXPECT_EQ(world.show("finetune"), "running on server") << "suspect is not lost";
  world.pass(seconds(20));
  EXPECT_EQ(world.show("finetune"), "running on workstation");
  const DesiredJob& job = world.job("finetune");
  ASSERT_EQ(job.forks.size(), 1U);
  EXPECT_EQ(job.forks[0].fork.why, Fork::Why::node_lost);
  EXPECT_EQ(job.forks[0].from_name, "epoch-1");
  EXPECT_EQ(job.forks[0].fork.left, before);
  EXPECT_GT(job.timeline, before);
}

TEST(Story, TheReturningNodeStopsItsStaleCopyAndKeepsItAsABranch) {
  World world = lab();
  world.dispatch("finetune").value();
  world.commits("finetune", "epoch-1");
  world.pass(seconds(5));
  world.goes_silent("server");
  world.pass(seconds(40));
  world.commits("finetune", "epoch-2");
  world.returns("server");
  world.pass(seconds(10));
  EXPECT_EQ(world.live_attempts(), 1U);
  EXPECT_EQ(world.show("finetune"), "running on workstation");
  EXPECT_THAT(world.branches("server", "finetune"), ElementsAre("closing-1"));
  EXPECT_EQ(world.holds("server", "finetune"), "epoch-1 epoch-2") << "a replica like others";
}

TEST(Story, ASuccessOfALostNodeCountsWhenItReturns) {
  World world = lab();
  world.dispatch("finetune").value();
  world.commits("finetune", "epoch-1");
  world.pass(seconds(5));
  world.goes_silent("server");
  world.pass(seconds(40));
  ASSERT_EQ(world.show("finetune"), "running on workstation");
  world.exits("finetune", Kind::success, "server");
  world.returns("server");
  world.pass(seconds(10));
  EXPECT_EQ(world.show("finetune"), "succeeded");
  EXPECT_EQ(world.live_attempts(), 0U);
  EXPECT_EQ(world.job("finetune").home, node("server"));
  EXPECT_THAT(world.branches("workstation", "finetune"), ElementsAre("closing-2"));
  EXPECT_EQ(world.holds("workstation", "finetune"), world.holds("server", "finetune"));
}

TEST(Story, WithoutAReachableCopyTheJobWaitsAndSaysSo) {
  World world = lab();
  world.dispatch("other").value();
  const std::string home = world.job("other").home.str();
  world.commits("other", "epoch-1");
  world.goes_silent(home);
  world.pass(seconds(60));
  EXPECT_EQ(world.state().state_of(world.job("other").job.id), JobState::waiting);
  Value why = world.must(on_job<api::WhyJob>("other"));
  EXPECT_THAT(to_json(why), HasSubstr("--from start"));
  EXPECT_THAT(world.job("other").forks, IsEmpty());
  world.returns(home);
  world.pass(seconds(5));
  EXPECT_EQ(world.show("other"), "running on " + home) << "it never stopped there";
}

TEST(Story, EvenARestartedControllerKnowsThatThereWasACheckpoint) {
  World world = lab();
  world.dispatch("other").value();
  const std::string home = world.job("other").home.str();
  world.commits("other", "epoch-1");
  world.goes_silent(home);
  world.restart();
  world.pass(seconds(60));
  EXPECT_EQ(world.state().state_of(world.job("other").job.id), JobState::waiting);
}

TEST(Story, AJobThatNeverHadACheckpointStartsAgainFromItsInput) {
  World world = lab();
  world.dispatch("other").value();
  const std::string home = world.job("other").home.str();
  world.goes_silent(home);
  world.pass(seconds(40));
  ASSERT_EQ(world.job("other").forks.size(), 1U);
  EXPECT_FALSE(world.job("other").forks[0].fork.from);
  EXPECT_NE(world.job("other").home.str(), home);
  EXPECT_EQ(world.state().state_of(world.job("other").job.id), JobState::running);
}

TEST(Story, NothingIsActedOnBeforeItIsDurable) {
  World world = lab();
  world.hold_journal = true;
  api::Dispatch dispatch = on_job<api::Dispatch>("finetune");
  world.deliver(Requested{900, dispatch, {"me", "test"}});
  world.settle();
  EXPECT_FALSE(world.was_told("server", "create-dataset"));
  world.hold_journal = false;
  world.settle();
  EXPECT_EQ(world.show("finetune"), "running on server");
}

TEST(Story, AnOrderIsAnsweredSafeWhereTheSecondNodeConfirmsIt) {
  World world = lab("laptop");
  world.pass(seconds(5));
  ASSERT_EQ(world.state().desired().second.str(), "server");
  Value reply = world.dispatch("finetune").value();
  EXPECT_TRUE(*reply.find("safe")->as_bool());
  world.agent("server").swallows.insert("journal-records");
  const Instant before = world.now().monotonic;
  reply = world.dispatch("other").value();
  EXPECT_FALSE(*reply.find("safe")->as_bool());
  EXPECT_LE(world.now().monotonic - before, seconds(1)) << "nobody waits long for it";
}

TEST(Story, AForkWaitsUntilItIsOnTheSecondNode) {
  World world = lab("laptop");
  world.dispatch("finetune").value();
  world.commits("finetune", "epoch-1");
  world.commits("finetune", "epoch-2");
  world.pass(seconds(5));
  const std::string second = world.state().desired().second.str();
  ASSERT_EQ(second, "server");
  EXPECT_EQ(world.agent("server").copy, world.journal) << "it has all of it";
  world.agent("server").swallows.insert("journal-records");
  Value reply = world.must(rollback_to("finetune", "@epoch-1"));
  EXPECT_FALSE(*reply.find("safe")->as_bool());
  world.pass(seconds(4));
  EXPECT_FALSE(world.was_told("server", "apply-fork")) << "accepted is not safe";
  EXPECT_FALSE(world.was_told("server", "stop-attempt") && world.live_attempts() == 0);
  world.agent("server").swallows.clear();
  world.goes_silent("server");
  world.returns("server");
  world.pass(seconds(5));
  EXPECT_EQ(world.holds("server", "finetune"), "epoch-1");
  EXPECT_EQ(world.agent("server").copy, world.journal);
}

TEST(Story, ARestartAtAnyTimeLosesNothing) {
  World world = lab();
  world.dispatch("finetune").value();
  world.restart();
  EXPECT_EQ(world.show("finetune"), "running on server");
  EXPECT_EQ(world.job("finetune").attempts, 1) << "the running attempt is kept";
  world.commits("finetune", "epoch-1");
  world.exits("finetune", Kind::success);
  world.restart();
  EXPECT_EQ(world.show("finetune"), "succeeded");
}

TEST(Story, AnExitWhileTheControllerIsAwayIsHeardAfterwards) {
  World world = lab();
  world.dispatch("finetune").value();
  for (auto& attempt : world.agent("server").attempts)
    attempt.phase = AttemptPhase::ended;
  ExitRecord exit;
  exit.kind = Kind::success;
  world.agent("server").attempts[0].exit = exit;
  world.restart();
  EXPECT_EQ(world.show("finetune"), "succeeded");
}

TEST(Story, ATakeoverFromTheSecondCopyGoesOn) {
  World world = lab("laptop");
  world.dispatch("finetune").value();
  world.commits("finetune", "epoch-1");
  world.pass(seconds(5));
  ASSERT_EQ(world.state().desired().second.str(), "server");
  ControllerTerm before = world.state().term();
  world.take_over_on("server");
  world.pass(seconds(5));
  EXPECT_GT(world.state().term(), before);
  EXPECT_EQ(world.show("finetune"), "running on server");
  EXPECT_EQ(world.job("finetune").attempts, 1);
}

/// Takes over on the server from a copy as it was before `meanwhile`.
void take_over_without(World& world, const std::function<void()>& meanwhile) {
  const auto copy = world.agent("server").copy;
  const std::uint64_t seq = world.agent("server").copy_seq;
  meanwhile();
  world.agent("server").copy = copy;
  world.agent("server").copy_seq = seq;
  world.take_over_on("server");
  world.pass(seconds(5));
}

TEST(Story, AnAttemptThatTheCopyLacksIsAdoptedByATakeover) {
  World world = lab("laptop");
  world.dispatch("finetune").value();
  world.commits("finetune", "epoch-1");
  world.pass(seconds(5));
  Generation running;
  take_over_without(world, [&] {
    world.exits("finetune", Kind::supervisor_lost);
    world.pass(seconds(5));
    running = world.job("finetune").placed->generation;
  });
  ASSERT_TRUE(world.job("finetune").placed);
  EXPECT_EQ(world.job("finetune").placed->generation, running) << "it goes on, undisturbed";
  EXPECT_EQ(world.show("finetune"), "running on server");
  EXPECT_EQ(world.live_attempts(), 1U);
}

TEST(Story, AForkThatTheCopyLacksIsAdoptedByATakeover) {
  World world = lab("laptop");
  world.dispatch("finetune").value();
  for (const char* checkpoint : {"epoch-1", "epoch-2"})
    world.commits("finetune", checkpoint);
  world.pass(seconds(5));
  Timeline timeline;
  take_over_without(world, [&] {
    world.must(api::Rollback{"finetune", "@epoch-1"});
    world.pass(seconds(5));
    timeline = world.job("finetune").timeline;
    world.exits("finetune", Kind::supervisor_lost);
  });
  ASSERT_EQ(world.job("finetune").forks.size(), 1U);
  EXPECT_EQ(world.job("finetune").timeline, timeline);
  EXPECT_EQ(world.job("finetune").forks[0].from_name, "epoch-1");
  world.pass(seconds(5));
  EXPECT_EQ(world.show("finetune"), "running on server");
}

TEST(Story, AHigherTermEndsThisController) {
  World world = lab();
  world.agent("laptop").term = ControllerTerm{99, ControllerId{{1}}};
  world.goes_silent("laptop");
  world.returns("laptop");
  ASSERT_TRUE(world.stepped_down);
  EXPECT_EQ(world.stepped_down->higher.number, 99U);
  EXPECT_TRUE(world.state().has_stepped_down());
}

TEST(Story, AJournalThatLostItsEndIsNotGoneOnFrom) {
  World world = lab("laptop");
  world.dispatch("finetune").value();
  world.commits("finetune", "epoch-1");
  world.exits("finetune", Kind::success);
  world.pass(seconds(5));
  ASSERT_EQ(world.show("finetune"), "succeeded");
  const std::vector<std::string> copy = world.agent("server").copy;
  const std::size_t orders = world.agent("server").orders.size();
  world.restart(1);
  ASSERT_TRUE(world.stepped_down);
  EXPECT_EQ(world.stepped_down->error.code, ErrorCode::corrupt);
  EXPECT_THAT(world.stepped_down->error.hint, HasSubstr("on server, zed-controller takeover"));
  EXPECT_EQ(world.agent("server").copy, copy) << "the only whole journal";
  EXPECT_EQ(world.agent("server").orders.size(), orders) << "a job that succeeded ran again";
}

TEST(Story, ASecondNodeThatDoesNotComeDelaysAStartOnly) {
  World world = lab("laptop");
  world.pass(seconds(5));
  ASSERT_EQ(world.state().desired().second.str(), "server");
  world.goes_silent("server");
  world.restart();
  world.dispatch("finetune").value();
  EXPECT_EQ(world.show("finetune").find("on "), std::string::npos) << "its copy may know better";
  world.pass(seconds(5));
  EXPECT_EQ(world.show("finetune"), "running on workstation");
}

TEST(Story, AFullJournalDiskRefusesChangesAndRecovers) {
  World world = lab();
  world.break_journal = true;
  auto reply = world.dispatch("finetune");
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ErrorCode::timeout);
  auto refused = world.dispatch("other");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  EXPECT_TRUE(world.ask(api::ListNodes{}));
  world.break_journal = false;
  world.pass(seconds(5));
  EXPECT_EQ(world.show("finetune"), "running on server") << "accepted after all";
}

// Seed 288: a copy that `keep`, or a person, had left without the fork's checkpoint and with newer
// ones was taken for one that is behind.
TEST(Story, ACopyBeyondAForkIsToldByNumbersIfNobodyHasTheCheckpoint) {
  World world = lab();
  world.dispatch("finetune").value();
  for (const char* epoch : {"epoch-1", "epoch-2", "epoch-3"})
    world.commits("finetune", epoch);
  world.pass(seconds(5));
  ASSERT_EQ(world.holds("workstation", "finetune"), "epoch-1 epoch-2 epoch-3");
  FakeAgent& replica = world.agent("workstation");
  Dataset& copy = replica.datasets.at(dataset("jobs/finetune-001"));
  copy.snapshots.erase(copy.snapshots.begin());
  world.goes_silent("workstation");
  world.must(rollback_to("finetune", "@epoch-1"));
  world.goes_silent("server");
  world.pass(seconds(40));
  world.returns("workstation");
  world.pass(seconds(5));
  EXPECT_EQ(world.holds("workstation", "finetune"), "");
  EXPECT_THAT(world.branches("workstation", "finetune"), ElementsAre("epoch-2 epoch-3"));
}

void set_duty(World& world, const std::string& name, api::NodeDuty duty) {
  world.must(api::SetNodeDuty{name, duty});
}

// Seed 421: it was placed anew over its own dataset, and prepared for ever.
TEST(Story, AJobThatRanAndEndedUnderAFormerControllerIsNotRunAgain) {
  for (bool succeeds : {true, false}) {
    World world = lab("laptop");
    for (const char* name : {"server", "workstation"})
      set_duty(world, name, api::NodeDuty::cordon);
    world.dispatch("finetune").value();
    world.pass(seconds(5));
    ASSERT_EQ(world.show("finetune"), "pending");
    take_over_without(world, [&] {
      set_duty(world, "server", api::NodeDuty::uncordon);
      world.pass(seconds(1));
      world.commits("finetune", "epoch-1");
      world.exits("finetune", succeeds ? Kind::success : Kind::exit_code);
    });
    EXPECT_EQ(world.job("finetune").home, node("server"));
    EXPECT_TRUE(world.job("finetune").had_checkpoint);
    set_duty(world, "server", api::NodeDuty::uncordon);
    world.pass(seconds(10));
    EXPECT_EQ(world.show("finetune"), succeeds ? "succeeded" : "running on server");
  }
}

TEST(HandOver, WhatOnlyTheOldControllerHadIsSubmittedAgainAndItsForksAreProposed) {
  World world = lab("server");
  world.dispatch("finetune").value();
  world.commits("finetune", "epoch-1");
  world.commits("finetune", "epoch-2");
  world.pass(seconds(5));
  const std::string second = world.state().desired().second.str();
  FakeAgent& witness = world.agent(second == "laptop" ? "workstation" : "laptop");
  // From here on the second node has nothing of what is decided.
  world.agent(second).swallows.insert("journal-records");
  world.must(rollback_to("finetune", "@epoch-1"));
  world.dispatch("other").value();
  const JobId other = world.job("other").job.id;
  ControllerTerm newer = world.state().term();
  newer.number += 5;
  witness.term = newer;
  world.goes_silent(witness.name.str());
  world.returns(witness.name.str());
  ASSERT_TRUE(world.stepped_down);
  ASSERT_EQ(witness.tails.size(), 1u);
  EXPECT_EQ(witness.tails[0].records.size(), 2u) << "one submit, one fork";

  witness.term = {};
  world.agent(second).swallows.clear();
  world.take_over_on(second);
  ASSERT_EQ(world.state().desired().find(other), nullptr);
  const HandedOver tail{witness.tails[0].term, witness.tails[0].records};
  world.say(witness, tail);
  world.pass(seconds(5));
  ASSERT_NE(world.state().desired().find(other), nullptr);
  EXPECT_THAT(world.show("other"), HasSubstr("running"));
  ASSERT_EQ(world.state().desired().proposals.size(), 1u);
  EXPECT_THAT(to_json(world.must(api::GetStatus{})),
              HasSubstr("zedctl resume finetune --from @epoch-1"));
  EXPECT_EQ(world.branches("server", "finetune").size(), 0u) << "nothing follows from it";
  world.say(witness, tail);
  world.pass(seconds(1));
  EXPECT_EQ(world.state().desired().proposals.size(), 1u) << "told twice is told once";
  world.must(resume("finetune", "@epoch-1"));
  EXPECT_TRUE(world.state().desired().proposals.empty());
}

}  // namespace
}  // namespace zed::controller
