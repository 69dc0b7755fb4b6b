// A damaged catalog takes nothing along, and a damaged snapshot is not counted as a copy.

#include <set>

#include <gtest/gtest.h>

#include "store/dir/test_folder.hpp"

namespace zed::store {
namespace {

class SweepTest : public testing::Test {
protected:
  fs::path root() const { return folder_.path() / "store"; }
  fs::path catalog() const { return root() / "catalog"; }

  /// Two jobs, `n` snapshots each. Gives the file's text after each edit.
  std::vector<std::string> write_history(int n) {
    auto store = folder_.open();
    std::vector<std::string> history{text_of(catalog())};
    for (const std::string job : {"a", "b"}) {
      EXPECT_TRUE(store->create(ds(job), {}));
      history.push_back(text_of(catalog()));
      for (int i = 1; i <= n; ++i) {
        put(store->open_live(ds(job)).value() / "w", job + std::to_string(i));
        EXPECT_TRUE(store->snapshot(snap(job + "@s" + std::to_string(i)), {}));
        history.push_back(text_of(catalog()));
      }
    }
    return history;
  }

  /// What any file of the store holds, wherever it lies.
  std::multiset<std::string> contents() const {
    std::multiset<std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(root()))
      if (entry.is_regular_file() && entry.path().filename() == "w")
        all.insert(text_of(entry.path()));
    return all;
  }
  std::size_t lost() const {
    if (!fs::exists(root() / "lost")) return 0;
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(root() / "lost"), fs::directory_iterator()));
  }
  Result<std::unique_ptr<env::Store>> try_open() const { return open_dir_store(root(), "test"); }

  TestFolder folder_;
};

TEST_F(SweepTest, ACatalogCutAnywhereTakesNoContentAlong) {
  const auto history = write_history(4);
  const std::string whole = history.back();
  const auto before = contents();
  // Each cut on a copy, since what is kept moves.
  for (const auto& entry : fs::recursive_directory_iterator(root()))
    if (entry.is_directory())
      fs::permissions(entry.path(), fs::perms::owner_all, fs::perm_options::add);
  const fs::path good = folder_.path() / "good";
  fs::copy(root(), good, fs::copy_options::recursive);
  std::size_t refused = 0;
  for (std::size_t size = history.front().size(); size < whole.size(); size += 97) {
    TestFolder other;
    fs::copy(good, other.path() / "store", fs::copy_options::recursive);
    put(other.path() / "store/catalog", whole.substr(0, size));
    auto opened = open_dir_store(other.path() / "store", "test");
    if (!opened) {
      ++refused;
      ASSERT_EQ(opened.error().code, ErrorCode::corrupt);
      EXPECT_EQ(text_of(other.path() / "store/catalog").size(), size) << "left as it was";
    }
    std::multiset<std::string> now;
    for (const auto& entry : fs::recursive_directory_iterator(other.path() / "store"))
      if (entry.is_regular_file() && entry.path().filename() == "w")
        now.insert(text_of(entry.path()));
    EXPECT_EQ(now, before) << size;
  }
  EXPECT_GT(refused, 10U);
}

TEST_F(SweepTest, MoreThanOneCommitMissingIsRefusedWithTheWayOut) {
  const auto history = write_history(4);
  const auto before = contents();
  const std::size_t kept = history[6].size();
  put(catalog(), history.back().substr(0, kept + 50));
  auto refused = try_open();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::corrupt);
  const std::string way = "truncate -s " + std::to_string(kept) + " catalog";
  EXPECT_NE(refused.error().describe().find(way), std::string::npos) << refused.error().describe();
  EXPECT_EQ(lost(), 0U);
  // The way out: nothing is removed then either.
  fs::resize_file(catalog(), kept);
  auto store = folder_.open();
  EXPECT_EQ(store->inspect(ds("a"))->snapshots.size(), 4U);
  EXPECT_EQ(store->inspect(ds("b"))->snapshots.size(), 0U);
  EXPECT_EQ(contents(), before);
  EXPECT_EQ(lost(), 4U);
  // And numbers of what is lost are not used again.
  put(store->open_live(ds("b")).value() / "w", "new");
  ASSERT_TRUE(store->snapshot(snap("b@s1"), {}));
  store.reset();
  store = folder_.open();
  EXPECT_EQ(lost(), 4U);
  EXPECT_EQ(store->inspect(ds("b"))->snapshots.size(), 1U);
}

TEST_F(SweepTest, ATornCommitIsGoneOnFromAndItsSnapshotKept) {
  const auto history = write_history(2);
  const auto before = contents();
  put(catalog(), history.back().substr(0, history.back().size() - 5));
  auto store = folder_.open();
  EXPECT_EQ(store->inspect(ds("b"))->snapshots.size(), 1U);
  EXPECT_EQ(contents(), before);
  EXPECT_EQ(lost(), 1U);
  ASSERT_TRUE(store->snapshot(snap("b@s2"), {}));
}

TEST_F(SweepTest, LiveFilesThatTheCatalogLostAreKeptEvenReadonlyOnes) {
  const auto history = write_history(1);
  {
    auto store = folder_.open();
    ASSERT_TRUE(store->set_readonly(ds("b"), true));
  }
  const auto before = contents();
  put(catalog(), history[2]);
  folder_.open();
  EXPECT_EQ(contents(), before);
  EXPECT_EQ(lost(), 2U) << "live files and a snapshot";
}

TEST_F(SweepTest, WhatWasDestroyedLeavesNothing) {
  write_history(2);
  auto store = folder_.open();
  ASSERT_TRUE(store->destroy_snapshot(snap("a@s1")));
  ASSERT_TRUE(store->revert_live(ds("a")));
  store.reset();
  store = folder_.open();
  EXPECT_EQ(lost(), 0U);
  EXPECT_EQ(contents(), (std::multiset<std::string>{"a2", "b1", "b2", "b2"}));
}

TEST_F(SweepTest, ASnapshotThatAJobReadsStaysWhateverItsIndex) {
  write_history(2);
  {
    auto store = folder_.open();
    ASSERT_TRUE(store->hold(*SnapshotName::of(ds("a"), "s1"), "job"));
  }
  for (const auto& entry : fs::directory_iterator(root() / "snapshots"))
    if (entry.path().filename().string().ends_with("-s1")) fs::remove(entry.path() / "index");
  auto store = folder_.open();
  ASSERT_TRUE(store->changes_since(""));
  EXPECT_EQ(store->inspect(ds("a"))->snapshots.size(), 2U);
  EXPECT_EQ(store->inspect(ds("b"))->snapshots.size(), 1U) << "nobody reads that one";
  EXPECT_EQ(lost(), 1U);
}

TEST_F(SweepTest, ASnapshotWithoutAnIndexIsNoCopyButItsFilesAreKept) {
  write_history(3);
  const auto before = contents();
  std::size_t damaged = 0;
  for (const auto& entry : fs::directory_iterator(root() / "snapshots")) {
    const std::string name = entry.path().filename();
    if (name.ends_with("-s1")) fs::resize_file(entry.path() / "index", 0);
    if (name.ends_with("-s2")) fs::remove(entry.path() / "index");
    damaged += name.ends_with("-s3") ? 0 : 1;
  }
  ASSERT_EQ(damaged, 4U);
  auto store = folder_.open();
  for (const char* job : {"a", "b"}) {
    auto shown = store->inspect(ds(job))->snapshots;
    auto changes = store->changes_since("");
    ASSERT_TRUE(changes);
    shown = store->inspect(ds(job))->snapshots;
    ASSERT_EQ(shown.size(), 1U);
    EXPECT_EQ(shown[0].name, "s3");
  }
  EXPECT_EQ(lost(), damaged);
  EXPECT_EQ(contents(), before);
  store.reset();
  folder_.open();
  EXPECT_EQ(contents(), before);
}

}  // namespace
}  // namespace zed::store
