// `files` streams between every pair of stores.

#include <algorithm>
#include <cstdlib>

#include "contract/stores.hpp"

namespace zed::contract {
namespace {

struct Pair {
  Factory from;
  Factory to;
  friend std::ostream& operator<<(std::ostream& out, const Pair& p) {
    return out << p.from << "->" << p.to;
  }
};

/// Each store with itself and with its neighbour in both directions: each kind of end meets each
/// other without running all of them.
std::vector<Pair> all_pairs() {
  auto stores = all_stores();
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < stores.size(); ++i) {
    pairs.push_back({stores[i], stores[i]});
    if (i == 0) continue;
    pairs.push_back({stores[i - 1], stores[i]});
    pairs.push_back({stores[i], stores[i - 1]});
  }
  return pairs;
}

std::string pair_name(const testing::TestParamInfo<Pair>& info) {
  return info.param.from.name + "_to_" + info.param.to.name;
}

std::string noise(std::size_t size, std::uint32_t seed) {
  std::string text(size, '\0');
  for (char& c : text) {
    seed = seed * 1664525 + 1013904223;
    c = static_cast<char>(seed >> 24);
  }
  return text;
}

const DatasetName model = DatasetName::parse("models/llama").value();

env::SendRequest sending(std::uint8_t snapshot, std::optional<std::uint8_t> base = {},
                         std::string token = {}) {
  env::SendRequest request;
  request.dataset = model;
  request.snapshot = checkpoint_id(snapshot);
  if (base) request.base = checkpoint_id(*base);
  request.resume_token = std::move(token);
  return request;
}

env::ReceiveRequest receiving(std::uint8_t snapshot, std::optional<std::uint8_t> base = {}) {
  env::ReceiveRequest request;
  request.dataset = model;
  if (base) request.base = checkpoint_id(*base);
  request.snapshot = "v" + std::to_string(snapshot);
  request.snapshot_properties = with_id(snapshot, {{"note", "v" + std::to_string(snapshot)}});
  request.dataset_changes = {{property::uuid, uuid(5).str()}, {property::type, "model"}};
  return request;
}

class Streams : public testing::TestWithParam<Pair> {
protected:
  /// All of them, or in the lab, whose machines are slow, some: every byte of the format is tried
  /// on the stores that are not only there.
  template <class Number> static std::vector<Number> some(std::vector<Number> all) {
    if (std::getenv("ZED_TEST_ZFS_ROOT") == nullptr) return all;
    std::vector<Number> kept;
    for (std::size_t i = 1; i < all.size(); i += 3)
      kept.push_back(all[i]);
    return kept;
  }
  void SetUp() override {
    from_ = GetParam().from.make();
    to_ = GetParam().to.make();
    if (!from_ || !to_) GTEST_SKIP() << "one of the stores is not to be had on this machine";
    ASSERT_OK(from().create(model, {{property::uuid, uuid(5).str()}}));
    from_->write(model, "config.json", "{}");
    from_->write(model, "weights/a.bin", noise(3'000'000, 1));
    from_->write(model, "weights/empty", "");
    take(1);
  }
  void take(std::uint8_t n) {
    ASSERT_OK(from().snapshot({model, "v" + std::to_string(n)}, with_id(n)));
  }
  void change(std::uint8_t n) {
    from_->write(model, "config.json", "{\"epoch\":" + std::to_string(n) + "}");
    from_->write(model, "weights/b.bin", noise(2'500'000, n));
    from_->remove(model, "weights/empty");
    take(n);
  }
  env::Store& from() { return from_->store(); }
  env::Store& to() { return to_->store(); }
  /// What both sides have of snapshot n.
  void expect_equal(std::uint8_t n) {
    SnapshotName name{model, "v" + std::to_string(n)};
    Files there = from_->snapshot(name);
    Files here = to_->snapshot(name);
    EXPECT_EQ(here.size(), there.size());
    EXPECT_TRUE(here == there) << "the contents of " << name.str() << " differ";
  }

  std::unique_ptr<Subject> from_;
  std::unique_ptr<Subject> to_;
};

TEST_P(Streams, AFullStreamMakesAReadonlyReplica) {
  auto moved = move(from(), sending(1), to(), receiving(1));
  ASSERT_OK(moved.snapshot);
  EXPECT_EQ(moved.bytes, moved.total);
  expect_equal(1);
  auto replica = to().inspect(model).value();
  EXPECT_TRUE(replica.readonly);
  EXPECT_FALSE(replica.receiving);
  EXPECT_FALSE(replica.changed);
  EXPECT_EQ(replica.uuid, uuid(5));
  ASSERT_EQ(replica.snapshots.size(), 1U);
  EXPECT_EQ(replica.snapshots[0], *moved.snapshot);
  EXPECT_EQ(replica.snapshots[0].id, checkpoint_id(1));
  EXPECT_EQ(replica.snapshots[0].properties.at("note"), "v1");
  EXPECT_EQ(to_->live(model), from_->live(model));
}

TEST_P(Streams, WhatCannotFitIsRefusedBeforeAnythingIsMade) {
  auto receive = receiving(1);
  receive.expected = Bytes{std::int64_t{1} << 60};
  EXPECT_REFUSED("no_space", to().receive(receive));
  EXPECT_REFUSED("not_found", to().inspect(model));
  receive.expected = Bytes{3'000'000};
  ASSERT_OK(move(from(), sending(1), to(), receive).snapshot);
}

TEST_P(Streams, AnIncrementMovesOnlyWhatChanged) {
  ASSERT_OK(move(from(), sending(1), to(), receiving(1)).snapshot);
  change(2);
  auto moved = move(from(), sending(2, 1), to(), receiving(2, 1));
  ASSERT_OK(moved.snapshot);
  EXPECT_LT(moved.bytes, 2'510'000U);
  expect_equal(2);
  expect_equal(1);
  // A file that only moved does not travel again.
  auto b = noise(2'500'000, 2);
  from_->remove(model, "weights/b.bin");
  from_->write(model, "other/name.bin", b);
  take(3);
  auto renamed = move(from(), sending(3, 2), to(), receiving(3, 2));
  ASSERT_OK(renamed.snapshot);
  EXPECT_LT(renamed.bytes, 1'000U);
  expect_equal(3);
  EXPECT_EQ(to_->live(model), from_->live(model));
}

TEST_P(Streams, ACutStreamGoesOnWhereItWas) {
  for (std::uint64_t cut :
       some<std::uint64_t>({0, 50, 119, 120, 1'000, 1'500'000, 2'000'000, 2'999'999})) {
    (void)to().abort_receive(model);
    auto first = move(from(), sending(1), to(), receiving(1), cut);
    EXPECT_REFUSED("cancelled", first.snapshot);
    auto partial = to().inspect(model).value();
    EXPECT_TRUE(partial.receiving);
    EXPECT_TRUE(partial.snapshots.empty());
    to_->restart();
    auto token = to().resume_token(model, checkpoint_id(1)).value();
    EXPECT_EQ(token.empty(), cut < 200) << cut;
  }
  auto token = to().resume_token(model, checkpoint_id(1)).value();
  auto rest = move(from(), sending(1, {}, token), to(), receiving(1));
  ASSERT_OK(rest.snapshot);
  EXPECT_LT(rest.bytes, 1'100'000U);  // of three frames of at most 1 MiB, two had arrived
  EXPECT_GT(rest.resumed, 2'000'000U);
  expect_equal(1);
  EXPECT_EQ(to().resume_token(model, checkpoint_id(1)).value(), "");
}

TEST_P(Streams, AnotherReplicaGoesOnWithTheStream) {
  ASSERT_OK(move(from(), sending(1), to(), receiving(1)).snapshot);
  change(2);
  ASSERT_OK(move(from(), sending(2, 1), to(), receiving(2, 1)).snapshot);
  auto third = GetParam().from.make();
  env::Store& target = third->store();
  // First from one store, then from the other, which made its snapshots itself.
  EXPECT_REFUSED("cancelled", move(from(), sending(1), target, receiving(1), 1'500'000).snapshot);
  auto token = target.resume_token(model, checkpoint_id(1)).value();
  ASSERT_NE(token, "");
  auto rest = move(to(), sending(1, {}, token), target, receiving(1));
  ASSERT_OK(rest.snapshot);
  EXPECT_GT(rest.resumed, 1'000'000U);
  EXPECT_REFUSED("cancelled",
                 move(to(), sending(2, 1), target, receiving(2, 1), 1'500'000).snapshot);
  token = target.resume_token(model, checkpoint_id(2)).value();
  ASSERT_NE(token, "");
  ASSERT_OK(move(from(), sending(2, 1, token), target, receiving(2, 1)).snapshot);
  EXPECT_TRUE(third->snapshot({model, "v2"}) == from_->snapshot({model, "v2"}));
}

TEST_P(Streams, AReceiverAcceptsOnlyItsBase) {
  EXPECT_REFUSED("not_found", move(from(), sending(1), to(), receiving(1, 9)).snapshot);
  ASSERT_OK(move(from(), sending(1), to(), receiving(1)).snapshot);
  change(2);
  change(3);
  EXPECT_REFUSED("stale", move(from(), sending(3, 2), to(), receiving(3, 2)).snapshot);
  EXPECT_REFUSED("stale", move(from(), sending(3), to(), receiving(3)).snapshot);
  // The request says one base, the stream another.
  EXPECT_REFUSED("stale", move(from(), sending(3, 2), to(), receiving(3, 1)).snapshot);
  EXPECT_OK(to().abort_receive(model));
  EXPECT_REFUSED("not_found", move(from(), sending(9), to(), receiving(9)).snapshot);
  EXPECT_REFUSED("not_found", move(from(), sending(2, 9), to(), receiving(2, 1)).snapshot);
  EXPECT_REFUSED("invalid", move(from(), sending(1, 2), to(), receiving(2, 1)).snapshot);
  EXPECT_EQ(to().inspect(model)->snapshots.size(), 1U);
}

TEST_P(Streams, AChangedReplicaRefusesTheNextIncrement) {
  ASSERT_OK(move(from(), sending(1), to(), receiving(1)).snapshot);
  change(2);
  ASSERT_OK(to().set_readonly(model, false));
  to_->write(model, "config.json", "by hand");
  EXPECT_REFUSED("stale", move(from(), sending(2, 1), to(), receiving(2, 1)).snapshot);
  ASSERT_OK(to().revert_live(model));
  ASSERT_OK(move(from(), sending(2, 1), to(), receiving(2, 1)).snapshot);
  EXPECT_TRUE(to().inspect(model)->readonly);
  expect_equal(2);
}

TEST_P(Streams, OneWriterATime) {
  auto first = to().receive(receiving(1));
  ASSERT_OK(first);
  EXPECT_REFUSED("busy", to().receive(receiving(1)));
  EXPECT_REFUSED("busy", to().abort_receive(model));
  EXPECT_REFUSED("busy", to().rename(model, ds("models/other")));
  EXPECT_REFUSED("busy", to().destroy(model));
  EXPECT_REFUSED("busy", to().snapshot({model, "x"}, {}));
  first->reset();
  // Interrupted, it still stands in the way of what would pull the dataset from under it.
  EXPECT_REFUSED("busy", to().destroy(model));
  EXPECT_REFUSED("busy", to().rename(model, ds("models/other")));
  EXPECT_OK(to().abort_receive(model));
  EXPECT_REFUSED("not_found", to().inspect(model));
  EXPECT_OK(to().abort_receive(model));
}

TEST_P(Streams, AbortingLeavesWhatWasThereBefore) {
  ASSERT_OK(move(from(), sending(1), to(), receiving(1)).snapshot);
  change(2);
  EXPECT_REFUSED("cancelled",
                 move(from(), sending(2, 1), to(), receiving(2, 1), 2'000'000).snapshot);
  EXPECT_TRUE(to().inspect(model)->receiving);
  EXPECT_OK(to().abort_receive(model));
  auto replica = to().inspect(model).value();
  EXPECT_FALSE(replica.receiving);
  EXPECT_EQ(replica.snapshots.size(), 1U);
  EXPECT_EQ(to().resume_token(model, checkpoint_id(2)).value(), "");
  ASSERT_OK(move(from(), sending(2, 1), to(), receiving(2, 1)).snapshot);
  expect_equal(2);
}

TEST_P(Streams, ASnapshotBeingSentStays) {
  auto stream = from().send(sending(1));
  ASSERT_OK(stream);
  EXPECT_REFUSED("busy", from().destroy_snapshot({model, "v1"}));
  EXPECT_REFUSED("busy", from().destroy(model));
  EXPECT_REFUSED("busy", from().rename(model, ds("models/other")));
  stream->reset();
  EXPECT_OK(from().destroy_snapshot({model, "v1"}));
}

TEST_P(Streams, DamageIsNoticedAndNothingCounts) {
  auto stream = from().send(sending(1)).value();
  std::vector<std::byte> bytes(static_cast<std::size_t>(stream->total().value));
  for (std::size_t got = 0; got < bytes.size();)
    got += stream->read(std::span(bytes).subspan(got)).value();
  for (std::size_t at :
       some<std::size_t>({3, 50, 90, 100, bytes.size() / 2, 140, bytes.size() - 3})) {
    auto damaged = bytes;
    damaged[at] ^= std::byte{1};
    auto receiver = to().receive(receiving(1)).value();
    auto written = receiver->write(damaged);
    auto finished = receiver->finish();
    EXPECT_FALSE(written) << "byte " << at;
    EXPECT_FALSE(finished) << "byte " << at;
    receiver.reset();
    EXPECT_TRUE(to().inspect(model)->snapshots.empty());
  }
  auto receiver = to().receive(receiving(1)).value();
  EXPECT_OK(receiver->write(std::span(bytes).first(bytes.size() - 1)));
  EXPECT_REFUSED("corrupt", receiver->finish());
  receiver.reset();
  receiver = to().receive(receiving(1)).value();
  EXPECT_OK(receiver->write(bytes));
  EXPECT_REFUSED("corrupt", receiver->write(std::span(bytes).first(1)));
  receiver.reset();
  ASSERT_OK(move(from(), sending(1), to(), receiving(1)).snapshot);
  expect_equal(1);
}

TEST_P(Streams, ATokenOfOtherContentsIsRefused) {
  EXPECT_REFUSED("cancelled", move(from(), sending(1), to(), receiving(1), 1'500'000).snapshot);
  auto token = to().resume_token(model, checkpoint_id(1)).value();
  change(2);
  EXPECT_REFUSED("stale", from().send(sending(2, {}, token)));
  for (const char* text : {"x", "files-1/", "files-1/0/0/0/0", "1-abc-def"})
    EXPECT_REFUSED("invalid", from().send(sending(1, {}, text)));
  auto inside_a_frame = token;
  inside_a_frame.back() = inside_a_frame.back() == '1' ? '2' : '1';
  EXPECT_REFUSED("invalid", from().send(sending(1, {}, inside_a_frame)));
  auto streams = from().info().streams;
  if (std::find(streams.begin(), streams.end(), StreamKind::zfs) != streams.end()) return;
  auto request = sending(1);
  request.kind = StreamKind::zfs;
  EXPECT_REFUSED("unsupported", from().send(request));
}

INSTANTIATE_TEST_SUITE_P(Pairs, Streams, testing::ValuesIn(all_pairs()), pair_name);

}  // namespace
}  // namespace zed::contract
