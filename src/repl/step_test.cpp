#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "repl/step.hpp"
#include "repl/testing.hpp"

namespace zed::repl {
namespace {

using testing::history;
using testing::id;

std::string letter(const CheckpointId& identity) {
  std::string text;
  for (std::uint8_t byte : identity.bytes)
    if (byte != 0) text += static_cast<char>(byte);
  return text;
}

struct Show {
  std::string operator()(const UpToDate&) const { return "up to date"; }
  std::string operator()(const Incremental& s) const {
    return letter(s.base) + " -> " + letter(s.snapshot);
  }
  std::string operator()(const Full& s) const { return "full " + letter(s.snapshot); }
  std::string operator()(const Resume& s) const {
    return "resume " + (s.base ? letter(*s.base) + " -> " : "") + letter(s.snapshot);
  }
  std::string operator()(const Conflict& s) const {
    return "conflict " + std::to_string(s.source.size()) + "/" + std::to_string(s.target.size());
  }
  std::string operator()(const FollowHome& s) const { return "follow " + letter(s.common); }
};
std::string show(const ReplicationStep& step) {
  return std::visit(Show{}, step);
}

struct StepCase {
  const char* source;
  const char* target;  ///< nullptr: none
  const char* step;
  const char* skip = "";
};
const StepCase step_cases[] = {
    {"", nullptr, "up to date"},
    {"", "a", "up to date"},
    {"a", nullptr, "full a"},
    {"a b c", nullptr, "full a"},
    {"a b c", "", "full a"},
    {"a b c", "a", "a -> b"},
    {"a b c", "a b", "b -> c"},
    {"a b c", "a b c", "up to date"},
    // Something in the middle is gone on either side.
    {"a c d", "a b c", "c -> d"},
    {"b c", "a b", "b -> c"},
    {"a b c d", "a c", "c -> d"},
    {"c d", "a b c", "c -> d"},
    // More at the target than at its home.
    {"a b", "a b c", "follow b"},
    {"a b d", "a b c", "follow b"},
    {"a d", "a b c", "follow a"},
    {"a b c", "a b x", "follow b"},
    // Nothing in common.
    {"a b", "x y z", "conflict 2/3"},
    {"b", "a", "conflict 1/1"},
    // Hand and closing snapshots count like any other.
    {"a h x^", "a", "a -> h"},
    {"a h x^", "a h", "h -> x"},
    // A retention skips, never the newest.
    {"a b c d", "a", "a -> d", "b c"},
    {"a b c d", nullptr, "full c", "a b d"},
    {"a b c", nullptr, "full c", "a b c"},
    {"a b c", "a b c", "up to date", "a b c"},
};

std::set<CheckpointId> ids_of(std::string_view text) {
  std::set<CheckpointId> ids;
  for (const Snapshot& snapshot : history(text).snapshots)
    ids.insert(snapshot.id);
  return ids;
}

TEST(ReplicationStep, ABookmarkIsAsGoodAsTheSnapshotThatItRemembers) {
  Dataset source = history("c d");  // a and b were pruned here
  const std::uint64_t guid_of_b = history("b").snapshots[0].guid;
  source.bookmarks = {{"laptop", id("b"), guid_of_b, 0}};
  Dataset target = history("a b");
  EXPECT_EQ(show(replication_step(source, &target)), "b -> c");
  EXPECT_EQ(missing_snapshots(source, &target).size(), 2u);
  EXPECT_EQ(stream_kind(StoreKind::zfs, StoreKind::zfs, source, &target, id("b")), StreamKind::zfs);
  Dataset newer = history("a b c");
  EXPECT_EQ(show(replication_step(source, &newer)), "c -> d") << "a snapshot that is newer counts";
  Dataset beyond = history("a b x");
  EXPECT_EQ(show(replication_step(source, &beyond)), "follow b");
  Dataset other = history("a");
  EXPECT_EQ(show(replication_step(source, &other)), "conflict 2/1");
  Dataset as_files = history("a b!77");  // only a zfs stream can begin at a bookmark
  EXPECT_EQ(show(replication_step(source, &as_files)), "conflict 2/2");
}

TEST(ReplicationStep, Table) {
  for (const StepCase& c : step_cases) {
    Dataset source = history(c.source);
    Dataset target = history(c.target != nullptr ? c.target : "");
    auto step = replication_step(source, c.target != nullptr ? &target : nullptr, ids_of(c.skip));
    EXPECT_EQ(show(step), c.step) << c.source << " to " << (c.target ? c.target : "nothing");
  }
}

TEST(ReplicationStep, AnInterruptedReceiveIsResumed) {
  Dataset source = history("a b c");
  Dataset target = history("a");
  target.receiving = true;
  EXPECT_EQ(show(replication_step(source, &target)), "resume a -> b");
  Dataset partial = history("");
  partial.receiving = true;
  partial.uuid = {};  // a first zfs receive that broke off has no properties yet
  EXPECT_EQ(show(replication_step(source, &partial)), "resume a");
  Dataset ahead = history("a x");
  ahead.receiving = true;
  EXPECT_EQ(show(replication_step(source, &ahead)), "follow a");
}

TEST(ReplicationStep, AnotherDatasetOfThatNameIsAConflictWithEvidence) {
  Dataset source = history("a b");
  Dataset target = history("a");
  target.uuid = testing::uuid(2);
  auto step = std::get<Conflict>(replication_step(source, &target));
  EXPECT_EQ(step.why, "the target is another dataset of that name");
  EXPECT_EQ(step.source[0].substr(0, 3), "a (");
}

// zrepl's lesson: a name says nothing.
TEST(ReplicationStep, NamesAndTimesDecideNothing) {
  Dataset source = history("a b c");
  Dataset target = history("a b");
  target.snapshots[1].name = "renamed-by-hand";
  target.snapshots[1].created = {999999};
  EXPECT_EQ(show(replication_step(source, &target)), "b -> c");
  Dataset impostor = history("a x");
  impostor.snapshots[1].name = "b";
  EXPECT_EQ(show(replication_step(source, &impostor)), "follow a");
}

// Carrying out the steps one by one ends, sends nothing twice, and ends up to date.
RC_GTEST_PROP(ReplicationStep, StepsConverge, ()) {
  auto letters = *rc::gen::unique<std::string>(rc::gen::inRange('a', 'z'));
  std::string text;
  for (char c : letters)
    text += std::string(1, c) + " ";
  Dataset source = history(text);
  auto held = *rc::gen::inRange<std::size_t>(0, source.snapshots.size() + 1);
  Dataset target = history("");
  target.snapshots.assign(source.snapshots.begin(),
                          source.snapshots.begin() + static_cast<std::ptrdiff_t>(held));
  if (held > 0 && *rc::gen::inRange(0, 2) == 0)
    target.snapshots.push_back(testing::snapshot("Z", 99));
  bool exists = held > 0;
  std::set<CheckpointId> skip;
  for (const Snapshot& snapshot : source.snapshots)
    if (*rc::gen::inRange(0, 3) == 0) skip.insert(snapshot.id);
  std::size_t missing = missing_snapshots(source, exists ? &target : nullptr, skip).size();
  std::size_t sent = 0;
  for (std::size_t round = 0;; ++round) {
    RC_ASSERT(round <= source.snapshots.size() + 2);
    auto step = replication_step(source, exists ? &target : nullptr, skip);
    if (std::holds_alternative<UpToDate>(step)) break;
    if (auto* follow = std::get_if<FollowHome>(&step)) {
      while (target.snapshots.back().id != follow->common)
        target.snapshots.pop_back();
      continue;
    }
    CheckpointId next;
    if (auto* full = std::get_if<Full>(&step)) {
      RC_ASSERT(target.snapshots.empty());
      next = full->snapshot;
    } else {
      auto incremental = std::get<Incremental>(step);
      RC_ASSERT(target.snapshots.back().id == incremental.base);
      next = incremental.snapshot;
    }
    RC_ASSERT(target.find(next) == nullptr);
    exists = true;
    ++sent;
    target.snapshots.push_back(*source.find(next));
  }
  RC_ASSERT(sent == missing);
  if (!source.snapshots.empty()) RC_ASSERT(target.newest()->id == source.newest()->id);
}

TEST(StreamKind, NeedsTheSameGuidAtBothEnds) {
  Dataset source = history("a b");
  Dataset target = history("a");
  Dataset copied = history("a!77");  // received as files: the same identity, another guid
  auto base = std::optional(id("a"));
  auto zfs = StoreKind::zfs;
  auto dir = StoreKind::dir;
  EXPECT_EQ(stream_kind(zfs, zfs, source, &target, base), StreamKind::zfs);
  EXPECT_EQ(stream_kind(zfs, zfs, source, &copied, base), StreamKind::files);
  EXPECT_EQ(stream_kind(zfs, dir, source, &target, base), StreamKind::files);
  EXPECT_EQ(stream_kind(dir, zfs, source, &target, base), StreamKind::files);
  EXPECT_EQ(stream_kind(zfs, zfs, source, nullptr, {}), StreamKind::zfs);
  EXPECT_EQ(stream_kind(zfs, zfs, source, &target, {}), StreamKind::files);
  EXPECT_EQ(stream_kind(zfs, zfs, source, nullptr, base), StreamKind::files);
}

}  // namespace
}  // namespace zed::repl
