// What other tools' users lost data or nights to, each with the number of its report: Z OpenZFS, S
// sanoid, R zrepl.

#include <fcntl.h>
#include <unistd.h>

#include "contract/zfs_fixture.hpp"
#include "net/fd.hpp"

namespace zed::contract {
namespace {

class ZfsCases : public ZfsPair {
protected:
  const DatasetName model = ZfsPair::model();

  void move_all(std::uint8_t from_n, std::uint8_t to_n) {
    for (std::uint8_t n = from_n; n <= to_n; ++n) {
      auto base = n > 1 ? std::optional<std::uint8_t>(n - 1) : std::nullopt;
      ASSERT_OK(move(from(), sending(n, base), to(), receiving(n, base)).snapshot);
    }
  }
  std::vector<std::string> there() {
    std::vector<std::string> names;
    auto dataset = to().inspect(model);
    EXPECT_OK(dataset);
    if (dataset)
      for (const Snapshot& snapshot : dataset->snapshots)
        names.push_back(snapshot.name);
    return names;
  }
  void write_durably(ZfsSubject& subject, const std::string& path, const std::string& bytes) {
    subject.write(model, path, bytes);
    auto live = subject.store().open_live(model);
    ASSERT_OK(live);
    net::Fd file(::open((*live / path).c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_EQ(::fsync(file.get()), 0);
  }
  std::string value(ZfsSubject& subject, const std::string& property) {
    std::string text = subject.by_hand(
        {"zfs", "get", "-Hp", "-o", "value,source", property, subject.full(model.str())});
    return text.substr(0, text.find('\n'));
  }
};

TEST_F(ZfsCases, Z17240_Z18737_PropertiesOfTheTargetSurvive) {
  change(2);
  change(3);
  move_all(1, 1);
  to_->by_hand({"zfs", "set", "compression=gzip", "org.mine:note=keep", "com.zed:mine=too",
                to_->full(model.str())});
  from_->by_hand(
      {"zfs", "set", "compression=off", "org.mine:note=other", from_->full(model.str())});
  move_all(2, 3);
  EXPECT_EQ(value(*to_, "compression"), "gzip\tlocal");
  EXPECT_EQ(value(*to_, "org.mine:note"), "keep\tlocal");
  EXPECT_EQ(value(*to_, "com.zed:mine"), "too\tlocal");
}

TEST_F(ZfsCases, Z5341_Z1575_Z4591_DeletionsAtTheSourceDoNotTravel) {
  change(2);
  move_all(1, 2);
  ASSERT_OK(from().destroy_snapshot({model, "v1"}));
  change(3);
  move_all(3, 3);
  EXPECT_EQ(there(), (Words{"v1", "v2", "v3"}));
}

TEST_F(ZfsCases, R644_Z7129_ATokenWhoseSnapshotIsGoneIsDroppedAndPlannedAnew) {
  move_all(1, 1);
  change(2);
  EXPECT_CUT(move(from(), sending(2, 1), to(), receiving(2, 1), increment_cut));
  auto token = to().resume_token(model, checkpoint_id(2)).value();
  ASSERT_OK(from().destroy_snapshot({model, "v2"}));
  change(3);
  EXPECT_REFUSED("not_found", from().send(sending(2, 1, token)));
  // The next step is another snapshot: what is left of the old one makes way.
  EXPECT_EQ(to().resume_token(model, checkpoint_id(3)).value(), "");
  ASSERT_OK(move(from(), sending(3, 1), to(), receiving(3, 1)).snapshot);
  EXPECT_EQ(there(), (Words{"v1", "v3"}));
  expect_equal(3);
}

TEST_F(ZfsCases, Z16764_ATokenOfOneInManyCoversThatOne) {
  for (std::uint8_t n = 2; n <= 4; ++n)
    change(n);
  move_all(1, 2);
  EXPECT_CUT(move(from(), sending(3, 2), to(), receiving(3, 2), increment_cut));
  auto token = to().resume_token(model, checkpoint_id(3)).value();
  ASSERT_OK(move(from(), sending(3, 2, token), to(), receiving(3, 2)).snapshot);
  move_all(4, 4);
  EXPECT_EQ(there(), (Words{"v1", "v2", "v3", "v4"}));
  for (std::uint8_t n = 1; n <= 4; ++n)
    expect_equal(n);
}

TEST_F(ZfsCases, S184_TheSameNameIsNotTheSameSnapshot) {
  ASSERT_OK(to().create(model, {{property::uuid, uuid(5).str()}}));
  to_->write(model, "precious", "mine");
  ASSERT_OK(to().snapshot({model, "v1"}, with_id(77)));
  change(2);
  EXPECT_REFUSED("stale", move(from(), sending(1), to(), receiving(1)).snapshot);
  // Even where the ids were made to look the same: OpenZFS compares guids.
  to_->by_hand(
      {"zfs", "set", "com.zed:id=" + checkpoint_id(1).str(), to_->full(model.str()) + "@v1"});
  to_->restart();
  EXPECT_REFUSED("stale", move(from(), sending(2, 1), to(), receiving(2, 1)).snapshot);
  EXPECT_OK(to().abort_receive(model));
  EXPECT_EQ(there(), (Words{"v1"}));
  EXPECT_EQ(to_->live(model), (Files{{"precious", "mine"}}));
}

TEST_F(ZfsCases, S815_S112_AClockSetBackChangesNoOrder) {
  std::string now = from_->by_hand({"date", "+%s"});
  now = now.substr(0, now.find('\n'));
  from_->by_hand({"date", "-s", "@1000000000"});
  change(2);
  from_->by_hand({"date", "-s", "@" + now});
  change(3);
  from_->restart();
  auto snapshots = from().inspect(model)->snapshots;
  ASSERT_EQ(snapshots.size(), 3U);
  EXPECT_EQ(snapshots[1].name, "v2");
  EXPECT_LT(snapshots[1].created, snapshots[0].created);
  move_all(1, 3);
  EXPECT_EQ(there(), (Words{"v1", "v2", "v3"}));
}

TEST_F(ZfsCases, S979_ASnapshotWithoutANameIsNotTheDataset) {
  EXPECT_REFUSED("not_found", from().destroy_snapshot({model, ""}));
  EXPECT_REFUSED("invalid", from().snapshot({model, ""}, {}));
  EXPECT_OK(from().inspect(model));
}

TEST_F(ZfsCases, R825_ANameThatWasReusedIsAnotherDataset) {
  EXPECT_CUT(move(from(), sending(1), to(), receiving(1), full_cut));
  auto token = to().resume_token(model, checkpoint_id(1)).value();
  ASSERT_OK(from().rename(model, ds("models/old")));
  ASSERT_OK(from().create(model, {{property::uuid, uuid(6).str()}}));
  from_->write(model, "other", "other");
  ASSERT_OK(from().snapshot({model, "v1"}, with_id(61)));
  EXPECT_REFUSED("not_found", from().send(sending(1, {}, token)));
  EXPECT_REFUSED("stale", from().send(sending(61, {}, token)));
  // Under its new name it is still the same: the stream goes on.
  ASSERT_OK(move(from(), sending(1, {}, token, ds("models/old")), to(), receiving(1)).snapshot);
  EXPECT_TRUE(to_->snapshot({model, "v1"}) == from_->snapshot({ds("models/old"), "v1"}));
}

TEST_F(ZfsCases, Z13378_AMountPointDoesNotTravel) {
  std::string live = "/tmp/live-" + std::to_string(::getpid());
  from_->by_hand({"zfs", "set", "mountpoint=" + live, from_->full(model.str())});
  change(2);
  move_all(1, 2);
  EXPECT_EQ(value(*to_, "mountpoint").find(live), std::string::npos);
  EXPECT_EQ(value(*to_, "mounted"), "no\t-");
  EXPECT_EQ(value(*to_, "canmount"), "noauto\tlocal");
}

TEST_F(ZfsCases, Z12580_AReplicaThatIsMountedAndReadTakesTheNext) {
  change(2);
  move_all(1, 1);
  EXPECT_EQ(to_->live(model).size(), 2U);
  EXPECT_EQ(to_->snapshot({model, "v1"}).size(), 2U);
  move_all(2, 2);
  expect_equal(2);
  EXPECT_EQ(to_->live(model).size(), 3U);
}

/// What a job wrote with fsync lies in the intent log too, its last snapshot has that log, and each
/// opening of a file system that begins at the snapshot empties it: bytes written, no file changed.
TEST_F(ZfsCases, AHomeThatBecameAReplicaTakesTheNext) {
  change(2);
  move_all(1, 2);
  write_durably(*from_, "more.bin", noise(increment_size, 3));
  take(3);
  move_all(3, 3);
  write_durably(*from_, "more.bin", noise(increment_size, 4));

  ASSERT_OK(to().set_readonly(model, false));
  to_->write(model, "more.bin", noise(increment_size, 99));
  ASSERT_OK(to().snapshot(snap("models/llama@v4"), with_id(4)));

  ASSERT_OK(from().set_readonly(model, true));
  EXPECT_REFUSED("stale", move(to(), sending(4, 3), from(), receiving(4, 3)).snapshot);
  ASSERT_OK(from().revert_live(model));
  EXPECT_FALSE(from().inspect(model)->changed);
  ASSERT_OK(move(to(), sending(4, 3), from(), receiving(4, 3)).snapshot);
  expect_equal(4);
}

/// A person's snapshot on a replica stands in no increment's way as far as OpenZFS is concerned;
/// for us it is part of a history that is not its home's.
TEST_F(ZfsCases, ASnapshotOnAReplicaIsNeverDestroyedToMakeRoom) {
  change(2);
  move_all(1, 1);
  to_->by_hand({"zfs", "snapshot", to_->full(model.str()) + "@mine"});
  EXPECT_REFUSED("stale", move(from(), sending(2, 1), to(), receiving(2, 1)).snapshot);
  EXPECT_EQ(there(), (Words{"v1", "mine"}));
}

}  // namespace
}  // namespace zed::contract
