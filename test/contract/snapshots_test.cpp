// Snapshots, checkpoints, holds, clones, promotion, forks.

#include "contract/stores.hpp"

namespace zed::contract {
namespace {

class Snapshots : public StoreContract {};

TEST_P(Snapshots, KeepWhatTheFilesWere) {
  make_job("jobs/a");
  subject().write(ds("jobs/a"), "weights.bin", "old");
  subject().write(ds("jobs/a"), "sub/log", "line");
  auto taken = store().snapshot(snap("jobs/a@one"), with_id(1, {{"loss", "0.5"}}));
  ASSERT_OK(taken);
  EXPECT_EQ(taken->id, checkpoint_id(1));
  subject().write(ds("jobs/a"), "weights.bin", "new");
  subject().remove(ds("jobs/a"), "sub/log");
  EXPECT_EQ(subject().snapshot(snap("jobs/a@one")),
            (Files{{"weights.bin", "old"}, {"sub/log", "line"}}));
  EXPECT_EQ(subject().live(ds("jobs/a")), (Files{{"weights.bin", "new"}}));
  auto shown = store().inspect(ds("jobs/a"))->snapshots.at(0);
  expect_same(shown, *taken);
  EXPECT_EQ(shown.properties.at("loss"), "0.5");
  EXPECT_GE(shown.referenced, Bytes{7});  // blocks, on some stores
}

TEST_P(Snapshots, AreNamedOnceAndIdentifiedOnce) {
  make_job("jobs/a");
  EXPECT_OK(store().snapshot(snap("jobs/a@one"), with_id(1)));
  EXPECT_REFUSED("exists", store().snapshot(snap("jobs/a@one"), with_id(2)));
  EXPECT_REFUSED("exists", store().snapshot(snap("jobs/a@two"), with_id(1)));
  EXPECT_REFUSED("not_found", store().snapshot(snap("jobs/b@one"), {}));
  EXPECT_REFUSED("invalid", store().snapshot(snap("jobs/a@two"), {{property::id, "x"}}));
  EXPECT_EQ(snapshots_of("jobs/a"), (Words{"one"}));
}

TEST_P(Snapshots, TakenByHandGetAnIdFromTheirGuid) {
  make_job("jobs/a");
  auto taken = store().snapshot(snap("jobs/a@by-hand"), {}).value();
  EXPECT_EQ(taken.id, id_from_guid(taken.guid));
}

TEST_P(Snapshots, AreListedOldestFirst) {
  make_job("jobs/a");
  for (const char* word : {"z", "a", "m"})
    EXPECT_OK(store().snapshot(snap(std::string("jobs/a@") + word), {}));
  EXPECT_EQ(snapshots_of("jobs/a"), (Words{"z", "a", "m"}));
  auto shown = store().inspect(ds("jobs/a"))->snapshots;
  EXPECT_LT(shown[0].createtxg, shown[1].createtxg);
  EXPECT_LT(shown[1].createtxg, shown[2].createtxg);
  subject().restart();
  EXPECT_EQ(store().inspect(ds("jobs/a"))->snapshots, shown);
  EXPECT_OK(store().snapshot(snap("jobs/a@later"), {}));
  EXPECT_EQ(snapshots_of("jobs/a"), (Words{"z", "a", "m", "later"}));
}

TEST_P(Snapshots, SurviveTheNext) {
  make_job("jobs/a");
  for (std::uint8_t n = 1; n <= 5; ++n) {
    subject().write(ds("jobs/a"), "w", "epoch " + std::to_string(n));
    subject().write(ds("jobs/a"), "same", "never changes");
    EXPECT_OK(store().commit_checkpoint(checkpoint("jobs/a", n)));
  }
  EXPECT_OK(store().destroy_snapshot(snap("jobs/a@epoch-3")));
  EXPECT_REFUSED("not_found", store().destroy_snapshot(snap("jobs/a@epoch-3")));
  for (int n : {1, 2, 4, 5})
    EXPECT_EQ(subject().snapshot(snap("jobs/a@epoch-" + std::to_string(n))),
              (Files{{"w", "epoch " + std::to_string(n)}, {"same", "never changes"}}));
}

TEST_P(Snapshots, OfAReadonlyDatasetAreTaken) {
  make_job("jobs/a");
  subject().write(ds("jobs/a"), "w", "1");
  EXPECT_OK(store().set_readonly(ds("jobs/a"), true));
  EXPECT_OK(store().snapshot(snap("jobs/a@closing"), with_id(1)));
  EXPECT_EQ(subject().snapshot(snap("jobs/a@closing")), (Files{{"w", "1"}}));
}

TEST_P(Snapshots, DestroyedWhileNewestLeaveTheFilesAlone) {
  make_job("jobs/a");
  subject().write(ds("jobs/a"), "w", "1");
  EXPECT_OK(store().snapshot(snap("jobs/a@one"), {}));
  subject().write(ds("jobs/a"), "w", "2");
  EXPECT_OK(store().snapshot(snap("jobs/a@two"), {}));
  EXPECT_OK(store().revert_live(ds("jobs/a")));
  EXPECT_OK(store().destroy_snapshot(snap("jobs/a@two")));
  EXPECT_EQ(subject().live(ds("jobs/a")), (Files{{"w", "2"}}));
}

TEST_P(Snapshots, HeldAreNotDestroyed) {
  make_job("jobs/a");
  EXPECT_OK(store().snapshot(snap("jobs/a@one"), {}));
  EXPECT_OK(store().hold(snap("jobs/a@one"), "transfer-1"));
  EXPECT_OK(store().hold(snap("jobs/a@one"), "transfer-1"));
  EXPECT_OK(store().hold(snap("jobs/a@one"), "transfer-2"));
  EXPECT_OK(store().release(snap("jobs/a@one"), "transfer-1"));
  subject().restart();
  EXPECT_REFUSED("busy", store().destroy_snapshot(snap("jobs/a@one")));
  EXPECT_OK(store().release(snap("jobs/a@one"), "transfer-2"));
  EXPECT_OK(store().release(snap("jobs/a@one"), "transfer-2"));
  EXPECT_OK(store().destroy_snapshot(snap("jobs/a@one")));
  EXPECT_REFUSED("not_found", store().hold(snap("jobs/a@one"), "x"));
  EXPECT_REFUSED("not_found", store().release(snap("jobs/a@one"), "x"));
}

TEST_P(Snapshots, BringTheFilesBack) {
  make_job("jobs/a");
  EXPECT_REFUSED("not_found", store().revert_live(ds("jobs/a")));
  subject().write(ds("jobs/a"), "w", "good");
  EXPECT_OK(store().snapshot(snap("jobs/a@one"), {}));
  subject().write(ds("jobs/a"), "w", "bad");
  subject().write(ds("jobs/a"), "extra/file", "bad");
  EXPECT_OK(store().revert_live(ds("jobs/a")));
  EXPECT_EQ(subject().live(ds("jobs/a")), (Files{{"w", "good"}}));
  EXPECT_EQ(snapshots_of("jobs/a"), (Words{"one"}));
  subject().write(ds("jobs/a"), "w", "again");
  EXPECT_EQ(subject().snapshot(snap("jobs/a@one")), (Files{{"w", "good"}}));
}

// ---- commit_checkpoint --------------------------------------------------------------------------

TEST_P(Snapshots, CommitTakesSnapshotAndPropertiesTogether) {
  make_job("jobs/a");
  subject().write(ds("jobs/a"), "w", "1");
  ASSERT_OK(store().commit_checkpoint(checkpoint("jobs/a", 1)));
  auto dataset = store().inspect(ds("jobs/a")).value();
  EXPECT_EQ(dataset.property(property::checkpoint), "@epoch-1");
  ASSERT_NE(dataset.newest_checkpoint(), nullptr);
  EXPECT_EQ(dataset.newest_checkpoint()->seq(), 1U);
  EXPECT_OK(store().commit_checkpoint(checkpoint("jobs/a", 2)));
}

TEST_P(Snapshots, CommitRefusesEveryKindOfStale) {
  make_job("jobs/a");
  ASSERT_OK(store().commit_checkpoint(checkpoint("jobs/a", 1)));
  auto other_uuid = checkpoint("jobs/a", 2);
  other_uuid.uuid = uuid(9);
  auto old_generation = checkpoint("jobs/a", 2);
  old_generation.generation = generation(0);
  auto newer_generation = checkpoint("jobs/a", 2);
  newer_generation.generation = generation(2);
  auto other_timeline = checkpoint("jobs/a", 2);
  other_timeline.timeline = generation(2);
  auto no_parent = checkpoint("jobs/a", 2);
  no_parent.parent.reset();
  auto other_parent = checkpoint("jobs/a", 2);
  other_parent.parent = checkpoint_id(77);
  for (const auto& request :
       {other_uuid, old_generation, newer_generation, other_timeline, no_parent, other_parent})
    EXPECT_REFUSED("stale", store().commit_checkpoint(request));
  auto dataset = store().inspect(ds("jobs/a")).value();
  EXPECT_EQ(dataset.property(property::checkpoint), "@epoch-1");
  EXPECT_EQ(snapshots_of("jobs/a"), (Words{"epoch-1"}));

  auto taken_name = checkpoint("jobs/a", 2);
  taken_name.snapshot = "epoch-1";
  EXPECT_REFUSED("exists", store().commit_checkpoint(taken_name));
  auto no_id = checkpoint("jobs/a", 2);
  no_id.snapshot_properties.erase(property::id);
  EXPECT_REFUSED("invalid", store().commit_checkpoint(no_id));
  EXPECT_REFUSED("not_found", store().commit_checkpoint(checkpoint("jobs/none", 1)));
  EXPECT_EQ(snapshots_of("jobs/a"), (Words{"epoch-1"}));
}

TEST_P(Snapshots, CommitIsStaleAfterTheParentWasDestroyed) {
  make_job("jobs/a");
  ASSERT_OK(store().commit_checkpoint(checkpoint("jobs/a", 1)));
  ASSERT_OK(store().commit_checkpoint(checkpoint("jobs/a", 2)));
  ASSERT_OK(store().destroy_snapshot(snap("jobs/a@epoch-2")));
  EXPECT_REFUSED("stale", store().commit_checkpoint(checkpoint("jobs/a", 3)));
}

TEST_P(Snapshots, ClosingSnapshotsAreNoParents) {
  make_job("jobs/a");
  ASSERT_OK(store().commit_checkpoint(checkpoint("jobs/a", 1)));
  ASSERT_OK(
      store().snapshot(snap("jobs/a@closing"), with_id(50, {{property::closing, "stopped"}})));
  EXPECT_OK(store().commit_checkpoint(checkpoint("jobs/a", 2)));
}

// ---- clone, promote, fork -----------------------------------------------------------------------

TEST_P(Snapshots, CloneBeginsAsTheSnapshot) {
  make_job("jobs/a");
  subject().write(ds("jobs/a"), "w", "1");
  ASSERT_OK(store().snapshot(snap("jobs/a@one"), with_id(1)));
  subject().write(ds("jobs/a"), "w", "2");
  EXPECT_REFUSED("not_found", store().clone(snap("jobs/a@none"), ds("jobs/b"), {}));
  EXPECT_REFUSED("exists", store().clone(snap("jobs/a@one"), ds("jobs/a"), {}));
  ASSERT_OK(store().clone(snap("jobs/a@one"), ds("jobs/b"), {{"own", "yes"}}));
  auto clone = store().inspect(ds("jobs/b")).value();
  EXPECT_EQ(clone.properties, (Properties{{"own", "yes"}}));
  EXPECT_TRUE(clone.snapshots.empty());
  EXPECT_FALSE(clone.readonly);
  EXPECT_EQ(subject().live(ds("jobs/b")), (Files{{"w", "1"}}));
  subject().write(ds("jobs/b"), "w", "3");
  EXPECT_EQ(subject().snapshot(snap("jobs/a@one")), (Files{{"w", "1"}}));
  EXPECT_EQ(subject().live(ds("jobs/a")), (Files{{"w", "2"}}));
  ASSERT_OK(store().snapshot(snap("jobs/b@own"), {}));
  EXPECT_EQ(subject().snapshot(snap("jobs/b@own")), (Files{{"w", "3"}}));
}

TEST_P(Snapshots, PromoteMovesHistoryWithIdsPropertiesAndHolds) {
  make_job("jobs/a");
  for (std::uint8_t n = 1; n <= 3; ++n) {
    subject().write(ds("jobs/a"), "w", std::to_string(n));
    ASSERT_OK(store().commit_checkpoint(checkpoint("jobs/a", n)));
  }
  ASSERT_OK(store().hold(snap("jobs/a@epoch-1"), "keep"));
  auto before = store().inspect(ds("jobs/a"))->snapshots;
  ASSERT_OK(store().clone(snap("jobs/a@epoch-2"), ds("jobs/b"), {}));
  ASSERT_OK(store().promote(ds("jobs/b")));
  ASSERT_OK(store().promote(ds("jobs/b")));
  EXPECT_EQ(snapshots_of("jobs/b"), (Words{"epoch-1", "epoch-2"}));
  EXPECT_EQ(snapshots_of("jobs/a"), (Words{"epoch-3"}));
  auto moved = store().inspect(ds("jobs/b"))->snapshots;
  expect_same(moved.at(0), before.at(0));
  expect_same(moved.at(1), before.at(1));
  EXPECT_REFUSED("busy", store().destroy_snapshot(snap("jobs/b@epoch-1")));
  // The old dataset now comes from the new one.
  EXPECT_REFUSED("busy", store().destroy_snapshot(snap("jobs/b@epoch-2")));
  EXPECT_EQ(subject().snapshot(snap("jobs/b@epoch-2")), (Files{{"w", "2"}}));
  EXPECT_EQ(subject().snapshot(snap("jobs/a@epoch-3")), (Files{{"w", "3"}}));
  EXPECT_EQ(subject().live(ds("jobs/a")), (Files{{"w", "3"}}));
  EXPECT_EQ(subject().live(ds("jobs/b")), (Files{{"w", "2"}}));
  ASSERT_OK(store().destroy(ds("jobs/a")));
  EXPECT_OK(store().destroy_snapshot(snap("jobs/b@epoch-2")));
}

TEST_P(Snapshots, PromoteRefusesTwoSnapshotsOfOneName) {
  make_job("jobs/a");
  ASSERT_OK(store().snapshot(snap("jobs/a@one"), {}));
  ASSERT_OK(store().clone(snap("jobs/a@one"), ds("jobs/b"), {}));
  ASSERT_OK(store().snapshot(snap("jobs/b@one"), {}));
  EXPECT_REFUSED("exists", store().promote(ds("jobs/b")));
  EXPECT_EQ(snapshots_of("jobs/a"), (Words{"one"}));
}

TEST_P(Snapshots, ClonesOfClonesSurvivePromotion) {
  make_job("jobs/a");
  subject().write(ds("jobs/a"), "w", "1");
  ASSERT_OK(store().snapshot(snap("jobs/a@one"), {}));
  ASSERT_OK(store().clone(snap("jobs/a@one"), ds("jobs/b"), {}));
  subject().write(ds("jobs/b"), "w", "2");
  ASSERT_OK(store().snapshot(snap("jobs/b@two"), {}));
  ASSERT_OK(store().clone(snap("jobs/b@two"), ds("jobs/c"), {}));
  ASSERT_OK(store().promote(ds("jobs/c")));
  EXPECT_EQ(snapshots_of("jobs/c"), (Words{"two"}));
  EXPECT_EQ(snapshots_of("jobs/a"), (Words{"one"}));
  ASSERT_OK(store().promote(ds("jobs/c")));  // one level further
  EXPECT_EQ(snapshots_of("jobs/c"), (Words{"one", "two"}));
  EXPECT_EQ(snapshots_of("jobs/a"), Words{});
  EXPECT_EQ(subject().live(ds("jobs/b")), (Files{{"w", "2"}}));
  EXPECT_EQ(subject().live(ds("jobs/c")), (Files{{"w", "2"}}));
}

/// The whole fork of design section 6: what was abandoned is a branch, the current timeline begins
/// at the checkpoint, and a commit for the old timeline is stale.
TEST_P(Snapshots, AForkKeepsTheAbandonedTimelineAsABranch) {
  make_job("jobs/train-001");
  const DatasetName job = ds("jobs/train-001");
  for (std::uint8_t n = 1; n <= 3; ++n) {
    subject().write(job, "w", "epoch " + std::to_string(n));
    ASSERT_OK(store().commit_checkpoint(checkpoint("jobs/train-001", n)));
  }
  subject().write(job, "w", "spoilt");
  auto late = checkpoint("jobs/train-001", 4);

  const DatasetName branch = ds("jobs/" + branch_leaf("train-001", generation(1)));
  Properties own = store().inspect(job)->properties;
  own[property::timeline] = generation(2).str();
  own[property::generation] = generation(2).str();
  own[property::checkpoint] = "@epoch-2";
  ASSERT_OK(store().set_readonly(job, true));
  ASSERT_OK(store().snapshot({job, "closing"}, with_id(50, {{property::closing, "rolled back"}})));
  ASSERT_OK(store().set(job, {{property::intent, "{\"fork\":\"epoch-2\"}"}}));
  ASSERT_OK(
      store().set(job, {{property::uuid, uuid(2).str()}, {property::branch_of, uuid(1).str()}}));
  ASSERT_OK(store().rename(job, branch));
  ASSERT_OK(store().clone({branch, "epoch-2"}, job, own));
  ASSERT_OK(store().promote(job));
  ASSERT_OK(store().set(branch, {{property::intent, std::nullopt}}));
  subject().restart();

  auto current = store().inspect(job).value();
  EXPECT_EQ(current.properties, own);
  EXPECT_EQ(current.uuid, uuid(1));
  EXPECT_FALSE(current.readonly);
  EXPECT_EQ(snapshots_of(job.str()), (Words{"epoch-1", "epoch-2"}));
  EXPECT_EQ(subject().live(job), (Files{{"w", "epoch 2"}}));
  auto kept = store().inspect(branch).value();
  EXPECT_TRUE(kept.readonly);
  EXPECT_EQ(kept.property(property::branch_of), uuid(1).str());
  EXPECT_EQ(snapshots_of(branch.str()), (Words{"epoch-3", "closing"}));
  EXPECT_EQ(subject().live(branch), (Files{{"w", "spoilt"}}));
  EXPECT_EQ(subject().snapshot({branch, "closing"}), (Files{{"w", "spoilt"}}));

  EXPECT_REFUSED("stale", store().commit_checkpoint(late));
  auto next = checkpoint("jobs/train-001", 3);
  next.generation = next.timeline = generation(2);
  next.snapshot_properties[property::id] = checkpoint_id(33).str();
  subject().write(job, "w", "epoch 3 again");
  EXPECT_OK(store().commit_checkpoint(next));
  EXPECT_EQ(subject().snapshot({branch, "epoch-3"}), (Files{{"w", "epoch 3"}}));
}

INSTANTIATE_TEST_SUITE_P(Stores, Snapshots, testing::ValuesIn(all_stores()), store_name);

}  // namespace
}  // namespace zed::contract
