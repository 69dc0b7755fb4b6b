#pragma once
// Where the files of datasets and snapshots appear on this machine, and how they go away again.

#include <filesystem>
#include <string>

#include "store/zfs/inventory.hpp"
#include "store/zfs/zfs.hpp"

namespace zed::store::zfs {

/// The caller has the dataset's turn (store/transfers.hpp) where it changes what is mounted.
class Mounting {
public:
  /// `privileged`: as root, who alone may mount.
  Mounting(const Zfs& zfs, bool privileged) : zfs_(zfs), privileged_(privileged) {}

  /// Mounts the dataset unless it is; where. Errors: `unsupported` (not root, or it has no mount
  /// point), `io`.
  Result<std::string> mount(const Record& record) const;
  /// Unmounts the dataset and its snapshots. Errors: `busy`, naming who uses its files.
  Status unmount(const Record& record) const;
  /// Snapshots that somebody looked into are mounted by the kernel, and stand in the way.
  Status unmount_snapshots(const DatasetName& dataset) const;
  /// Where the files of a snapshot are; the dataset is mounted for it. Errors: those of mount(),
  /// `not_found`.
  Result<std::filesystem::path> snapshot_files(const Record& record, const std::string& word) const;
  /// Adds to a `busy` who uses the files of the dataset, or of one below it.
  Status naming_users(Status status, const DatasetName& dataset) const;

private:
  const Zfs& zfs_;
  bool privileged_;
};

}  // namespace zed::store::zfs
