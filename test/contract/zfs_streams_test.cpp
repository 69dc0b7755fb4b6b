// `zfs` streams between two OpenZFS stores. Skipped where there is no OpenZFS.

#include <fstream>

#include "contract/zfs_fixture.hpp"

namespace zed::contract {
namespace {

class ZfsStreams : public ZfsPair {
protected:
  const DatasetName model = ZfsPair::model();
};

TEST_F(ZfsStreams, BringTheSnapshotWithItsPropertiesAndItsGuid) {
  auto moved = move(from(), sending(1), to(), receiving(1));
  ASSERT_OK(moved.snapshot);
  auto sent = from().inspect(model)->snapshots.at(0);
  auto replica = to().inspect(model).value();
  EXPECT_TRUE(replica.readonly);
  EXPECT_FALSE(replica.receiving);
  EXPECT_FALSE(replica.changed);
  EXPECT_EQ(replica.properties, (Properties{{property::uuid, uuid(5).str()}, {"type", "model"}}));
  ASSERT_EQ(replica.snapshots.size(), 1U);
  EXPECT_EQ(replica.snapshots[0].guid, sent.guid);
  EXPECT_EQ(replica.snapshots[0].created, sent.created);
  EXPECT_EQ(replica.snapshots[0].properties, receiving(1).snapshot_properties);
  expect_equal(1);
  change(2);
  auto second = move(from(), sending(2, 1), to(), receiving(2, 1));
  ASSERT_OK(second.snapshot);
  EXPECT_LT(second.bytes, increment_size + 500'000);
  expect_equal(2);
  EXPECT_TRUE(to().inspect(model)->readonly);
}

TEST_F(ZfsStreams, GoOnWhereTheyWereCut) {
  EXPECT_CUT(move(from(), sending(1), to(), receiving(1), full_cut));
  auto partial = to().inspect(model).value();
  EXPECT_TRUE(partial.receiving);
  EXPECT_TRUE(partial.snapshots.empty());
  to_->restart();
  auto token = to().resume_token(model, checkpoint_id(1)).value();
  ASSERT_NE(token, "");
  EXPECT_EQ(to().resume_token(model, checkpoint_id(2)).value(), "");
  auto rest = move(from(), sending(1, {}, token), to(), receiving(1));
  ASSERT_OK(rest.snapshot);
  EXPECT_LT(rest.bytes, 1'500'000U);
  EXPECT_GT(rest.resumed, 1'200'000U);
  EXPECT_EQ(rest.snapshot->properties, receiving(1).snapshot_properties);
  expect_equal(1);
}

TEST_F(ZfsStreams, AnyReplicaGoesOnAfterTheFirstSenderIsGone) {
  change(2);
  auto other = make_zfs();
  const DatasetName renamed = ds("archive/another-name");
  replicate_to(*other, renamed, 2);
  ASSERT_OK(move(from(), sending(1), to(), receiving(1)).snapshot);
  expect_equal(1);
  Files wanted = from_->snapshot(snap("models/llama@v2"));
  EXPECT_CUT(move(from(), sending(2, 1), to(), receiving(2, 1), increment_cut));
  auto token = to().resume_token(model, checkpoint_id(2)).value();
  ASSERT_NE(token, "");
  ASSERT_OK(from().destroy(model));

  auto rest = move(other->store(), sending(2, 1, token, renamed), to(), receiving(2, 1));
  ASSERT_OK(rest.snapshot);
  EXPECT_GT(rest.resumed, 500'000U);
  EXPECT_LT(rest.bytes, 1'500'000U);
  EXPECT_TRUE(to_->snapshot(snap("models/llama@v2")) == wanted);
}

TEST_F(ZfsStreams, AFullStreamIsContinuedByAnyReplicaToo) {
  auto other = make_zfs();
  const DatasetName renamed = ds("another-name");
  replicate_to(*other, renamed, 1);
  Files wanted = from_->snapshot(snap("models/llama@v1"));
  EXPECT_CUT(move(from(), sending(1), to(), receiving(1), full_cut));
  auto token = to().resume_token(model, checkpoint_id(1)).value();
  ASSERT_OK(from().destroy(model));
  auto rest = move(other->store(), sending(1, {}, token, renamed), to(), receiving(1));
  ASSERT_OK(rest.snapshot);
  EXPECT_GT(rest.resumed, 1'200'000U);
  EXPECT_TRUE(to_->snapshot(snap("models/llama@v1")) == wanted);
}

/// The agent dies between the end of `zfs receive` and the properties: it finishes alone.
TEST_F(ZfsStreams, ACrashBeforeThePropertiesIsRepairedWithoutTheSender) {
  auto sender = from().send(sending(1)).value();
  auto receiver = to().receive(receiving(1)).value();
  std::vector<std::byte> buffer(65'536);
  for (;;) {
    auto n = sender->read(buffer).value();
    if (n == 0) break;
    ASSERT_OK(receiver->write(std::span(buffer).first(n)));
  }
  receiver.reset();
  sender.reset();
  auto before = to().inspect(model).value();
  EXPECT_TRUE(before.snapshots.empty());  // nothing counts yet
  EXPECT_TRUE(before.receiving);
  ASSERT_OK(from().destroy(model));
  to_->restart();
  auto after = to().inspect(model).value();
  EXPECT_FALSE(after.receiving);
  ASSERT_EQ(after.snapshots.size(), 1U);
  EXPECT_EQ(after.snapshots[0].properties, receiving(1).snapshot_properties);
  EXPECT_EQ(after.uuid, uuid(5));
  EXPECT_TRUE(after.readonly);
}

TEST_F(ZfsStreams, AbortingLeavesWhatWasThereBefore) {
  EXPECT_CUT(move(from(), sending(1), to(), receiving(1), full_cut));
  EXPECT_REFUSED("busy", to().destroy(model));
  EXPECT_REFUSED("busy", to().rename(model, ds("models/other")));
  EXPECT_OK(to().abort_receive(model));
  EXPECT_REFUSED("not_found", to().inspect(model));
  ASSERT_OK(move(from(), sending(1), to(), receiving(1)).snapshot);
  change(2);
  EXPECT_CUT(move(from(), sending(2, 1), to(), receiving(2, 1), increment_cut));
  EXPECT_TRUE(to().inspect(model)->receiving);
  EXPECT_OK(to().abort_receive(model));
  EXPECT_OK(to().abort_receive(model));
  auto replica = to().inspect(model).value();
  EXPECT_FALSE(replica.receiving);
  EXPECT_EQ(replica.snapshots.size(), 1U);
  EXPECT_EQ(replica.properties, (Properties{{property::uuid, uuid(5).str()}, {"type", "model"}}));
  ASSERT_OK(move(from(), sending(2, 1), to(), receiving(2, 1)).snapshot);
  expect_equal(2);
}

TEST_F(ZfsStreams, AnotherKindTakesOverWhereAnInterruptedOneWas) {
  EXPECT_CUT(move(from(), sending(1), to(), receiving(1), full_cut));
  auto send = sending(1);
  auto receive = receiving(1);
  send.kind = receive.kind = StreamKind::files;
  EXPECT_CUT(move(from(), send, to(), receive, increment_cut));
  ASSERT_OK(move(from(), sending(1), to(), receiving(1)).snapshot);
  expect_equal(1);
  change(2);
  send.snapshot = checkpoint_id(2);
  send.base = checkpoint_id(1);
  receive = receiving(2, 1);
  receive.kind = StreamKind::files;
  auto moved = move(from(), send, to(), receive);
  ASSERT_OK(moved.snapshot);
  EXPECT_LT(moved.bytes, 2'100'000U);
  expect_equal(2);
  // What did not change is shared with the snapshot before, as after a zfs stream.
  EXPECT_LT(to().inspect(model)->used.value, 6'500'000);
}

TEST_F(ZfsStreams, OneWriterATimeAndDamageCountsForNothing) {
  auto first = to().receive(receiving(1)).value();
  EXPECT_REFUSED("busy", to().receive(receiving(1)));
  EXPECT_REFUSED("busy", to().abort_receive(model));
  std::vector<std::byte> rubbish(300'000, std::byte{7});
  auto written = first->write(rubbish);
  EXPECT_REFUSED("corrupt", first->finish());
  first.reset();
  EXPECT_OK(to().abort_receive(model));
  EXPECT_REFUSED("not_found", to().inspect(model));
}

TEST_F(ZfsStreams, TokensOfOtherStreamsAreRefused) {
  EXPECT_CUT(move(from(), sending(1), to(), receiving(1), full_cut));
  auto token = to().resume_token(model, checkpoint_id(1)).value();
  change(2);
  EXPECT_REFUSED("stale", from().send(sending(2, 1, token)));
  EXPECT_REFUSED("stale", from().send(sending(2, {}, token)));
  for (const char* text : {"files-1/", "1-abc-def", "1-$(reboot)", "-rf"})
    EXPECT_REFUSED("invalid", from().send(sending(1, {}, text)));
}

TEST_F(ZfsStreams, R742_ABookmarkIsABaseAfterItsSnapshotIsGone) {
  const NodeName peer = NodeName::parse("laptop").value();
  ASSERT_OK(move(from(), sending(1), to(), receiving(1)).snapshot);
  ASSERT_OK(from().bookmark(snap("models/llama@v1"), peer));
  EXPECT_OK(from().bookmark(snap("models/llama@v1"), peer));  // twice is once
  change(2);
  ASSERT_OK(from().destroy_snapshot(snap("models/llama@v1")));
  auto pruned = from().inspect(model).value();
  ASSERT_EQ(pruned.bookmarks.size(), 1U);
  EXPECT_EQ(pruned.bookmarks[0].id, checkpoint_id(1));
  EXPECT_EQ(pruned.bookmarks[0].peer, "laptop");
  EXPECT_EQ(pruned.bookmarks[0].guid, to().inspect(model)->snapshots.at(0).guid);
  EXPECT_CUT(move(from(), sending(2, 1), to(), receiving(2, 1), increment_cut));
  auto token = to().resume_token(model, checkpoint_id(2)).value();
  auto rest = move(from(), sending(2, 1, token), to(), receiving(2, 1));
  ASSERT_OK(rest.snapshot);
  EXPECT_GT(rest.resumed, 500'000U) << "a bookmark is good for a resume, too";
  expect_equal(2);
}

TEST_F(ZfsStreams, R953_OneBookmarkAPeerAndNoneNewerThanTheNewestSnapshot) {
  const NodeName laptop = NodeName::parse("laptop").value();
  const NodeName server = NodeName::parse("server").value();
  for (std::uint8_t n = 2; n <= 4; ++n) {
    take(n);
    const SnapshotName name{model, "v" + std::to_string(n)};
    ASSERT_OK(from().bookmark(name, laptop));
    if (n == 3) {
      ASSERT_OK(from().bookmark(name, server));
    }
  }
  auto seen = from().inspect(model).value();
  ASSERT_EQ(seen.bookmarks.size(), 2U);
  EXPECT_EQ(seen.bookmarks[0].peer, "server");
  EXPECT_EQ(seen.bookmarks[1].id, checkpoint_id(4));
  for (const Dataset& listed : from().list().value())
    EXPECT_EQ(listed.bookmarks.size(), listed.name == model ? 2U : 0U) << listed.name.str();
  // A person's own is none of ours.
  from_->by_hand(
      {"zfs", "bookmark", from_->full("models/llama@v2"), from_->full("models/llama#mine")});
  EXPECT_EQ(from().inspect(model)->bookmarks.size(), 2U);
  ASSERT_OK(from().destroy_snapshot(snap("models/llama@v4")));
  EXPECT_EQ(from().inspect(model)->bookmarks.size(), 1U) << "it would stand in a rollback's way";
  from_->by_hand({"zfs", "rollback", from_->full("models/llama@v3")});
  EXPECT_OK(from().forget_bookmark(model, server));
  EXPECT_OK(from().forget_bookmark(model, server));
  EXPECT_TRUE(from().inspect(model)->bookmarks.empty());
  EXPECT_OK(from().destroy(model));  // bookmarks go with their dataset
}

TEST_F(ZfsStreams, WhatIsToLeaveEncryptedDoesSoAndNeverAsFiles) {
  const DatasetName secret = ds("secret");
  std::ofstream("/tmp/contract-key") << "0123456789abcdef0123456789abcdef";
  from_->by_hand({"zfs", "create", "-o", "encryption=on", "-o", "keyformat=raw", "-o",
                  "keylocation=file:///tmp/contract-key", "-o", "com.zed:raw=on", "-o",
                  "com.zed:uuid=" + uuid(6).str(), from_->full("secret")});
  from_->write(secret, "weights", noise(300'000, 6));
  ASSERT_OK(from().snapshot(snap("secret@v1"), with_id(1)));
  auto as_files = sending(1, {}, {}, secret);
  as_files.kind = StreamKind::files;
  EXPECT_REFUSED("refused", from().send(as_files));
  from_->by_hand({"zfs", "unmount", from_->full("secret")});
  from_->by_hand({"zfs", "unload-key", from_->full("secret")});
  ASSERT_OK(move(from(), sending(1, {}, {}, secret), to(), receiving(1, {}, secret)).snapshot);
  EXPECT_EQ(to_->by_hand({"zfs", "get", "-H", "-o", "value", "keystatus", to_->full("secret")}),
            "unavailable\n");
  from_->by_hand({"zfs", "load-key", from_->full("secret")});
  from_->by_hand({"zfs", "mount", from_->full("secret")});
  from_->write(secret, "more", noise(200'000, 7));
  ASSERT_OK(from().snapshot(snap("secret@v2"), with_id(2)));
  ASSERT_OK(move(from(), sending(2, 1, {}, secret), to(), receiving(2, 1, secret)).snapshot);
  EXPECT_EQ(to().inspect(secret)->snapshots.size(), 2U);
}

TEST_F(ZfsStreams, Z17450_AQuotaThatIsTooSmallIsToldBeforeAnythingTravels) {
  ASSERT_OK(to().create(ds("models"), {}));
  to_->by_hand({"zfs", "set", "quota=2M", to_->full("models")});
  auto receive = receiving(1);
  receive.expected = Bytes{4'000'000};
  EXPECT_REFUSED("no_space", to().receive(receive));
  EXPECT_REFUSED("not_found", to().inspect(model)) << "nothing was made";
  to_->by_hand({"zfs", "set", "quota=none", to_->full("models")});
  ASSERT_OK(move(from(), sending(1), to(), receive).snapshot);
}

/// The timelines of a replica that was a home: back where it came from, with the flags that a pair
/// began with (large blocks).
TEST_F(ZfsStreams, Z18101_GoThereAndBackWithLargeBlocks) {
  from_->by_hand({"zfs", "set", "recordsize=1M", from_->full(model.str())});
  change(2);
  ASSERT_OK(move(from(), sending(1), to(), receiving(1)).snapshot);
  ASSERT_OK(move(from(), sending(2, 1), to(), receiving(2, 1)).snapshot);
  ASSERT_OK(to().set_readonly(model, false));
  to_->write(model, "more.bin", noise(increment_size, 99));
  ASSERT_OK(to().snapshot(snap("models/llama@v3"), with_id(3)));
  ASSERT_OK(from().set_readonly(model, true));
  ASSERT_OK(move(to(), sending(3, 2), from(), receiving(3, 2)).snapshot);
  expect_equal(3);
}

}  // namespace
}  // namespace zed::contract
