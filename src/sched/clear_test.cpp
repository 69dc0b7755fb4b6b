#include "sched/clear.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sched/testing.hpp"

namespace zed::sched {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using namespace testing;

/// A fleet with jobs that run in it, and what is known of their ends.
struct Busy {
  FleetView fleet;
  std::map<JobId, Occupant> occupants;
  std::map<JobId, std::string> names;

  explicit Busy(std::string_view nodes) : fleet(fleet_of(nodes)) {}

  /// `cost` in seconds; ends_in 0: unknown.
  void runs(const std::string& name, const std::string& request, int ends_in, int cost) {
    PlaceRequest wanted = job(request);
    wanted.job.id = job_id(100 + names.size());
    run(fleet, wanted);
    names[wanted.job.id] = name;
    Occupant occupant;
    if (ends_in > 0) occupant.ends_within = seconds(ends_in);
    occupant.cost = seconds(cost);
    occupants[wanted.job.id] = occupant;
  }

  /// "b/gpu0: first second", or "never".
  std::string clear(const std::string& request, Leave leave) const {
    auto found = clearing(fleet, {}, job(request), occupants, leave);
    if (!found) return "never";
    std::string text = testing::show(std::optional(found->placement)) + ":";
    for (const JobId& id : found->leaving)
      text += " " + names.at(id);
    return text;
  }
};

TEST(Clearing, TheNodeThatIsFreeSoonest) {
  Busy busy("a: A100/80; b: A100/80");
  busy.runs("slow", "gpus=1 only=a", 500, 1);
  busy.runs("quick", "gpus=1 only=b", 60, 1);
  EXPECT_EQ(busy.clear("gpus=1", Leave::soonest), "b/gpu0: quick");
  auto found = clearing(busy.fleet, {}, job("gpus=1"), busy.occupants, Leave::soonest);
  EXPECT_EQ(found->within, seconds(60));
}

TEST(Clearing, AnUnknownEndIsLaterThanAKnownOne) {
  Busy busy("a: A100/80; b: A100/80");
  busy.runs("unknown", "gpus=1 only=a", 0, 1);
  busy.runs("known", "gpus=1 only=b", 5000, 1);
  EXPECT_EQ(busy.clear("gpus=1", Leave::soonest), "b/gpu0: known");
  Busy one("a: A100/80");
  one.runs("unknown", "gpus=1", 0, 1);
  auto found = clearing(one.fleet, {}, job("gpus=1"), one.occupants, Leave::soonest);
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->within);
}

TEST(Clearing, TheVictimsThatLoseLeast) {
  Busy busy("a: 2xA100/80; b: 2xA100/80");
  busy.runs("a1", "gpus=1 only=a", 0, 900);
  busy.runs("a2", "gpus=1 only=a", 0, 10);
  busy.runs("b1", "gpus=1 only=b", 0, 300);
  busy.runs("b2", "gpus=1 only=b", 0, 400);
  EXPECT_EQ(busy.clear("gpus=1", Leave::cheapest), "a/gpu1: a2");
  EXPECT_EQ(busy.clear("gpus=2", Leave::cheapest), "b/gpu0+gpu1: b1 b2");
}

TEST(Clearing, WhoNeedNotLeaveStays) {
  // The small one goes first as it is cheapest, and then was not in the way.
  Busy busy("a: A100/80 RTX_4090/24");
  busy.runs("small", "gpu=RTX_4090 gpus=1", 0, 1);
  busy.runs("large", "gpu=A100 gpus=1", 0, 100);
  EXPECT_EQ(busy.clear("vram=48", Leave::cheapest), "a/gpu0: large");
}

TEST(Clearing, OnlyThoseWhoMayLeave) {
  Busy busy("a: A100/80");
  busy.runs("stays", "gpus=1", 0, 1);
  busy.occupants.clear();
  EXPECT_EQ(busy.clear("gpus=1", Leave::cheapest), "never");
}

TEST(Clearing, AnImpossibleJobHasNone) {
  Busy busy("a: A100/80");
  busy.runs("one", "gpus=1", 10, 1);
  EXPECT_EQ(busy.clear("gpus=2", Leave::soonest), "never");
  EXPECT_EQ(busy.clear("vram=500", Leave::soonest), "never");
  EXPECT_EQ(busy.clear("memory=8", Leave::soonest), "never") << "no GPU: nothing to hold";
}

TEST(Clearing, WhatIsPromisedIsTakenToo) {
  FleetView fleet = fleet_of("a: A100/80");
  Reservation promise{node("a"), job_id(9), {"a/gpu0"}, false, Bytes{}};
  EXPECT_FALSE(clearing(fleet, {promise}, job("gpus=1"), {}, Leave::soonest));
  std::map<JobId, Occupant> occupants{{job_id(9), Occupant{seconds(5), seconds(1)}}};
  auto found = clearing(fleet, {promise}, job("gpus=1"), occupants, Leave::soonest);
  ASSERT_TRUE(found);
  EXPECT_THAT(found->leaving, ElementsAre(job_id(9)));
  auto free = clearing(fleet, {}, job("gpus=1"), {}, Leave::soonest);
  ASSERT_TRUE(free);
  EXPECT_THAT(free->leaving, IsEmpty());
}

TEST(EvictionCost, CountsEveryGpuAndTheFiles) {
  EXPECT_EQ(eviction_cost(1, seconds(100), Bytes{0}), seconds(100));
  EXPECT_EQ(eviction_cost(4, seconds(100), Bytes{0}), seconds(400));
  EXPECT_EQ(eviction_cost(0, seconds(100), Bytes{0}), seconds(100)) << "a job without GPUs";
  EXPECT_EQ(eviction_cost(1, Millis{-5}, Bytes{0}), Millis{0}) << "a clock that went back";
  EXPECT_EQ(eviction_cost(1, seconds(0), Bytes{500'000'000}), seconds(2)) << "saved and restored";
}

}  // namespace
}  // namespace zed::sched
