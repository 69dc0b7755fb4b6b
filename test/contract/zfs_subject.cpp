#include "contract/zfs_subject.hpp"

#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>
#include <unistd.h>

#include "contract/dir_subject.hpp"
#include "store/zfs/zfs_store.hpp"

namespace zed::contract {

namespace fs = std::filesystem;

namespace {

fs::path live_path(env::Store& store, const DatasetName& dataset) {
  auto path = store.open_live(dataset);
  EXPECT_TRUE(path) << path.error().describe();
  return path.value_or(fs::path("/nonexistent"));
}

}  // namespace

ZfsSubject::ZfsSubject(std::string root)
    : root_(std::move(root)), commands_(store::zfs::make_system_commands()) {
  by_hand({"zfs", "create", root_});
  restart();
}

std::string ZfsSubject::by_hand(store::zfs::Arguments arguments) {
  auto output = commands_->run(arguments, {});
  EXPECT_TRUE(output && output->ok)
      << arguments.at(1) << ": " << (output ? output->err : output.error().describe());
  return output ? output->out : std::string();
}

void ZfsSubject::restart() {
  store_.reset();
  auto opened = store::open_zfs_store(root_);
  if (!opened) {
    ADD_FAILURE() << opened.error().describe();
    std::abort();
  }
  store_ = std::move(*opened);
}

void ZfsSubject::write(const DatasetName& dataset, const std::string& path,
                       const std::string& bytes) {
  write_below(live_path(*store_, dataset), path, bytes);
}

void ZfsSubject::remove(const DatasetName& dataset, const std::string& path) {
  fs::remove_all(live_path(*store_, dataset) / path);
}

Files ZfsSubject::live(const DatasetName& dataset) {
  return files_below(live_path(*store_, dataset));
}

Files ZfsSubject::snapshot(const SnapshotName& snapshot) {
  auto path = store_->snapshot_path(snapshot);
  EXPECT_TRUE(path) << path.error().describe();
  return path ? files_below(*path) : Files{};
}

void ZfsSubject::lose(const SnapshotName& snapshot) {
  by_hand({"zfs", "destroy", root_ + "/" + snapshot.str()});
}

std::unique_ptr<ZfsSubject> make_zfs() {
  const char* root = std::getenv("ZED_TEST_ZFS_ROOT");
  if (root == nullptr) return nullptr;
  static int number = 0;
  return std::make_unique<ZfsSubject>(std::string(root) + "/contract-" +
                                      std::to_string(::getpid()) + "-" + std::to_string(++number));
}

std::unique_ptr<Subject> make_zfs_subject() {
  return make_zfs();
}

}  // namespace zed::contract
