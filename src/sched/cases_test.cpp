// Bugs of other schedulers that placement must not have. docs/scheduling.md lists all of them and
// where each is tested; the trackers are named there.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sched/match.hpp"
#include "sched/queue.hpp"
#include "sched/testing.hpp"

namespace zed::sched {
namespace {

using testing::fleet_of;
using ::testing::HasSubstr;
using testing::job;
using testing::job_id;

std::string placed(std::string_view nodes, std::string_view text) {
  auto fleet = fleet_of(nodes);
  return testing::show(place(fleet, job(text, fleet)));
}

TEST(Case01, APreferenceIsNeverOutweighed) {
  // Data, fit and name all speak for b.
  EXPECT_EQ(placed("z: 8xA100/80; b: RTX_4090/24 has m", "m vram=24 prefer=gpu:A100"), "z/gpu0");
}

TEST(Case02, APreferredHostThatIsDownBlocksNobody) {
  EXPECT_EQ(placed("a: A100/80; b: A100/80 lost", "vram=48 prefer=node:b"), "a/gpu0");
}

TEST(Case03, SizesAndTyposOfNamesAreTold) {
  const char* both = "a: NVIDIA_A100-SXM4-40GB/40; b: NVIDIA_A100-SXM4-80GB/80";
  EXPECT_EQ(placed(both, "gpu=A100-80GB"), "b/gpu0");
  EXPECT_EQ(placed(both, "gpu=A100-40GB"), "a/gpu0");
  EXPECT_EQ(placed(both, "gpu=A1000"), "nowhere");
  EXPECT_EQ(placed(both, "gpu=A10"), "nowhere");
}

TEST(Case04, MemoryThatStrangersUseIsNotFree) {
  EXPECT_EQ(placed("a: A100/80+70; b: A100/80", "vram=48"), "b/gpu0");
  EXPECT_EQ(placed("a: A100/80+70", "vram=12GiB share=true"), "nowhere");
}

TEST(Case05, TheTwentyFourthSharerOfACardWaits) {
  // 24 x 2000 MiB on 46,068 MiB.
  auto fleet = fleet_of("a: L40S/48");
  fleet.nodes.begin()->second.gpus[0].vram_reported = mebibytes(46'068);
  Index index(fleet);
  for (int i = 1; i <= 24; ++i) {
    auto request = job("vram=2000MiB share=true");
    request.job.id = job_id(static_cast<std::uint64_t>(i));
    auto placement = place(index, request);
    EXPECT_EQ(placement.has_value(), i <= 23) << i;
    if (placement) index.reserve(reservation_of(request, *placement));
  }
}

TEST(Case06, SixteenHalfGpuJobsAtOnceAreEightCards) {
  auto fleet = fleet_of("a: 4xA100/80");
  std::vector<PlaceRequest> requests;
  for (std::uint64_t i = 1; i <= 16; ++i) {
    requests.push_back(job("vram=38GiB share=true"));
    requests.back().job.id = job_id(i);
  }
  Index index(fleet);
  std::map<std::string, int> sharers;
  for (const Decision& decision : schedule(index, requests))
    if (decision.placement) ++sharers[decision.placement->gpus.front()];
  EXPECT_EQ(sharers.size(), 4u);
  for (const auto& [gpu, count] : sharers)
    EXPECT_EQ(count, 2) << gpu;
}

TEST(Case07, AGpuIsTakenFromTheDecisionOnNotFromTheStart) {
  auto fleet = fleet_of("a: A100/80");
  Index index(fleet);
  auto first = job("gpus=1 id=1");
  auto second = job("gpus=1 id=2");
  index.reserve(reservation_of(first, *place(index, first)));
  EXPECT_FALSE(place(index, second));
  index.update(fleet.nodes.begin()->second, {});
  EXPECT_FALSE(place(index, second)) << "a node that says again that nothing runs changes nothing";
}

TEST(Case25, AnImpossibleJobBlocksNobodyBehindIt) {
  auto fleet = fleet_of("a: A100/80");
  Index index(fleet);
  auto decisions = schedule(index, {job("vram=500 id=1"), job("gpus=1 id=2")},
                            [](const PlaceRequest&, const PlaceRequest&) { return false; });
  EXPECT_FALSE(decisions[0].placement);
  EXPECT_TRUE(decisions[1].placement);
}

TEST(Case26, EveryReasonOfEveryNodeIsTold) {
  auto fleet = fleet_of("a: RTX_3080/10; b: A100/80 lost; c: RTX_4090/24 os macos");
  auto result = place(fleet, job("vram=48 os=linux", fleet));
  std::string text = show(std::get<Rejection>(result));
  EXPECT_THAT(text, HasSubstr("a"));
  EXPECT_THAT(text, HasSubstr("48 GB"));
  EXPECT_THAT(text, HasSubstr("lost"));
  EXPECT_THAT(text, HasSubstr("macos"));
  const auto& nodes = std::get<Rejection>(result).nodes;
  ASSERT_EQ(nodes.size(), 3u);
  EXPECT_EQ(nodes[2].shortfalls.size(), 2u) << "its GPU and its system, not only the first";
}

TEST(Case32, OneLostGpuBlocksNoOther) {
  EXPECT_EQ(placed("a: A100/80~ A100/80", "vram=48"), "a/gpu1");
}

TEST(Case35, FragmentsAreToldWithTheMovesThatJoinThem) {
  auto fleet = fleet_of("a: 4xA100/80; b: A100/80");
  auto small = job("gpus=1 id=1 only=a");
  testing::run(fleet, small);
  auto large = job("gpus=4 id=2");
  EXPECT_EQ(testing::show(place(fleet, large)), "nowhere");
  small.only.reset();
  std::vector<Move> moves{{job_id(1), testing::node("a"), testing::node("b")}};
  EXPECT_EQ(propose_moves(fleet, large, {{job_id(1), small.job}}), moves);
}

}  // namespace
}  // namespace zed::sched
