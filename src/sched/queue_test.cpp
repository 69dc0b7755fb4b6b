#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "sched/queue.hpp"
#include "sched/testing.hpp"

namespace zed::sched {
namespace {

using testing::fleet_of;
using testing::job;
using testing::job_id;
using testing::run;

QueuedJob queued(std::uint64_t id, const char* user, std::int64_t priority = 0) {
  return {job_id(id), priority, user, id, 1};
}

std::string ids(const std::vector<JobId>& jobs) {
  std::string text;
  for (const JobId& id : jobs)
    text += std::to_string(id.bytes[15]) + " ";
  return text;
}

TEST(Order, PriorityThenTheUserWhoHoldsLeastThenSubmitOrder) {
  EXPECT_EQ(
      ids(order({queued(1, "ann"), queued(2, "ann"), queued(3, "bob"), queued(4, "ann", 5)}, {})),
      "4 3 1 2 ");
  EXPECT_EQ(ids(order({queued(1, "ann"), queued(2, "bob")}, {{"ann", 4}})), "2 1 ");
  EXPECT_EQ(ids(order({queued(3, "ann"), queued(1, "ann"), queued(2, "ann")}, {})), "1 2 3 ");
}

RC_GTEST_PROP(Order, IsAPermutationAndRespectsPriority, (const std::vector<std::uint8_t>& seeds)) {
  std::vector<QueuedJob> pending;
  for (std::size_t i = 0; i < seeds.size() && i < 250; ++i) {
    QueuedJob q = queued(i, seeds[i] % 3 == 0 ? "ann" : "bob", seeds[i] % 5);
    q.weight = seeds[i] % 4;
    pending.push_back(q);
  }
  auto ordered = order(pending, {});
  RC_ASSERT(ordered.size() == pending.size());
  RC_ASSERT(std::set<JobId>(ordered.begin(), ordered.end()).size() == pending.size());
  std::int64_t before = 100;
  for (const JobId& id : ordered) {
    RC_ASSERT(pending[id.bytes[15]].priority <= before);
    before = pending[id.bytes[15]].priority;
  }
}

// kueue#6947: an impossible job blocks the queue.
TEST(Schedule, AnImpossibleJobBlocksNobody) {
  auto fleet = fleet_of("a: A100/80");
  MayPass nobody_passes = [](const PlaceRequest&, const PlaceRequest&) { return false; };
  for (const MayPass& may_pass : {MayPass{}, nobody_passes}) {
    Index index(fleet);
    auto decisions = schedule(index, {job("vram=640 id=1"), job("vram=48 id=2")}, may_pass);
    ASSERT_EQ(decisions.size(), 2u);
    EXPECT_FALSE(decisions[0].placement);
    EXPECT_EQ(testing::show(decisions[1].placement), "a/gpu0");
  }
}

TEST(Schedule, ABackfillRuleHoldsTheRestBackBehindAJobThatOnlyWaits) {
  auto fleet = fleet_of("a: A100/80! A100/80");
  MayPass nobody_passes = [](const PlaceRequest&, const PlaceRequest&) { return false; };
  std::vector<PlaceRequest> ordered{job("gpus=2 id=1"), job("gpus=1 id=2")};
  Index index(fleet);
  EXPECT_FALSE(schedule(index, ordered, nobody_passes)[1].placement);
  EXPECT_TRUE(schedule(index, ordered)[1].placement);
}

TEST(Schedule, NeverGivesOneGpuTwiceInOnePass) {
  auto fleet = fleet_of("a: 2xA100/80");
  Index index(fleet);
  std::vector<PlaceRequest> ordered;
  for (int i = 0; i < 5; ++i)
    ordered.push_back(job("vram=48 id=" + std::to_string(i)));
  std::set<std::string> given;
  for (const Decision& decision : schedule(index, ordered))
    EXPECT_TRUE(!decision.placement || given.insert(decision.placement->gpus.at(0)).second);
  EXPECT_EQ(given.size(), 2u);
}

// volcano#3948: free GPUs enough, but not on one node.
TEST(ProposeMoves, FreesANodeForTheLargeJob) {
  auto fleet = fleet_of("a: 4xA100/80; b: 4xA100/80 cordoned");
  auto small = job("gpus=1 vram=48 id=1");
  run(fleet, small);
  fleet.nodes.at(testing::node("b")).status = NodeStatus::up;
  auto middle = job("gpus=2 vram=48 id=2 only=b");
  run(fleet, middle);
  auto large = job("gpus=4 vram=48 id=3");
  EXPECT_TRUE(std::holds_alternative<Rejection>(place(fleet, large)));
  std::vector<Move> expected{{job_id(1), testing::node("a"), testing::node("b")}};
  EXPECT_EQ(propose_moves(fleet, large, {{job_id(1), small.job}, {job_id(2), middle.job}}),
            expected);
  EXPECT_TRUE(propose_moves(fleet, large, {}).empty()) << "an unknown job stays";
  EXPECT_TRUE(propose_moves(fleet, job("gpus=8"), {{job_id(1), small.job}}).empty());
  EXPECT_TRUE(propose_moves(fleet, job("gpus=1"), {{job_id(1), small.job}}).empty());
}

}  // namespace
}  // namespace zed::sched
