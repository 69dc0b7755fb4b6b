// What a person does with plain `zfs` beside us, on OpenZFS itself. Skipped where there is none.

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "contract/zfs_fixture.hpp"
#include "store/zfs/zfs_store.hpp"

namespace zed::contract {
namespace {

class ByHand : public testing::Test {
protected:
  void SetUp() override {
    zfs_ = make_zfs();
    if (!zfs_) GTEST_SKIP() << "ZED_TEST_ZFS_ROOT names no pool";
    ASSERT_OK(store().create(job, {{property::uuid, uuid(1).str()},
                                   {property::generation, generation(1).str()},
                                   {property::timeline, generation(1).str()}}));
    zfs_->write(job, "w", "1");
    cursor_ = store().changes_since("")->cursor;
  }
  env::Store& store() { return zfs_->store(); }
  void hand(store::zfs::Arguments arguments) {
    arguments.insert(arguments.begin(), "zfs");
    zfs_->by_hand(std::move(arguments));
  }
  std::string full() const { return zfs_->full(job.str()); }
  /// What has changed since the last question. The news of it may take a moment.
  std::vector<DatasetName> changed() {
    for (int i = 0; i < 1000; ++i) {
      auto changes = store().changes_since(cursor_);
      EXPECT_OK(changes);
      if (!changes) return {};
      cursor_ = changes->cursor;
      if (!changes->datasets.empty()) return changes->datasets;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return {};
  }
  void expect_quiet() {
    auto changes = store().changes_since(cursor_);
    EXPECT_OK(changes);
    EXPECT_TRUE(changes->datasets.empty());
  }
  Dataset now() { return store().inspect(job).value(); }

  const DatasetName job = ds("jobs/train-001");
  std::unique_ptr<ZfsSubject> zfs_;
  std::string cursor_;
};

TEST_F(ByHand, AModelHasLargeRecords) {
  const DatasetName model = ds("models/llama");
  ASSERT_OK(store().create(model, {{property::uuid, uuid(2).str()}, {property::type, "model"}}));
  const auto record_size = [this](const DatasetName& name) {
    return zfs_->by_hand(
        {"zfs", "get", "-Hp", "-o", "value", "recordsize", zfs_->full(name.str())});
  };
  EXPECT_EQ(record_size(model), "1048576\n");
  EXPECT_EQ(record_size(job), "131072\n");
}

TEST_F(ByHand, ASnapshotIsAdopted) {
  hand({"snapshot", full() + "@by-hand"});
  EXPECT_EQ(changed(), (std::vector{job}));
  auto snapshot = now().snapshots.at(0);
  EXPECT_EQ(snapshot.name, "by-hand");
  EXPECT_EQ(snapshot.id, id_from_guid(snapshot.guid));
  expect_quiet();
}

TEST_F(ByHand, ARollbackIsNoticed) {
  ASSERT_OK(store().snapshot({job, "one"}, with_id(1)));
  ASSERT_OK(store().snapshot({job, "two"}, with_id(2)));
  (void)changed();
  hand({"rollback", "-r", full() + "@one"});
  EXPECT_EQ(changed(), (std::vector{job}));
  EXPECT_EQ(now().snapshots.size(), 1U);
}

TEST_F(ByHand, ADestructionARenameAndAPropertyAreNoticed) {
  hand({"set", "com.zed:note=by hand", full()});
  EXPECT_EQ(changed(), (std::vector{job}));
  EXPECT_EQ(now().property("note"), "by hand");
  hand({"rename", full(), zfs_->full("jobs/other")});
  EXPECT_EQ(changed(), (std::vector{ds("jobs/other"), job}));
  EXPECT_EQ(store().inspect(ds("jobs/other"))->uuid, uuid(1));
  hand({"destroy", zfs_->full("jobs/other")});
  EXPECT_EQ(changed(), (std::vector{ds("jobs/other")}));
  EXPECT_REFUSED("not_found", store().inspect(ds("jobs/other")));
}

TEST_F(ByHand, S40_S1064_OddValuesAndNamesHideNothing) {
  hand({"set", "com.zed:note=tab\there\nand a line", full()});
  hand({"create", zfs_->full("jobs/with space")});
  hand({"snapshot", full() + "@with space"});
  hand({"snapshot", zfs_->full("jobs/with space") + "@one"});
  auto listed = store().list().value();
  ASSERT_EQ(listed.size(), 2U);
  EXPECT_EQ(listed[1].uuid, uuid(1));
  EXPECT_EQ(listed[1].snapshots.size(), 0U);
  EXPECT_OK(store().snapshot({job, "ours"}, {}));
  EXPECT_EQ(now().snapshots.size(), 1U);
}

TEST_F(ByHand, ParentsDoNotSpeakForTheirChildren) {
  hand({"set", "com.zed:status=running", zfs_->full("jobs")});
  EXPECT_EQ(now().property(property::status), "");
  hand({"inherit", "com.zed:uuid", full()});
  EXPECT_TRUE(now().uuid.is_nil());
}

TEST_F(ByHand, ACommitDoesNotPassADestroyedParent) {
  env::CommitRequest commit;
  commit.dataset = job;
  commit.uuid = uuid(1);
  commit.generation = commit.timeline = generation(1);
  commit.snapshot = "epoch-1";
  commit.snapshot_properties = with_id(1, {{property::seq, "1"}});
  ASSERT_OK(store().commit_checkpoint(commit));
  hand({"destroy", full() + "@epoch-1"});
  commit.parent = checkpoint_id(1);
  commit.snapshot = "epoch-2";
  commit.snapshot_properties = with_id(2, {{property::seq, "2"}});
  EXPECT_REFUSED("stale", store().commit_checkpoint(commit));
  EXPECT_TRUE(now().snapshots.empty());
}

TEST_F(ByHand, AnUnmountedDatasetIsMountedWhenItIsNeeded) {
  hand({"unmount", full()});
  EXPECT_EQ(zfs_->live(job), (Files{{"w", "1"}}));
  ASSERT_OK(store().snapshot({job, "one"}, {}));
  hand({"unmount", full()});
  EXPECT_EQ(zfs_->snapshot({job, "one"}), (Files{{"w", "1"}}));
}

TEST_F(ByHand, WhatIsInUseIsNotPulledAway) {
  ASSERT_OK(store().snapshot({job, "one"}, {}));
  auto path = store().open_live(job).value();
  int file = ::open((path / "w").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(file, 0);
  auto renamed = store().rename(job, ds("jobs/elsewhere"));
  EXPECT_REFUSED("busy", renamed);
  EXPECT_NE(renamed.error().hint.find("(pid " + std::to_string(::getpid()) + ")"),
            std::string::npos)
      << renamed.error().hint;
  EXPECT_REFUSED("busy", store().revert_live(job));
  EXPECT_REFUSED("busy", store().destroy(job));
  EXPECT_EQ(now().snapshots.size(), 1U);
  ::close(file);
  EXPECT_OK(store().rename(job, ds("jobs/elsewhere")));
  EXPECT_OK(store().destroy(ds("jobs/elsewhere")));
}

TEST_F(ByHand, Z17450_AQuotaIsNoSpace) {
  ASSERT_OK(store().snapshot({job, "one"}, {}));
  hand({"set", "quota=" + std::to_string(4 << 20), zfs_->full("jobs")});
  auto other = make_zfs();
  ASSERT_OK(other->store().create(ds("m"), {}));
  other->write(ds("m"), "big", noise(std::size_t{16} << 20, 1));
  ASSERT_OK(other->store().snapshot(snap("m@v1"), with_id(9)));
  env::SendRequest send{ds("m"), checkpoint_id(9), {}, StreamKind::zfs, {}};
  env::ReceiveRequest receive{ds("jobs/m"), {}, "v1", with_id(9), {}, StreamKind::zfs};
  EXPECT_REFUSED("no_space", move(other->store(), send, store(), receive).snapshot);
  send.kind = receive.kind = StreamKind::files;
  EXPECT_OK(store().abort_receive(ds("jobs/m")));
  EXPECT_REFUSED("no_space", move(other->store(), send, store(), receive).snapshot);
  EXPECT_OK(store().abort_receive(ds("jobs/m")));
  EXPECT_REFUSED("not_found", store().inspect(ds("jobs/m")));
}

TEST_F(ByHand, AStoreIsOpenOnce) {
  EXPECT_REFUSED("busy", store::open_zfs_store(zfs_->root()));
  EXPECT_REFUSED("not_found", store::open_zfs_store(zfs_->full("nothing/here")));
  EXPECT_REFUSED("invalid", store::open_zfs_store("-rf tank"));
}

}  // namespace
}  // namespace zed::contract
