#pragma once
// Making a tree entry by entry, for the functions of dir/tree.hpp.

#include <cstdint>
#include <string>

#include "store/dir/disk.hpp"
#include "store/files/manifest.hpp"

namespace zed::store {

/// Keeps the folder of the last entry open. Entries come in ascending order.
class TreeMaker {
public:
  enum class Use { snapshot, live };
  TreeMaker(int top, Use use, const disk::Abilities& abilities)
      : top_(top), use_(use), abilities_(abilities) {}

  Status add_folder(const Entry& entry);
  Status add_symlink(const Entry& entry);
  /// A new file with the content of an open one, by reflink or copy.
  Status add_copy(const Entry& entry, int from);
  Status add_empty(const Entry& entry);
  /// A second name of a file that is never written. `unsupported` where that cannot be.
  Status add_link(const Entry& entry, int from_folder, const std::string& from);
  /// For a file that was changed before add_link() names it: durable when finish() returns.
  Status sync_file(int fd);
  /// Sets folders' modes and makes everything durable.
  Status finish();

private:
  struct Place {
    int folder;
    std::string name;
  };
  Result<Place> place_of(const std::string& path);
  Status dress(int fd, const Entry& entry);

  int top_;
  Use use_;
  disk::Abilities abilities_;
  std::string open_path_;
  disk::Fd open_folder_;
  std::vector<Entry> folders_;
  std::size_t unsynced_ = 0;
};

/// Syncing more than this many files one by one costs more than syncing the file system.
inline constexpr std::size_t sync_each_up_to = 32;

/// What a snapshot's copy has: nobody may write it.
inline mode_t snapshot_mode(std::uint32_t mode) {
  return (mode & 0555) | 0400;
}

}  // namespace zed::store
