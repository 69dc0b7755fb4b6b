#include <gtest/gtest.h>

#include "controller/gpu_history.hpp"

namespace zed::controller {
namespace {

NodeName node(const std::string& name) {
  return NodeName::parse(name).value();
}

GpuLoad load(const std::string& uuid, std::int64_t at, std::int64_t utilization = 0) {
  GpuLoad made;
  made.uuid = uuid;
  made.at = WallTime{at};
  made.utilization = utilization;
  return made;
}

TEST(GpuHistory, KeepsTheLastSamplesOfEachGpu) {
  GpuHistory history;
  for (int at = 1; at <= 100; ++at)
    history.add(node("a"), {load("GPU-0", at, at), load("GPU-1", at, 1)});
  auto samples = history.of(node("a"), "GPU-0");
  ASSERT_EQ(samples.size(), GpuHistory::longest);
  EXPECT_EQ(samples.front().utilization, 41);
  EXPECT_EQ(samples.back().utilization, 100);
  EXPECT_EQ(history.of(node("a"), "GPU-1").size(), GpuHistory::longest);
  EXPECT_TRUE(history.of(node("a"), "GPU-2").empty());
  EXPECT_TRUE(history.of(node("b"), "GPU-0").empty());
}

TEST(GpuHistory, ASampleThatComesTwiceOrLateIsDropped) {
  GpuHistory history;
  history.add(node("a"), {load("GPU-0", 5)});
  history.add(node("a"), {load("GPU-0", 5)});
  history.add(node("a"), {load("GPU-0", 4)});
  EXPECT_EQ(history.of(node("a"), "GPU-0").size(), 1u);
}

TEST(GpuHistory, IsBoundedWhateverANodeSays) {
  GpuHistory history;
  for (int i = 0; i < 1000; ++i)
    history.add(node("a"), {load("GPU-" + std::to_string(i), 1)});
  std::size_t kept = 0;
  for (int i = 0; i < 1000; ++i)
    kept += history.of(node("a"), "GPU-" + std::to_string(i)).size();
  EXPECT_EQ(kept, GpuHistory::most_gpus);
}

TEST(GpuHistory, ManyNodesShareTheRoom) {
  GpuHistory history;
  constexpr int nodes = 700;
  for (int at = 1; at <= 3; ++at)
    for (int n = 0; n < nodes; ++n) {
      std::vector<GpuLoad> loads;
      for (std::size_t i = 0; i < GpuHistory::most_gpus; ++i)
        loads.push_back(load("GPU-" + std::to_string(i), at));
      history.add(node("n" + std::to_string(n)), loads);
    }
  // 700 x 128 GPUs: each keeps its last sample alone.
  EXPECT_EQ(history.of(node("n5"), "GPU-7").size(), 1u);
  for (int n = 1; n < nodes; ++n)
    history.forget(node("n" + std::to_string(n)));
  for (int at = 4; at <= 6; ++at)
    history.add(node("n0"), {load("GPU-7", at)});
  EXPECT_EQ(history.of(node("n0"), "GPU-7").size(), 4u);
  EXPECT_TRUE(history.of(node("n5"), "GPU-7").empty());
}

}  // namespace
}  // namespace zed::controller
