// The test of the test: each planted bug is caught by the invariant that it breaks.

#include <gtest/gtest.h>

#include "sim/invariants.hpp"
#include "sim/run.hpp"
#include "sim/world.hpp"

namespace zed::sim {
namespace {

constexpr std::uint64_t enough_seeds = 60;

struct Case {
  Planted planted;
  std::string invariant;
};

class PlantedBug : public testing::TestWithParam<Case> {};

TEST_P(PlantedBug, IsCaught) {
  std::string others;
  for (std::uint64_t seed = 1; seed <= enough_seeds; ++seed) {
    const Ending ending = play(story_of(seed, GetParam().planted));
    if (invariant_of(ending) == GetParam().invariant) return;
    if (ending.violation) others += " " + invariant_of(ending);
  }
  FAIL() << enough_seeds << " seeds did not show it as " << GetParam().invariant
         << "; what broke instead:" << others;
}

INSTANTIATE_TEST_SUITE_P(
    Each, PlantedBug,
    testing::Values(Case{Planted::early_exit, "gpu_has_one_live_attempt"},
                    Case{Planted::old_generation, "generations_only_grow"},
                    Case{Planted::abandoned_start, "abandoned_timeline_is_never_resumed"},
                    Case{Planted::late_receive, "timelines_never_mix"},
                    Case{Planted::torn_checkpoint, "checkpoints_are_whole"},
                    Case{Planted::changed_copy, "snapshots_never_change"},
                    Case{Planted::greedy_keep, "keep_spares_what_must_stay"},
                    Case{Planted::last_copy, "last_copy_goes_only_by_name"},
                    Case{Planted::forgotten_submit, "promises_are_kept"},
                    Case{Planted::wrong_success, "success_is_counted_by_the_rule"},
                    Case{Planted::terminal_changes, "terminal_state_never_changes"},
                    Case{Planted::never_retries, "liveness"}),
    [](const auto& param) {
      std::string name(to_string(param.param.planted));
      for (char& c : name)
        if (c == '-') c = '_';
      return name;
    });

// Drawn jobs are too short to outlive their leases; this one is not.
TEST(PlantedLease, IsCaught) {
  JobBehaviour behaviour;
  behaviour.epochs = 100;
  const std::string cluster = "deploy :simulated, pool: \"tank\" do\n  job :job0 do\n"
                              "    run [\"train\"]\n    requires gpus: 1, vram: 8\n"
                              "    exclusive true\n  end\nend\n";
  World world({7, 4, 1, Planted::endless_lease, 3, behaviour, cluster});
  Invariants invariants(world);
  std::optional<std::string> broken;
  auto run_until = [&](Instant end) {
    while (!broken && world.schedule.step(end))
      broken = invariants.check();
  };
  run_until(Instant{5000});
  world.people.dispatch(0);
  run_until(Instant{30'000});
  for (std::size_t m = 0; m < world.machine_count(); ++m)
    if (!world.machine(m).live_jobs().empty())
      for (std::size_t other = 0; other < world.machine_count(); ++other)
        world.network.cut(m, other);
  run_until(Instant{150'000});
  ASSERT_TRUE(broken);
  EXPECT_EQ(broken->substr(0, broken->find(':')), "exclusive_runs_alone");
}

TEST(Replay, OneSeedAlwaysTellsTheSameStory) {
  for (std::uint64_t seed : {3, 11, 42}) {
    const Ending first = play(story_of(seed));
    const Ending second = play(story_of(seed));
    EXPECT_EQ(first.trace_hash, second.trace_hash) << "seed " << seed;
    EXPECT_EQ(first.events, second.events) << "seed " << seed;
  }
}

TEST(Replay, AShrunkStoryBreaksTheSameInvariantWithFewerFaults) {
  for (std::uint64_t seed = 1; seed <= enough_seeds; ++seed) {
    const Story story = story_of(seed, Planted::never_retries);
    const Ending ending = play(story);
    if (invariant_of(ending) != "liveness" || story.faults.size() < 6) continue;
    const Story small = shrink(story, "liveness", 40);
    EXPECT_LT(small.faults.size(), story.faults.size());
    EXPECT_EQ(invariant_of(play(small)), "liveness");
    return;
  }
  FAIL() << "no seed failed";
}

}  // namespace
}  // namespace zed::sim
