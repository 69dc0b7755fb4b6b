#pragma once
// A dir store in a folder of its own, for the tests of this folder.

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include <stdlib.h>

#include "store/dir/dir_store.hpp"
#include "store/dir/disk.hpp"

namespace zed::store {

namespace fs = std::filesystem;

inline DatasetName ds(const std::string& text) {
  return DatasetName::parse(text).value();
}
inline SnapshotName snap(const std::string& text) {
  return SnapshotName::parse(text).value();
}
inline Properties with_id(std::uint8_t n) {
  CheckpointId id;
  id.bytes.fill(n);
  return {{property::id, id.str()}};
}

/// Removed at the end.
class TestFolder {
public:
  explicit TestFolder(const fs::path& in = fs::temp_directory_path()) {
    std::string text = (in / "zed-dir-XXXXXX").string();
    if (::mkdtemp(text.data()) == nullptr) std::abort();
    path_ = text;
  }
  ~TestFolder() {
    std::error_code ignored;
    for (const auto& entry : fs::recursive_directory_iterator(path_, ignored))
      if (entry.is_directory() && !entry.is_symlink())
        fs::permissions(entry.path(), fs::perms::owner_all, fs::perm_options::add, ignored);
    fs::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  const fs::path& path() const { return path_; }
  std::unique_ptr<env::Store> open() const {
    disk::set_syncing(false);
    auto store = open_dir_store(path_ / "store", "test");
    if (!store) {
      ADD_FAILURE() << store.error().describe();
      std::abort();
    }
    return std::move(*store);
  }

private:
  fs::path path_;
};

inline std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}
inline void put(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}
inline std::map<std::string, std::string> files_of(const fs::path& top) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(top))
    if (entry.is_regular_file() && !entry.is_symlink())
      files[entry.path().lexically_relative(top).string()] = text_of(entry.path());
  return files;
}

}  // namespace zed::store
