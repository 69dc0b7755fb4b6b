// Stories of the fleet, as the vision tells them.

#include <algorithm>

#include <gtest/gtest.h>

#include "sim/hand.hpp"
#include "sim/scenario.hpp"

namespace zed::sim {
namespace {

TEST(Scenario, AJobRunsAndItsCheckpointsAreOnTwoMachines) {
  Scenario fleet;
  ASSERT_TRUE(fleet.dispatch_and_reach(5)) << fleet.broken();
  ASSERT_TRUE(fleet.finishes("job0")) << fleet.broken() << fleet.state_of("job0");
  fleet.run_for(seconds(30));
  for (int epoch = 1; epoch <= 10; ++epoch)
    EXPECT_EQ(fleet.machines_with("job0", "epoch-" + std::to_string(epoch)).size(), 2u)
        << "epoch " << epoch;
  EXPECT_EQ(fleet.broken(), "");
}

TEST(Scenario, ARollbackKeepsTheNewerTimelineAsABranchOnHomeAndReplica) {
  Scenario fleet;
  ASSERT_TRUE(fleet.dispatch_and_reach(6)) << fleet.broken();
  fleet.roll_back("job0", "@epoch-3");
  ASSERT_TRUE(fleet.run_until([&] {
    for (std::size_t m : fleet.holders("jobs/job0"))
      if (!fleet.branches(m, "job0").empty()) return true;
    return false;
  })) << fleet.broken();
  ASSERT_TRUE(fleet.finishes("job0")) << fleet.broken();
  fleet.run_for(seconds(30));
  const auto holders = fleet.holders("jobs/job0");
  ASSERT_EQ(holders.size(), 2u);
  for (std::size_t m : holders) {
    const auto branches = fleet.branches(m, "job0");
    ASSERT_EQ(branches.size(), 1u) << fleet.node(m);
    EXPECT_NE(branches[0].find("epoch-4"), nullptr) << fleet.node(m);
    EXPECT_TRUE(branches[0].readonly);
    // Ten epochs: three of the old timeline, seven of the new one.
    const auto lines = fleet.epochs(m, "job0");
    ASSERT_EQ(lines.size(), 10u) << fleet.node(m);
    EXPECT_EQ(lines[2].timeline, lines[0].timeline);
    EXPECT_NE(lines[3].timeline, lines[2].timeline);
    EXPECT_EQ(lines[9].timeline, lines[3].timeline);
  }
  EXPECT_EQ(fleet.broken(), "");
}

// Seed 16 of the drawn stories: the discard was tried for ever, and the job never went on.
TEST(Scenario, ADiscardOfWhatAnOlderBranchStandsOnDoesNotHoldTheJobUp) {
  Scenario fleet;
  ASSERT_TRUE(fleet.dispatch_and_reach(5)) << fleet.broken();
  fleet.roll_back("job0", "@epoch-3");
  ASSERT_TRUE(fleet.run_until([&] {
    const auto home = fleet.runs_on("job0");
    return home && !fleet.branches(*home, "job0").empty();
  })) << fleet.broken();
  ASSERT_TRUE(fleet.reach(6)) << fleet.broken();
  fleet.roll_back("job0", "@epoch-2", true);
  ASSERT_TRUE(fleet.finishes("job0")) << fleet.broken() << fleet.state_of("job0");
  EXPECT_EQ(fleet.broken(), "");
}

// Seed 157: a person's snapshot on a replica is set aside, and the replica follows its home again.
TEST(Scenario, AReplicaWithAPersonsSnapshotFollowsItsHomeAgain) {
  Scenario fleet;
  ASSERT_TRUE(fleet.dispatch_and_reach(3)) << fleet.broken();
  const std::size_t home = fleet.runs_on("job0").value();
  ASSERT_TRUE(fleet.run_until([&] { return fleet.machines_with("job0", "epoch-3").size() == 2; }));
  std::size_t replica = 0;
  for (std::size_t m : fleet.machines_with("job0", "epoch-3"))
    if (m != home) replica = m;
  hand_snapshot(fleet.world(), replica, 0);
  ASSERT_TRUE(fleet.finishes("job0")) << fleet.broken();
  fleet.run_for(seconds(60));
  const auto newest = fleet.machines_with("job0", "epoch-10");
  EXPECT_NE(std::find(newest.begin(), newest.end(), replica), newest.end());
  EXPECT_EQ(fleet.broken(), "");
}

TEST(Scenario, AMachineDiesAndItsJobGoesOnFromTheNewestReplicatedCheckpoint) {
  Scenario fleet;
  ASSERT_TRUE(fleet.dispatch_and_reach(6)) << fleet.broken();
  const std::size_t home = fleet.runs_on("job0").value();
  ASSERT_TRUE(fleet.run_until([&] { return fleet.machines_with("job0", "epoch-5").size() == 2; }));
  fleet.world().crash_machine(home);
  ASSERT_TRUE(fleet.run_until([&] {
    auto now = fleet.runs_on("job0");
    return now && *now != home;
  })) << fleet.broken();
  ASSERT_TRUE(fleet.finishes("job0")) << fleet.broken();
  EXPECT_EQ(fleet.broken(), "");
}

TEST(Scenario, AStaleCopyOfAReturningMachineBecomesABranch) {
  Scenario fleet;
  ASSERT_TRUE(fleet.dispatch_and_reach(4)) << fleet.broken();
  const std::size_t home = fleet.runs_on("job0").value();
  // Cut off, the old home goes on by itself; the fleet goes on without it.
  for (std::size_t m = 0; m < fleet.world().machine_count(); ++m)
    fleet.world().network.cut(home, m);
  fleet.run_for(seconds(45));
  for (std::size_t m = 0; m < fleet.world().machine_count(); ++m)
    fleet.world().network.join(home, m);
  ASSERT_TRUE(fleet.finishes("job0")) << fleet.broken();
  fleet.run_for(seconds(60));
  EXPECT_EQ(fleet.broken(), "");
}

TEST(Scenario, TheControllerDiesAndNothingIsLost) {
  Scenario fleet;
  ASSERT_TRUE(fleet.dispatch_and_reach(3)) << fleet.broken();
  fleet.world().crash_controller(fleet.world().newest_controller()->run());
  const std::size_t home = fleet.runs_on("job0").value();
  fleet.run_for(seconds(8));
  EXPECT_EQ(fleet.runs_on("job0"), home) << "the job goes on without a controller";
  fleet.world().start_controller(3);
  ASSERT_TRUE(fleet.finishes("job0")) << fleet.broken();
  const auto& launched = fleet.world().history.launched;
  EXPECT_EQ(launched.size(), 1u) << "nothing had to start again";
  EXPECT_EQ(fleet.broken(), "");
}

TEST(Scenario, TheAgentDiesAndTheJobGoesOn) {
  Scenario fleet;
  ASSERT_TRUE(fleet.dispatch_and_reach(3)) << fleet.broken();
  const std::size_t home = fleet.runs_on("job0").value();
  fleet.world().crash_agent(home);
  fleet.run_for(seconds(4));
  EXPECT_EQ(fleet.runs_on("job0"), home);
  fleet.world().start_agent(home);
  ASSERT_TRUE(fleet.finishes("job0")) << fleet.broken();
  EXPECT_EQ(fleet.world().history.launched.size(), 1u);
  EXPECT_EQ(fleet.broken(), "");
}

TEST(Scenario, ASuccessBehindAPartitionCounts) {
  Scenario fleet;
  ASSERT_TRUE(fleet.dispatch_and_reach(7)) << fleet.broken();
  const std::size_t home = fleet.runs_on("job0").value();
  for (std::size_t m = 0; m < fleet.world().machine_count(); ++m)
    fleet.world().network.cut(home, m);
  // It finishes alone, while the others believe it lost and start again.
  fleet.run_for(seconds(45));
  for (std::size_t m = 0; m < fleet.world().machine_count(); ++m)
    fleet.world().network.join(home, m);
  ASSERT_TRUE(fleet.finishes("job0")) << fleet.broken();
  EXPECT_EQ(fleet.broken(), "");
}

TEST(Scenario, ADrainMovesTheJobWithoutAFork) {
  Scenario fleet;
  ASSERT_TRUE(fleet.dispatch_and_reach(3)) << fleet.broken();
  const std::size_t home = fleet.runs_on("job0").value();
  fleet.world().people.node_duty(home, api::NodeDuty::drain);
  ASSERT_TRUE(fleet.run_until([&] {
    auto now = fleet.runs_on("job0");
    return now && *now != home;
  })) << fleet.broken()
      << fleet.state_of("job0");
  ASSERT_TRUE(fleet.finishes("job0")) << fleet.broken();
  EXPECT_TRUE(fleet.world().history.forks.empty()) << "a planned move is no fork";
  EXPECT_EQ(fleet.broken(), "");
}

}  // namespace
}  // namespace zed::sim
