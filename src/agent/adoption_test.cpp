// A dataset that a person made becomes one of ours; a snapshot goes to a machine without an agent.

#include <gtest/gtest.h>

#include "agent/bench_test.hpp"

namespace zed::agent::test {
namespace {

const DatasetName stuff = ds("stuff/llama");
const DatasetId uuid = id<DatasetId>("llama");

AdoptDataset adoption(std::string_view to = "") {
  AdoptDataset action;
  action.dataset = stuff;
  if (!to.empty()) action.to = ds(to);
  action.properties = {{property::uuid, uuid.str()}, {property::type, "model"}};
  action.snapshot_name = "v1";
  action.snapshot = id<CheckpointId>("v1");
  return action;
}

void make_stuff(Bench& b) {
  must(b.store.create(stuff, {{"note", "mine"}}));
}

TEST(Adoption, GivesAnIdentityAndAFirstSnapshotAndKeepsWhatWasThere) {
  Bench b;
  make_stuff(b);
  b.start();
  auto answer = b.order(adoption());
  ASSERT_TRUE(answer && !answer->error) << answer->error->describe();
  EXPECT_EQ(answer->snapshot, id<CheckpointId>("v1"));
  Dataset seen = b.seen("stuff/llama");
  EXPECT_EQ(seen.uuid, uuid);
  EXPECT_EQ(seen.property("note"), "mine");
  EXPECT_FALSE(seen.readonly) << "a person goes on writing there";
  EXPECT_EQ(b.picture().at(stuff).uuid, uuid) << "the controller hears of it";
  auto again = b.order(adoption());
  ASSERT_TRUE(again && !again->error) << "done already";
  EXPECT_EQ(b.seen("stuff/llama").snapshots.size(), 1u);
}

TEST(Adoption, SnapshotsOfAPersonAreEnough) {
  Bench b;
  make_stuff(b);
  must(b.store.snapshot(SnapshotName{stuff, "mine"}, {}));
  b.start();
  ASSERT_FALSE(b.order(adoption())->error);
  EXPECT_EQ(b.seen("stuff/llama").snapshots.size(), 1u);
}

TEST(Adoption, RenamesIntoARootOnly) {
  Bench b;
  make_stuff(b);
  b.start();
  EXPECT_EQ(b.order(adoption("elsewhere/llama"))->error->code, ErrorCode::refused);
  EXPECT_TRUE(b.seen("stuff/llama").uuid.is_nil()) << "nothing was done";
  ASSERT_FALSE(b.order(adoption("models/llama"))->error);
  EXPECT_FALSE(b.is_there("stuff/llama"));
  EXPECT_EQ(b.seen("models/llama").uuid, uuid);
  auto picture = b.picture();
  EXPECT_FALSE(picture.contains(stuff));
  EXPECT_TRUE(picture.contains(ds("models/llama")));
}

TEST(Adoption, ACrashAfterAnyChangeIsGoneOnWith) {
  for (int change = 1; change <= 3; ++change)
    for (bool happens : {false, true}) {
      Bench b;
      make_stuff(b);
      b.start();
      b.crash_at(change, happens);
      b.order(adoption("models/llama"));
      ASSERT_TRUE(b.crashed()) << change;
      b.start();
      auto answer = b.order(adoption("models/llama"));
      ASSERT_TRUE(answer && !answer->error) << change << happens << answer->error->describe();
      EXPECT_EQ(b.seen("models/llama").uuid, uuid);
      EXPECT_EQ(b.seen("models/llama").snapshots.size(), 1u) << change << happens;
      EXPECT_FALSE(b.is_there("stuff/llama"));
    }
}

TEST(Adoption, WhatHasAnotherIdentityOrIsOursIsRefused) {
  Bench b;
  must(b.store.create(stuff, {{property::uuid, id<DatasetId>("other").str()}}));
  b.start();
  EXPECT_EQ(b.order(adoption())->error->code, ErrorCode::exists);
  AdoptDataset missing = adoption();
  missing.dataset = ds("stuff/none");
  EXPECT_EQ(b.order(missing)->error->code, ErrorCode::not_found);
  AdoptDataset own = adoption();
  own.dataset = ds("zed/node");
  must(b.store.create(own.dataset, {}));
  EXPECT_EQ(b.order(own)->error->code, ErrorCode::refused);
  AdoptDataset nameless = adoption();
  nameless.properties.clear();
  EXPECT_TRUE(b.order(nameless)->error);
}

// ---- to a machine without an agent ----

SendToHost to_host() {
  return {stuff, DatasetId{}, id<CheckpointId>("v1"), "v1", "root@workstation", "tank/llama"};
}

Bench& with_snapshot(Bench& b, StoreKind kind) {
  make_stuff(b);
  must(b.store.snapshot(SnapshotName{stuff, "v1"}, {{property::id, id<CheckpointId>("v1").str()}}));
  b.facts.store = kind;
  b.start();
  return b;
}

TEST(HostSends, AreToldOfAndAnswered) {
  Bench b;
  with_snapshot(b, StoreKind::zfs);
  b.order(to_host());
  StepId step = b.last_step();
  ASSERT_EQ(b.host_sends.size(), 1u);
  EXPECT_EQ(b.host_sends[0].send, to_host());
  b.feed(TransferProgressed{step, Bytes{10}, Bytes{100}, Bytes{5}});
  ASSERT_EQ(b.said<TransferProgress>().size(), 1u);
  EXPECT_EQ(b.said<TransferProgress>()[0].total, Bytes{100});
  b.feed(TransferEnded{step, TransferOutcome{Bytes{100}, {}}});
  EXPECT_FALSE(b.answer_to(step)->error);
  EXPECT_EQ(b.answer_to(step)->moved, Bytes{100});
}

TEST(HostSends, AreCancelledLikeOthers) {
  Bench b;
  with_snapshot(b, StoreKind::zfs);
  b.order(to_host());
  b.say(CancelStep{b.last_step()});
  ASSERT_EQ(b.cancels.size(), 1u);
  EXPECT_EQ(b.answer_to(b.last_step())->error->code, ErrorCode::cancelled);
}

TEST(HostSends, NeedOpenZfsAndTheSnapshot) {
  Bench folders;
  with_snapshot(folders, StoreKind::dir);
  EXPECT_EQ(folders.order(to_host())->error->code, ErrorCode::unsupported);
  Bench b;
  with_snapshot(b, StoreKind::zfs);
  SendToHost gone = to_host();
  gone.snapshot = id<CheckpointId>("v2");
  EXPECT_EQ(b.order(gone)->error->code, ErrorCode::not_found);
  SendToHost other = to_host();
  other.uuid = uuid;
  EXPECT_EQ(b.order(other)->error->code, ErrorCode::stale);
  EXPECT_TRUE(b.host_sends.empty());
}

}  // namespace
}  // namespace zed::agent::test
