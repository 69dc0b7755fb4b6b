// Bugs of other schedulers, as stories of a whole fleet (docs/scheduling.md lists all of them), and
// what the cluster file's verbs promise.

#include <gtest/gtest.h>

#include "sim/scenario.hpp"

namespace zed::sim {
namespace {

std::size_t launches(Scenario& fleet) {
  return fleet.world().history.launched.size();
}

void cut_off(Scenario& fleet, std::size_t machine, bool cut) {
  for (std::size_t m = 0; m < fleet.world().machine_count(); ++m)
    if (cut)
      fleet.world().network.cut(machine, m);
    else
      fleet.world().network.join(machine, m);
}

std::string cluster_of(const std::string& lines) {
  return "deploy :simulated, pool: \"tank\" do\n" + lines + "end\n";
}

std::string job_of(const std::string& name, const std::string& lines) {
  return "  job :" + name + " do\n    run [\"train\"]\n    requires gpus: 1, vram: 8\n" +
         "    prefer gpu: \"A100\"\n" + lines + "  end\n";
}

TEST(Case09, AnAgentsRestartKillsNoJob) {
  Scenario fleet;
  ASSERT_TRUE(fleet.dispatch_and_reach(2)) << fleet.broken();
  const std::size_t home = fleet.runs_on("job0").value();
  for (int i = 0; i < 3; ++i) {
    fleet.world().crash_agent(home);
    fleet.run_for(seconds(1));
    fleet.world().start_agent(home);
    fleet.run_for(seconds(2));
  }
  ASSERT_TRUE(fleet.finishes("job0")) << fleet.broken();
  EXPECT_EQ(launches(fleet), 1u);
}

TEST(Case12, AGpuIsOfferedAgainOnlyWhenGrandchildrenAreGone) {
  JobBehaviour behaviour = steady_job();
  behaviour.epochs = 3;
  behaviour.grandchildren_hold = seconds(20);
  // One machine with two GPUs, three jobs: the invariant on GPUs watches each event.
  Scenario fleet(1, 3, behaviour);
  for (std::size_t job = 0; job < 3; ++job)
    fleet.world().people.dispatch(job);
  for (const char* name : {"job0", "job1", "job2"})
    ASSERT_TRUE(fleet.finishes(name)) << name << fleet.broken();
  EXPECT_EQ(fleet.broken(), "");
}

TEST(Case14, ASuccessIsNotRunAgainAfterAPartition) {
  Scenario fleet;
  ASSERT_TRUE(fleet.dispatch_and_reach(9)) << fleet.broken();
  const std::size_t home = fleet.runs_on("job0").value();
  cut_off(fleet, home, true);
  fleet.run_for(seconds(20));  // it ends while nobody hears it
  ASSERT_FALSE(fleet.runs_on("job0"));
  cut_off(fleet, home, false);
  ASSERT_TRUE(fleet.finishes("job0")) << fleet.broken();
  EXPECT_EQ(launches(fleet), 1u);
}

TEST(Case16, TwoCopiesAfterAPartitionBecomeOneAndABranch) {
  Scenario fleet;
  ASSERT_TRUE(fleet.dispatch_and_reach(4)) << fleet.broken();
  const std::size_t home = fleet.runs_on("job0").value();
  cut_off(fleet, home, true);
  ASSERT_TRUE(fleet.run_until([&] { return launches(fleet) == 2; })) << fleet.broken();
  cut_off(fleet, home, false);
  ASSERT_TRUE(fleet.finishes("job0")) << fleet.broken();
  fleet.run_for(seconds(60));
  std::size_t live = 0;
  for (std::size_t m = 0; m < fleet.world().machine_count(); ++m)
    live += fleet.world().machine(m).live_jobs().size();
  EXPECT_EQ(live, 0u);
  EXPECT_EQ(fleet.broken(), "");
}

TEST(Case17, AMachineThatWasCutOffForLongIsUpAgainAtOnce) {
  Scenario fleet;
  ASSERT_TRUE(fleet.dispatch_and_reach(1)) << fleet.broken();
  const std::size_t other = 1;
  cut_off(fleet, other, true);
  fleet.run_for(minutes(10));
  cut_off(fleet, other, false);
  auto is_up = [&] {
    const Node* node = fleet.world().newest_controller()->state().view().find_node(
        fleet.world().machine(other).name);
    return node != nullptr && node->status == NodeStatus::up;
  };
  EXPECT_TRUE(fleet.run_until(is_up, seconds(10)));
}

TEST(Case18, AShortSilenceFailsNothing) {
  Scenario fleet;
  ASSERT_TRUE(fleet.dispatch_and_reach(2)) << fleet.broken();
  const std::size_t home = fleet.runs_on("job0").value();
  for (int i = 0; i < 4; ++i) {
    cut_off(fleet, home, true);
    fleet.run_for(seconds(3));
    cut_off(fleet, home, false);
    fleet.run_for(seconds(2));
  }
  ASSERT_TRUE(fleet.finishes("job0")) << fleet.broken();
  EXPECT_EQ(launches(fleet), 1u);
  EXPECT_TRUE(fleet.world().history.forks.empty());
}

TEST(Case19, AMachineThatSleepsLongAndThenFlapsSettles) {
  JobBehaviour behaviour = steady_job();
  behaviour.epochs = 40;
  Scenario fleet(4, 1, behaviour);
  ASSERT_TRUE(fleet.dispatch_and_reach(3)) << fleet.broken();
  const std::size_t home = fleet.runs_on("job0").value();
  cut_off(fleet, home, true);
  fleet.run_for(minutes(30));
  for (int i = 0; i < 5; ++i) {
    cut_off(fleet, home, false);
    fleet.run_for(seconds(4));
    cut_off(fleet, home, true);
    fleet.run_for(seconds(5));
  }
  cut_off(fleet, home, false);
  ASSERT_TRUE(fleet.finishes("job0")) << fleet.broken();
  EXPECT_LE(launches(fleet), 3u) << "flapping starts nothing by itself";
  EXPECT_EQ(fleet.broken(), "");
}

TEST(Case22, AJobThatFailsAtOnceIsTriedWithPauses) {
  JobBehaviour behaviour = steady_job();
  behaviour.failures = 1000;
  behaviour.epochs = 1000;
  Scenario fleet(2, 1, behaviour);
  fleet.world().people.dispatch(0);
  fleet.run_for(minutes(5));
  EXPECT_EQ(fleet.state_of("job0"), "failed");
  EXPECT_EQ(launches(fleet), 7u) << "the first and six retries";
  const auto& launched = fleet.world().history.launched;
  for (std::size_t i = 1; i < launched.size(); ++i)
    EXPECT_GE((launched[i].at - launched[i - 1].at).value, 1000) << i;
}

TEST(Case27, AKillAtAnyMomentOfACheckpointLeavesItWholeOrNothing) {
  // The invariant on whole checkpoints looks at each; forty moments around one commit's effects.
  for (std::int64_t moment = 0; moment < 40; ++moment) {
    Scenario fleet(2, 1);
    ASSERT_TRUE(fleet.dispatch_and_reach(2)) << fleet.broken();
    const std::size_t home = fleet.runs_on("job0").value();
    CrashPoint point;
    point.effects_left = moment / 2;
    point.before = moment % 2 == 0;
    fleet.world().machine(home).agent->set_crash_point(point);
    fleet.run_for(seconds(15));
    fleet.world().start_agent(home);
    ASSERT_TRUE(fleet.finishes("job0")) << moment << fleet.broken();
  }
}

TEST(Case33, AJobThatKillsItsSupervisorIsHeld) {
  JobBehaviour behaviour = steady_job();
  behaviour.connects = false;  // no checkpoint shows that it got somewhere
  Scenario fleet(3, 1, behaviour);
  fleet.world().people.dispatch(0);
  for (int i = 0; i < 20 && fleet.state_of("job0") != "stopped"; ++i) {
    fleet.run_until([&] { return fleet.runs_on("job0").has_value(); }, seconds(30));
    for (std::size_t m = 0; m < fleet.world().machine_count(); ++m)
      for (const auto& process : fleet.world().machine(m).live_jobs())
        process->lose_supervisor();
    fleet.run_for(seconds(3));
  }
  EXPECT_EQ(fleet.state_of("job0"), "stopped");
  EXPECT_EQ(launches(fleet), 5u);
}

// ---- verbs --------------------------------------------------------------------------------------

TEST(Scenario, KeepLeavesTheNewestOnEveryCopy) {
  Scenario fleet(4, 1, steady_job(), cluster_of(job_of("job0", "    keep last: 2\n")));
  ASSERT_TRUE(fleet.dispatch_and_reach(6)) << fleet.broken();
  ASSERT_TRUE(fleet.finishes("job0")) << fleet.broken();
  fleet.run_for(seconds(30));
  EXPECT_EQ(fleet.machines_with("job0", "epoch-10").size(), 2u);
  EXPECT_EQ(fleet.machines_with("job0", "epoch-9").size(), 2u);
  EXPECT_EQ(fleet.machines_with("job0", "epoch-8").size(), 0u);
  EXPECT_EQ(fleet.broken(), "");
}

TEST(Scenario, AnExclusiveJobNeverRunsTwice) {
  Scenario fleet(4, 1, steady_job(), cluster_of(job_of("job0", "    exclusive true\n")));
  ASSERT_TRUE(fleet.dispatch_and_reach(4)) << fleet.broken();
  const std::size_t home = fleet.runs_on("job0").value();
  cut_off(fleet, home, true);
  ASSERT_TRUE(fleet.run_until([&] { return launches(fleet) == 2; })) << fleet.broken();
  EXPECT_TRUE(fleet.world().machine(home).live_jobs().empty()) << "its lease had ended";
  cut_off(fleet, home, false);
  ASSERT_TRUE(fleet.finishes("job0")) << fleet.broken();
}

TEST(Scenario, AHigherPriorityTakesOverAndTheOtherGoesOnFromItsCheckpoint) {
  // One machine with two GPUs.
  Scenario fleet(
      1, 3, steady_job(),
      cluster_of(job_of("job0", "") + job_of("job1", "") + job_of("job2", "    priority 10\n")));
  ASSERT_TRUE(fleet.dispatch_and_reach(3)) << fleet.broken();
  fleet.world().people.dispatch(1);
  ASSERT_TRUE(fleet.run_until([&] { return fleet.runs_on("job1").has_value(); }));
  fleet.world().people.dispatch(2);
  ASSERT_TRUE(fleet.run_until([&] { return fleet.runs_on("job2").has_value(); }, seconds(30)))
      << fleet.broken();
  for (const char* name : {"job0", "job1", "job2"})
    ASSERT_TRUE(fleet.finishes(name)) << name << fleet.broken();
  EXPECT_EQ(launches(fleet), 4u) << "one gave way, once";
  EXPECT_TRUE(fleet.world().history.forks.empty());
}

TEST(Scenario, ATimeOutEndsAJobForGoodUntilAPersonSaysOtherwise) {
  Scenario fleet(2, 1, steady_job(), cluster_of(job_of("job0", "    timeout \"7 seconds\"\n")));
  fleet.world().people.dispatch(0);
  ASSERT_TRUE(fleet.run_until([&] { return fleet.state_of("job0") == "failed"; }))
      << fleet.broken();
  EXPECT_EQ(launches(fleet), 1u);
}

TEST(Scenario, APolicyWithEveryAndKeepHoldsTheNewestOnItsTarget) {
  Scenario fleet(4, 1, steady_job(),
                 cluster_of(job_of("job0", "    copies 0\n") +
                            "  replicate :jobs do\n    from :server\n    to :macbook\n" +
                            "    every \"10 seconds\"\n    keep last: 1\n  end\n"));
  ASSERT_TRUE(fleet.dispatch_and_reach(8)) << fleet.broken();
  ASSERT_TRUE(fleet.finishes("job0")) << fleet.broken();
  fleet.run_for(seconds(40));
  EXPECT_EQ(fleet.machines_with("job0", "epoch-10").size(), 2u);
  EXPECT_EQ(fleet.machines_with("job0", "epoch-7").size(), 1u) << "at home only";
  EXPECT_EQ(fleet.broken(), "");
}

}  // namespace
}  // namespace zed::sim
