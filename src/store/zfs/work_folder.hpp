#pragma once
// The store's own dataset, <root>/.zed: no name in core begins with '.', so it is nobody's. Drawn
// once:
//
//   receiving/<guid>/        what an interrupted `files` receive into the dataset of that guid got
//                            (files/receiver.hpp's Staging)
//   indexes/<guid>-<txg>     the list of a snapshot's files with their hashes (dir/index.hpp), so
//   that
//                            each is hashed once
//
// All of it can be made anew; only time is lost with it.

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "store/dir/disk.hpp"
#include "store/dir/index.hpp"
#include "store/files/receiver.hpp"
#include "store/zfs/zfs.hpp"

namespace zed::store::zfs {

/// Thread-safe. Errors: `unsupported` where nothing can be mounted, `io`.
class WorkFolder {
public:
  explicit WorkFolder(const Zfs& zfs) : zfs_(zfs) {}
  static constexpr char name[] = ".zed";

  Result<disk::Fd> staging_folder(std::uint64_t dataset_guid);
  void drop_staging(std::uint64_t dataset_guid);
  /// None if it is not known.
  std::optional<Index> find_index(std::uint64_t guid, std::uint64_t createtxg);
  void keep_index(std::uint64_t guid, std::uint64_t createtxg, const Index& index);
  /// Drops indexes of snapshots that are not among these.
  void keep_only(const std::vector<SnapshotRow>& snapshots);

private:
  /// The open folder; made and mounted at the first call.
  Result<int> open();
  Result<disk::Fd> inside(const char* folder);

  const Zfs& zfs_;
  std::mutex mutex_;
  disk::Fd top_;
};

}  // namespace zed::store::zfs
