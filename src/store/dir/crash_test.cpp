// Kill -9, and a full disk, before every single change that an operation makes to the file system:
// afterwards the operation has happened wholly or not at all, nothing is left lying about, and
// doing it again succeeds.

#include <functional>
#include <set>

#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/dir/test_folder.hpp"

namespace zed::store {
namespace {

CheckpointId id(std::uint8_t n) {
  CheckpointId made;
  made.bytes.fill(n);
  return made;
}

/// Everything about a store that must not be half done. A receive that is under way is not yet
/// anything.
std::string show(env::Store& store) {
  std::string text;
  auto datasets = store.list().value();
  for (const Dataset& dataset : datasets) {
    if (dataset.receiving && dataset.snapshots.empty()) continue;
    text += dataset.name.str() + (dataset.readonly ? " readonly" : "");
    for (const auto& [key, value] : dataset.properties)
      text += " " + key + "=" + value;
    for (const Snapshot& snapshot : dataset.snapshots) {
      text += "\n  @" + snapshot.name + " " + snapshot.id.str().substr(0, 4);
      for (const auto& [path, bytes] :
           files_of(store.snapshot_path({dataset.name, snapshot.name}).value()))
        text += " " + path + ":" + bytes;
    }
    text += "\n  live";
    for (const auto& [path, bytes] : files_of(store.open_live(dataset.name).value()))
      text += " " + path + ":" + bytes;
    text += "\n";
  }
  return text;
}

std::size_t names_in(const fs::path& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

/// jobs/a with two checkpoints, a changed live file and a clone; models empty.
void set_up(env::Store& store) {
  ASSERT_TRUE(store.create(ds("jobs/a"), {{"p", "old"}}));
  ASSERT_TRUE(store.create(ds("models"), {}));
  ASSERT_TRUE(store.create(ds("jobs/b"), {{property::generation, Generation{}.str()},
                                          {property::timeline, Timeline{}.str()}}));
  put(store.open_live(ds("jobs/b")).value() / "w", "b");
  auto live = store.open_live(ds("jobs/a")).value();
  put(live / "w", "1");
  put(live / "sub/same", "same");
  ASSERT_TRUE(store.snapshot(snap("jobs/a@one"), with_id(1)));
  put(live / "w", "2");
  ASSERT_TRUE(store.snapshot(snap("jobs/a@two"), with_id(2)));
  put(live / "w", "3");
  ASSERT_TRUE(store.clone(snap("jobs/a@one"), ds("jobs/clone"), {{"c", "1"}}));
}

struct Operation {
  const char* name;
  std::function<Status(env::Store&)> run;
  friend std::ostream& operator<<(std::ostream& out, const Operation& o) { return out << o.name; }
};

template <class T> Status status_of(const Result<T>& result) {
  if (!result) return fail(result.error());
  return {};
}

Status copy_model(env::Store& store) {
  env::SendRequest send;
  send.dataset = ds("jobs/a");
  send.snapshot = id(2);
  env::ReceiveRequest receive;
  receive.dataset = ds("models/m");
  receive.snapshot = "v1";
  receive.snapshot_properties = with_id(2);
  receive.dataset_changes = {{"type", "model"}};
  ZED_TRY(send.resume_token, store.resume_token(receive.dataset, id(2)));
  ZED_TRY(auto from, store.send(send));
  ZED_TRY(auto to, store.receive(receive));
  std::vector<std::byte> buffer(64);
  while (true) {
    ZED_TRY(auto got, from->read(buffer));
    if (got == 0) break;
    ZED_CHECK(to->write(std::span(buffer).first(got)));
  }
  return status_of(to->finish());
}

Status commit(env::Store& store) {
  env::CommitRequest request;
  request.dataset = ds("jobs/b");
  request.snapshot = "epoch-1";
  request.snapshot_properties = with_id(9);
  request.snapshot_properties[property::seq] = "1";
  request.dataset_changes = {{property::checkpoint, "@epoch-1"}};
  auto committed = store.commit_checkpoint(request);
  // Done by the life before: the second time it is stale, which is as good.
  bool is_repeat = !committed && committed.error().code == ErrorCode::stale;
  return is_repeat ? Status() : status_of(committed);
}

const Operation operations[] = {
    {"create",
     [](env::Store& s) {
       return s.create(ds("jobs/new/deep"), {{"x", "1"}});
     }},
    {"set",
     [](env::Store& s) {
       return s.set(ds("jobs/a"), {{"p", "new"}, {"q", "1"}});
     }},
    {"set_readonly", [](env::Store& s) { return s.set_readonly(ds("jobs/a"), true); }},
    {"change",
     [](env::Store& s) {
       return s.change(ds("jobs/a"), {{"p", "new"}}, true);
     }},
    {"seal",
     [](env::Store& s) {
       auto sealed = s.seal(snap("jobs/a@three"), with_id(3), {{"p", "new"}});
       // Done by the life before: it is there, as it must be.
       bool is_repeat = !sealed && sealed.error().code == ErrorCode::exists;
       return is_repeat ? Status() : status_of(sealed);
     }},
    {"snapshot",
     [](env::Store& s) { return status_of(s.snapshot(snap("jobs/a@three"), with_id(3))); }},
    {"commit", commit},
    {"hold", [](env::Store& s) { return s.hold(snap("jobs/a@one"), "tag"); }},
    {"rename", [](env::Store& s) { return s.rename(ds("jobs/a"), ds("old/b")); }},
    {"clone",
     [](env::Store& s) {
       return s.clone(snap("jobs/a@two"), ds("c"), {{"y", "2"}});
     }},
    {"open_live",
     [](env::Store& s) {
       auto cloned = s.clone(snap("jobs/a@two"), ds("c"), {});
       if (!cloned && cloned.error().code != ErrorCode::exists) return cloned;
       return status_of(s.open_live(ds("c")));
     }},
    {"promote", [](env::Store& s) { return s.promote(ds("jobs/clone")); }},
    {"revert_live", [](env::Store& s) { return s.revert_live(ds("jobs/a")); }},
    {"destroy_snapshot", [](env::Store& s) { return s.destroy_snapshot(snap("jobs/a@two")); }},
    {"destroy", [](env::Store& s) { return s.destroy(ds("jobs/clone")); }},
    {"receive", copy_model},
};

/// Memory where there is some, but a disk for what shares files there only.
fs::path place_for(const Operation& operation) {
  const std::string name = operation.name;
  bool needs_disk = name == "snapshot";
  const fs::path memory = "/dev/shm";
  return !needs_disk && ::access(memory.c_str(), W_OK) == 0 ? memory : fs::temp_directory_path();
}

class Crash : public testing::TestWithParam<Operation> {
protected:
  /// What the store is after the operation without any fault.
  static std::string wanted(const Operation& operation, std::string& before) {
    TestFolder folder(place_for(operation));
    auto store = folder.open();
    set_up(*store);
    before = show(*store);
    auto done = operation.run(*store);
    EXPECT_TRUE(done) << done.error().describe();
    return show(*store);
  }

  static void expect_nothing_left_over(const TestFolder& folder, env::Store& store) {
    std::size_t snapshots = 0;
    std::size_t datasets = 0;
    auto listed = store.list().value();
    for (const Dataset& dataset : listed) {
      snapshots += dataset.snapshots.size();
      datasets += dataset.receiving && dataset.snapshots.empty() ? 0 : 1;
    }
    EXPECT_EQ(names_in(folder.path() / "store/snapshots"), snapshots);
    std::set<fs::path> folders;
    std::set<fs::path> indexes;
    for (const auto& entry : fs::directory_iterator(folder.path() / "store/live"))
      (entry.is_directory() ? folders : indexes).insert(entry.path());
    EXPECT_EQ(folders.size(), datasets);
    for (fs::path index : indexes)
      EXPECT_TRUE(folders.contains(index.replace_extension())) << index;
  }
};

TEST_P(Crash, KilledBeforeAnyChangeItHappenedOrDidNot) {
  std::string before;
  const std::string after = wanted(GetParam(), before);
  bool finished = false;
  std::size_t deaths = 0;
  std::set<std::string> seen;
  for (std::uint64_t n = 1; !finished; ++n) {
    ASSERT_LT(n, 500U);
    TestFolder folder(place_for(GetParam()));
    set_up(*folder.open());
    pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto store = folder.open();
      disk::set_fault(disk::Fault::die, n);
      _exit(GetParam().run(*store) ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    ASSERT_TRUE(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 137) << WEXITSTATUS(status);
    finished = WEXITSTATUS(status) == 0;
    deaths += finished ? 0 : 1;
    auto store = folder.open();
    std::string now = show(*store);
    EXPECT_TRUE(now == before || now == after) << "killed before change " << n << ":\n"
                                               << now << "--- before:\n"
                                               << before << "--- after:\n"
                                               << after;
    expect_nothing_left_over(folder, *store);
    if (now == before && now != after) {
      auto again = GetParam().run(*store);
      EXPECT_TRUE(again) << n << ": " << again.error().describe();
      EXPECT_EQ(show(*store), after) << n;
    }
    seen.insert(now);
  }
  EXPECT_GE(deaths, 2U);
  EXPECT_TRUE(seen.contains(after));
}

TEST_P(Crash, OnAFullDiskItFailsAndChangesNothing) {
  std::string before;
  const std::string after = wanted(GetParam(), before);
  bool finished = false;
  for (std::uint64_t n = 1; !finished; ++n) {
    ASSERT_LT(n, 500U);
    TestFolder folder(place_for(GetParam()));
    auto store = folder.open();
    set_up(*store);
    disk::set_fault(disk::Fault::full, n);
    auto done = GetParam().run(*store);
    disk::set_fault(disk::Fault::full, 0);
    finished = done.has_value();
    std::string now = show(*store);
    if (!done) {
      EXPECT_EQ(done.error().code, ErrorCode::no_space) << done.error().describe();
      bool is_two = std::string(GetParam().name) == "open_live";  // a clone before it
      EXPECT_TRUE(now == before || (is_two && now == after)) << "full before change " << n;
      auto again = GetParam().run(*store);
      EXPECT_TRUE(again) << n << ": " << again.error().describe();
    }
    EXPECT_EQ(show(*store), after) << n;
    expect_nothing_left_over(folder, *store);
  }
}

INSTANTIATE_TEST_SUITE_P(Operations, Crash, testing::ValuesIn(operations),
                         [](const auto& each) { return std::string(each.param.name); });

// ---- opening ------------------------------------------------------------------------------------

TEST(Open, OneProcessATime) {
  TestFolder folder;
  auto store = folder.open();
  auto second = open_dir_store(folder.path() / "store", "test");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::busy);
  EXPECT_NE(second.error().message.find("pid " + std::to_string(::getpid())), std::string::npos);
  store.reset();
  EXPECT_TRUE(open_dir_store(folder.path() / "store", "test"));
}

TEST(Open, ADamagedCatalogIsNotTakenForAnEmptyOne) {
  TestFolder folder;
  {
    auto store = folder.open();
    set_up(*store);
  }
  const fs::path catalog = folder.path() / "store/catalog";
  const std::string whole = text_of(catalog);
  const std::size_t half = whole.size() / 2;
  for (const std::string& damaged :
       {std::string(), whole.substr(0, whole.find("{\"end\"")),
        whole.substr(0, half) + '\x7f' + whole.substr(half + 1), "x" + whole, whole + whole}) {
    put(catalog, damaged);
    auto opened = open_dir_store(folder.path() / "store", "test");
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::corrupt) << opened.error().describe();
  }
  fs::remove(catalog);
  EXPECT_EQ(open_dir_store(folder.path() / "store", "test").error().code, ErrorCode::corrupt);
  EXPECT_EQ(names_in(folder.path() / "store/snapshots"), 2U);
  put(catalog, whole + "0000");
  EXPECT_EQ(folder.open()->inspect(ds("jobs/a"))->snapshots.size(), 2U);
}

TEST(Open, WhatAPersonPutThereIsLeftAlone) {
  TestFolder folder;
  folder.open();
  const fs::path store = folder.path() / "store";
  put(store / "live/notes.txt", "mine");
  put(store / "snapshots/99-rubbish/files/file", "left by a crash");
  put(store / "live/passing-98-rubbish/file", "left by a crash");
  folder.open();
  EXPECT_TRUE(fs::exists(store / "live/notes.txt"));
  EXPECT_FALSE(fs::exists(store / "snapshots/99-rubbish"));
  EXPECT_FALSE(fs::exists(store / "live/passing-98-rubbish"));
  EXPECT_FALSE(fs::exists(store / "lost"));
}

TEST(Open, AnEmptyFolderThatALossOfPowerTookBackIsMadeAgain) {
  TestFolder folder;
  fs::path live;
  {
    auto store = folder.open();
    ASSERT_TRUE(store->create(ds("jobs/new"), {}));
    live = store->open_live(ds("jobs/new")).value();
  }
  fs::remove(live);
  auto store = folder.open();
  EXPECT_EQ(store->open_live(ds("jobs/new")).value(), live);
  EXPECT_TRUE(fs::is_directory(live));
  // What had files is never made up.
  put(live / "w", "1");
  ASSERT_TRUE(store->snapshot(snap("jobs/new@one"), with_id(1)));
  store.reset();
  fs::remove_all(live);
  store = folder.open();
  EXPECT_EQ(store->open_live(ds("jobs/new")).error().code, ErrorCode::not_found);
}

// ---- a disk that is really full -----------------------------------------------------------------

/// 0: as it must be. 77: not permitted here.
int fill_a_small_disk(const fs::path& mountpoint) {
  constexpr int skipped = 77;
  int spaces = CLONE_NEWNS | (::geteuid() == 0 ? 0 : CLONE_NEWUSER);
  if (::unshare(spaces) != 0) return skipped;
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return skipped;
  if (::mount("tmpfs", mountpoint.c_str(), "tmpfs", 0, "size=8m") != 0) return skipped;
  auto store = open_dir_store(mountpoint / "store", "small");
  if (!store || !(*store)->create(ds("a"), {})) return 1;
  auto live = (*store)->open_live(ds("a")).value();
  put(live / "w", std::string(3 << 20, 'x'));
  if (!(*store)->snapshot(snap("a@one"), with_id(1))) return 2;
  put(live / "w2", std::string(1 << 20, 'y'));
  auto full = (*store)->snapshot(snap("a@two"), with_id(2));
  if (full || full.error().code != ErrorCode::no_space) return 3;
  if ((*store)->inspect(ds("a"))->snapshots.size() != 1) return 4;
  if (text_of(live / "w2").size() != std::size_t{1} << 20) return 5;
  // The job goes on, and with room again so do checkpoints.
  fs::remove(live / "w2");
  if (!(*store)->set(ds("a"), {{"still", "works"}})) return 6;
  if (!(*store)->destroy_snapshot(snap("a@one"))) return 7;
  return (*store)->snapshot(snap("a@two"), with_id(2)) ? 0 : 8;
}

TEST(FullDisk, ACheckpointThatDoesNotFitFailsAndTheJobGoesOn) {
  TestFolder folder;
  pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(fill_a_small_disk(folder.path()));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "mounting is not permitted here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace zed::store
