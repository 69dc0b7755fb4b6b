#include <filesystem>
#include <fstream>
#include <sstream>

#include <stdlib.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "contract/dir_subject.hpp"
#include "store/dir/dir_store.hpp"
#include "store/dir/disk.hpp"

namespace zed::contract {

namespace fs = std::filesystem;

fs::path make_temporary_folder(const fs::path& in) {
  std::string text = (in / "zed-store-XXXXXX").string();
  if (::mkdtemp(text.data()) == nullptr) {
    ADD_FAILURE() << "cannot make a folder in " << in;
    std::abort();
  }
  return text;
}

Files files_below(const fs::path& top) {
  Files files;
  for (const auto& entry : fs::recursive_directory_iterator(top)) {
    if (!entry.is_regular_file() || entry.is_symlink()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    files[entry.path().lexically_relative(top).string()] = text.str();
  }
  return files;
}

void write_below(const fs::path& top, const std::string& path, const std::string& bytes) {
  fs::path file = top / path;
  fs::create_directories(file.parent_path());
  // In place, as a program does that opens its checkpoint r+.
  int flags = fs::exists(file) ? (std::ios::in | std::ios::out | std::ios::binary)
                               : (std::ios::out | std::ios::binary);
  {
    std::fstream out(file, static_cast<std::ios::openmode>(flags));
    out << bytes;
    ASSERT_TRUE(out.flush()) << file;
  }
  fs::resize_file(file, bytes.size());
}

DirSubject::DirSubject(fs::path root) : root_(std::move(root)) {
  store::disk::set_syncing(false);  // nothing here cuts the power
  restart();
}

DirSubject::~DirSubject() {
  store_.reset();
  // Snapshots' folders are readonly, which stops anyone but root.
  for (const auto& entry : fs::recursive_directory_iterator(root_))
    if (entry.is_directory() && !entry.is_symlink())
      fs::permissions(entry.path(), fs::perms::owner_all, fs::perm_options::add);
  fs::remove_all(root_);
}

void DirSubject::restart() {
  store_.reset();
  auto opened = store::open_dir_store(root_, "test");
  if (!opened) {
    ADD_FAILURE() << opened.error().describe();
    std::abort();
  }
  store_ = std::move(*opened);
}

fs::path DirSubject::live_path(const DatasetName& dataset) {
  auto path = store_->open_live(dataset);
  EXPECT_TRUE(path) << path.error().describe();
  return path.value_or(fs::path("/nonexistent"));
}

void DirSubject::write(const DatasetName& dataset, const std::string& path,
                       const std::string& bytes) {
  write_below(live_path(dataset), path, bytes);
}

void DirSubject::remove(const DatasetName& dataset, const std::string& path) {
  fs::remove_all(live_path(dataset) / path);
}

Files DirSubject::live(const DatasetName& dataset) {
  return files_below(live_path(dataset));
}

Files DirSubject::snapshot(const SnapshotName& snapshot) {
  auto path = store_->snapshot_path(snapshot);
  EXPECT_TRUE(path) << path.error().describe();
  return path ? files_below(*path) : Files{};
}

void DirSubject::lose(const SnapshotName& snapshot) {
  auto path = store_->snapshot_path(snapshot);
  ASSERT_TRUE(path) << path.error().describe();
  fs::permissions(*path, fs::perms::owner_all, fs::perm_options::add);
  fs::remove_all(path->parent_path());
}

std::unique_ptr<Subject> make_dir_subject() {
  return std::make_unique<DirSubject>(make_temporary_folder(fs::temp_directory_path()));
}

std::unique_ptr<Subject> make_dir_tmpfs_subject() {
  const char* shared_memory = "/dev/shm";
  if (::access(shared_memory, W_OK) != 0) return nullptr;
  return std::make_unique<DirSubject>(make_temporary_folder(shared_memory));
}

std::unique_ptr<Subject> make_dir_reflink_subject() {
  const char* folder = std::getenv("ZED_TEST_REFLINK_DIR");
  if (folder == nullptr) return nullptr;
  return std::make_unique<DirSubject>(make_temporary_folder(folder));
}

}  // namespace zed::contract
