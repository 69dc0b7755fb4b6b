// The catalog as a value: its map, and how changes become durable together.

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "store/commit_queue.hpp"

namespace zed::store {
namespace {

// ---- PersistentMap ------------------------------------------------------------------------------

using Map = PersistentMap<int, int>;

std::map<int, int> content(const Map& map) {
  return {map.begin(), map.end()};
}

RC_GTEST_PROP(PersistentMap, IsAMapWhoseCopiesStay, ()) {
  Map map;
  std::map<int, int> model;
  std::vector<std::pair<Map, std::map<int, int>>> copies;
  const auto steps = *rc::gen::container<std::vector<std::pair<int, bool>>>(
      rc::gen::pair(rc::gen::inRange(0, 60), rc::gen::arbitrary<bool>()));
  int value = 0;
  for (const auto& [key, puts] : steps) {
    copies.emplace_back(map, model);
    if (puts) {
      map.insert_or_assign(key, ++value);
      model[key] = value;
    } else {
      RC_ASSERT(map.erase(key) == (model.erase(key) > 0));
    }
    RC_ASSERT(map.size() == model.size());
    RC_ASSERT(map.contains(key) == model.contains(key));
  }
  RC_ASSERT(content(map) == model);
  for (const auto& [copy, then] : copies)
    RC_ASSERT(content(copy) == then);
}

TEST(PersistentMap, StaysBalanced) {
  Map map;
  constexpr int many = 4096;
  for (int i = 0; i < many; ++i)
    map.insert_or_assign(i, i);
  EXPECT_LE(map.depth(), 17);  // 1.44 log2(4098)
  for (int i = 0; i < many - 16; ++i)
    EXPECT_TRUE(map.erase(i));
  EXPECT_LE(map.depth(), 6);  // 1.44 log2(18)
  EXPECT_EQ(content(map).begin()->first, many - 16);
}

// ---- CommitQueue --------------------------------------------------------------------------------

/// A space that only keeps catalogs: slowly, or not at all.
class KeepingSpace final : public FileSpace {
public:
  Status keep(const CatalogEdit& edit) override {
    std::unique_lock lock(mutex_);
    ++writes_;
    touched_.push_back(edit.touched);
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
    if (fails_) return fail(ErrorCode::no_space, "full");
    return {};
  }
  void shut() {
    std::lock_guard lock(mutex_);
    open_ = false;
  }
  void open(bool fails = false) {
    std::lock_guard lock(mutex_);
    open_ = true;
    fails_ = fails;
    changed_.notify_all();
  }
  void wait_for_writes(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return writes_ >= count; });
  }
  int writes() const { return writes_; }
  std::vector<std::vector<DatasetName>> touched() const { return touched_; }

  env::StoreInfo info() const override { return {}; }
  Result<env::Space> space() override { return none(); }
  std::string new_place(PlaceKind, std::string_view) override { return {}; }
  void drop(const std::string&) override {}
  Status make_live(const std::string&, const std::string&, bool) override { return none(); }
  Result<std::filesystem::path> live_path(const std::string&) override { return none(); }
  Status protect_live(const std::string&, bool) override { return none(); }
  Result<LiveState> look(const std::string&, const std::string&) override { return none(); }
  Result<MadeFiles> take(const SnapshotSource&, const std::string&) override { return none(); }
  Result<std::filesystem::path> snapshot_path(const std::string&) override { return none(); }
  Result<Manifest> manifest(const std::string&) override { return none(); }
  Result<std::unique_ptr<ContentSource>> content(const std::string&) override { return none(); }
  Result<std::unique_ptr<Staging>> staging(const std::string&) override { return none(); }
  Result<MadeFiles> assemble(const Arrival&, const std::string&, const std::string&,
                             const std::string&) override {
    return none();
  }
  std::vector<std::string> missing(const Catalog&) override { return {}; }
  std::uint64_t random() override { return 0; }
  WallTime wall_time() override { return {}; }

private:
  static tl::unexpected<Error> none() {
    return fail(ErrorCode::unsupported, "keeps catalogs only");
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = true;
  bool fails_ = false;
  int writes_ = 0;
  std::vector<std::vector<DatasetName>> touched_;
};

DatasetName ds(const std::string& text) {
  return DatasetName::parse(text).value();
}

class Committing : public testing::Test {
protected:
  /// Makes a dataset in a thread of its own; returns once its change has been entered.
  void make(const std::string& name) {
    const std::size_t before = judged_;
    threads_.emplace_back([this, name] {
      auto made = queue_.commit([&](Catalog& next) {
        ++judged_;
        return next.create(ds(name), {});
      });
      std::lock_guard lock(mutex_);
      results_[name].push_back(made);
    });
    while (judged_ == before)
      std::this_thread::yield();
    (void)queue_.durable();  // its lock is free only after the change was entered
  }
  void join() {
    for (std::thread& thread : threads_)
      thread.join();
    threads_.clear();
  }
  bool is_there(const std::string& name) const {
    return queue_.durable().datasets().contains(ds(name));
  }

  KeepingSpace space_;
  CommitQueue queue_{space_, Catalog()};
  std::atomic<std::size_t> judged_{0};
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::map<std::string, std::vector<Status>> results_;
};

TEST_F(Committing, ChangesThatWaitTogetherShareOneWrite) {
  space_.shut();
  make("a");
  space_.wait_for_writes(1);
  for (const char* name : {"b", "c", "d"})
    make(name);
  EXPECT_FALSE(is_there("a")) << "nobody sees what is not durable";
  space_.open();
  join();
  EXPECT_EQ(space_.writes(), 2);
  EXPECT_EQ(space_.touched().back(), (std::vector{ds("b"), ds("c"), ds("d")}));
  for (const char* name : {"a", "b", "c", "d"}) {
    EXPECT_TRUE(results_[name].front());
    EXPECT_TRUE(is_there(name));
  }
}

TEST_F(Committing, AFailedWriteTakesWhatStandsOnItAlong) {
  space_.shut();
  make("a");
  space_.wait_for_writes(1);
  make("b");
  space_.open(true);
  join();
  for (const char* name : {"a", "b"}) {
    EXPECT_EQ(results_[name].front().error().code, ErrorCode::no_space);
    EXPECT_FALSE(is_there(name));
  }
  space_.open();
  make("a");
  join();
  EXPECT_TRUE(results_["a"].back());
  EXPECT_TRUE(is_there("a"));
  EXPECT_FALSE(is_there("b"));
}

TEST_F(Committing, ARefusalThatAFailedChangeCausedIsJudgedAgain) {
  space_.shut();
  make("a");
  space_.wait_for_writes(1);
  make("a");  // refused: it is there, or will be
  space_.open(true);
  // The second look finds nothing there and writes, which fails too: the disk is full.
  join();
  ASSERT_EQ(results_["a"].size(), 2U);
  EXPECT_EQ(results_["a"][0].error().code, ErrorCode::no_space);
  EXPECT_EQ(results_["a"][1].error().code, ErrorCode::no_space);
}

TEST_F(Committing, WhatIsDoneAlreadyIsTrueOnlyOnceItIsDurable) {
  space_.shut();
  make("a");
  space_.wait_for_writes(1);
  make("a");
  {
    std::lock_guard lock(mutex_);
    EXPECT_TRUE(results_.empty());
  }
  space_.open();
  join();
  EXPECT_EQ(space_.writes(), 1);
  std::set<bool> outcomes{results_["a"][0].has_value(), results_["a"][1].has_value()};
  EXPECT_EQ(outcomes, (std::set<bool>{false, true}));
}

}  // namespace
}  // namespace zed::store
