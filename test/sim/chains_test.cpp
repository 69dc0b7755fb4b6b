// A snapshot that several machines pass on, and what breaks it: the same invariants hold, and every
// copy is there in the end.

#include <algorithm>

#include <gtest/gtest.h>

#include "sim/scenario.hpp"

namespace zed::sim {
namespace {

/// A job whose checkpoints go to every one of seven machines. Three are laptops that cannot be
/// dialled, so only the first of them can be behind another node.
const char* const many_copies = R"(deploy :simulated, pool: "tank" do
  job :job0 do
    run ["train", "0"]
    requires gpus: 1, vram: 8
    prefer gpu: "A100"
    copies 6
    retries 6
  end
end
)";

class ChainFleet : public Scenario {
public:
  ChainFleet() : Scenario(7, 1, steady_job(), many_copies) {}
  /// The next machine that passes on what it still receives.
  std::optional<std::size_t> next_middle() {
    std::optional<std::size_t> middle;
    run_until([&] {
      middle = world().transfers.passes_on();
      return middle.has_value();
    });
    return middle;
  }
  std::size_t copies_of(int epoch) {
    return machines_with("job0", "epoch-" + std::to_string(epoch)).size();
  }
  void expect_all_in_the_end() {
    ASSERT_TRUE(finishes("job0")) << broken() << state_of("job0");
    run_for(minutes(2));
    for (int epoch = 1; epoch <= 10; ++epoch)
      EXPECT_EQ(copies_of(epoch), 7u) << "epoch " << epoch;
    EXPECT_GT(world().transfers.passed_on(), 0u);
    EXPECT_EQ(broken(), "");
  }
};

TEST(Scenario, CheckpointsArePassedOnFromCopyToCopy) {
  ChainFleet fleet;
  ASSERT_TRUE(fleet.dispatch_and_reach(2)) << fleet.broken();
  fleet.expect_all_in_the_end();
  EXPECT_GE(fleet.world().transfers.passed_on(), 8u);
}

TEST(Scenario, TheAgentInTheMiddleOfAChainDies) {
  for (const std::int64_t later : {0, 2, 5, 10, 20, 40, 80, 160}) {
    ChainFleet fleet;
    ASSERT_TRUE(fleet.dispatch_and_reach(2)) << fleet.broken();
    for (int i = 0; i < 3; ++i) {
      const auto middle = fleet.next_middle();
      ASSERT_TRUE(middle);
      fleet.run_for(Millis{later});
      fleet.world().crash_agent(*middle);
      fleet.run_for(seconds(1));
      fleet.world().start_agent(*middle);
    }
    fleet.expect_all_in_the_end();
  }
}

TEST(Scenario, TheMachineInTheMiddleOfAChainIsGoneForAWhile) {
  ChainFleet fleet;
  ASSERT_TRUE(fleet.dispatch_and_reach(2)) << fleet.broken();
  const auto middle = fleet.next_middle();
  ASSERT_TRUE(middle);
  fleet.world().crash_machine(*middle);
  fleet.run_for(seconds(20));
  fleet.world().boot_machine(*middle);
  fleet.expect_all_in_the_end();
}

TEST(Scenario, AChainIsCutAtEachOfItsHops) {
  for (const bool towards_the_home : {true, false}) {
    ChainFleet fleet;
    ASSERT_TRUE(fleet.dispatch_and_reach(2)) << fleet.broken();
    const auto middle = fleet.next_middle();
    ASSERT_TRUE(middle);
    const std::size_t home = fleet.runs_on("job0").value();
    std::vector<std::size_t> others;
    for (std::size_t m = 0; m < fleet.world().machine_count(); ++m)
      if (m != *middle && (m == home) == towards_the_home) others.push_back(m);
    for (const std::size_t m : others)
      fleet.world().network.cut(*middle, m);
    fleet.run_for(seconds(30));
    for (const std::size_t m : others)
      fleet.world().network.join(*middle, m);
    fleet.expect_all_in_the_end();
  }
}

TEST(Scenario, TheHomeDiesWhileItsCheckpointIsPassedOn) {
  ChainFleet fleet;
  ASSERT_TRUE(fleet.dispatch_and_reach(3)) << fleet.broken();
  ASSERT_TRUE(fleet.next_middle());
  const std::size_t home = fleet.runs_on("job0").value();
  fleet.world().crash_machine(home);
  ASSERT_TRUE(fleet.run_until([&] {
    const auto now = fleet.runs_on("job0");
    return now && *now != home;
  })) << fleet.broken();
  fleet.world().boot_machine(home);
  ASSERT_TRUE(fleet.finishes("job0")) << fleet.broken();
  fleet.run_for(minutes(2));
  EXPECT_EQ(fleet.broken(), "");
}

TEST(Scenario, ARollbackEndsAChainAtEveryHop) {
  ChainFleet fleet;
  ASSERT_TRUE(fleet.dispatch_and_reach(4)) << fleet.broken();
  ASSERT_TRUE(fleet.next_middle());
  fleet.roll_back("job0", "@epoch-2");
  fleet.expect_all_in_the_end();
}

}  // namespace
}  // namespace zed::sim
