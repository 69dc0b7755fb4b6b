#include <gtest/gtest.h>

#include "agent/bench_test.hpp"

namespace zed::agent::test {
namespace {

/// The controller's picture has the same datasets and snapshots as the store.
void expect_same_picture(const Bench& b) {
  auto picture = b.picture();
  auto all = const_cast<sim::MemoryStore&>(b.store).list().value();
  EXPECT_EQ(picture.size(), all.size());
  for (const Dataset& dataset : all) {
    ASSERT_EQ(picture.count(dataset.name), 1u) << dataset.name.str();
    std::set<CheckpointId> told;
    std::set<CheckpointId> there;
    for (const Snapshot& snapshot : picture[dataset.name].snapshots)
      told.insert(snapshot.id);
    for (const Snapshot& snapshot : dataset.snapshots)
      there.insert(snapshot.id);
    EXPECT_EQ(told, there) << dataset.name.str();
    EXPECT_EQ(picture[dataset.name].readonly, dataset.readonly) << dataset.name.str();
  }
}

TEST(Inventory, WhatAPersonDoesIsAdoptedWithinSeconds) {
  Bench b;
  b.start();
  b.run_job();
  b.job_commits(1);
  must(b.store.snapshot(SnapshotName{b.dataset(), "by-hand"}, {}));
  must(b.store.create(ds("models/new"), {{property::uuid, id<DatasetId>("new").str()}}));
  b.pass(seconds(5));
  expect_same_picture(b);
  must(b.store.destroy_snapshot(SnapshotName{b.dataset(), "by-hand"}));
  must(b.store.destroy(ds("models/new")));
  b.pass(seconds(5));
  expect_same_picture(b);
  EXPECT_TRUE(b.stops.empty());  // no checkpoint is gone: no fork
  bool adopted = false;
  for (const std::string& notice : b.notices())
    adopted |= notice.find("adopted, taken by hand: @by-hand") != std::string::npos;
  EXPECT_TRUE(adopted);
}

TEST(Inventory, TheFirstHeartbeatKnowsTheFreeSpace) {
  Bench b;
  b.start();
  ASSERT_FALSE(b.said<Heartbeat>().empty());
  EXPECT_GT(b.said<Heartbeat>().front().pool_free, Bytes{});
}

TEST(Inventory, OurOwnChangesAreNotTakenForAPersons) {
  Bench b;
  b.start();
  b.run_job();
  for (int epoch = 1; epoch <= 5; ++epoch) {
    b.job_commits(epoch);
    b.pass(seconds(3));
  }
  Destroy prune{b.dataset(), b.seen("jobs/train").uuid, {b.checkpoint("epoch-1")}};
  b.order(prune);
  b.pass(seconds(5));
  EXPECT_TRUE(b.notices().empty());
  expect_same_picture(b);
}

TEST(Inventory, AFullPictureFollowsEveryHello) {
  Bench b;
  b.start();
  b.run_job();
  b.job_commits(1);
  b.disconnect();
  b.job_commits(2);
  b.pass(seconds(3));
  b.messages.clear();
  b.connect(2);
  expect_same_picture(b);
}

TEST(Inventory, ALookThatBeganBeforeACommitSaysNothing) {
  Bench b;
  b.start();
  b.run_job();
  b.job_commits(1);
  must(b.store.snapshot(SnapshotName{b.dataset(), "by-hand"}, {}));
  // The scan's look at the dataset is answered late, with what was true before the commit.
  b.answer_store = false;
  b.pass(seconds(3));
  std::optional<CallStore> look;
  for (int round = 0; round < 3 && !look; ++round)
    for (const CallStore& call : std::exchange(b.unanswered, {})) {
      const auto* inspect = std::get_if<env::InspectDataset>(&call.request);
      if (inspect != nullptr && inspect->dataset == b.dataset()) {
        look = call;
        continue;
      }
      b.feed(StoreReturned{call.id, env::perform(b.store, call.request)});
    }
  ASSERT_TRUE(look);
  auto old = env::perform(b.store, look->request);
  b.answer_store = true;
  EXPECT_TRUE(b.job_commits(2).result);
  b.feed(StoreReturned{look->id, std::move(old)});
  EXPECT_NE(b.state->datasets().at(b.dataset()).find("epoch-2"), nullptr);
  EXPECT_TRUE(b.stops.empty());
  b.pass(seconds(5));
  expect_same_picture(b);
}

TEST(Inventory, ResultsOfAnEarlierRunAreDropped) {
  Bench b;
  b.start();
  b.answer_store = false;
  b.make_job_dataset_later();
  ASSERT_FALSE(b.unanswered.empty());
  CallStore old = b.unanswered.front();
  b.crash();
  b.answer_store = true;
  b.start();
  b.feed(StoreReturned{old.id, env::perform(b.store, old.request)});
  b.feed(StoreReturned{12345, fail(ErrorCode::io, "whose?")});
  b.feed(AttemptStarted{99, {}});
  b.feed(TransferEnded{id<StepId>("unknown"), fail(ErrorCode::io, "whose?")});
  b.feed(AttemptExited{id<JobId>("unknown"), gen(1), {}});
  b.feed(JobStopped{55});
  b.feed(JobDisconnected{55});
  EXPECT_TRUE(b.state->is_ready());
}

}  // namespace
}  // namespace zed::agent::test
