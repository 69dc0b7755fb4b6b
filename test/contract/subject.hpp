#pragma once
// What the contract suite needs of a store besides the Store interface: hands that change files.

#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <string>

#include "env/store.hpp"

namespace zed::contract {

using Files = std::map<std::string, std::string>;  ///< path -> bytes

/// A store on an empty disk of its own.
class Subject {
public:
  virtual ~Subject() = default;
  virtual env::Store& store() = 0;
  /// As a job does: makes missing folders, overwrites in place.
  virtual void write(const DatasetName& dataset, const std::string& path,
                     const std::string& bytes) = 0;
  virtual void remove(const DatasetName& dataset, const std::string& path) = 0;
  virtual Files live(const DatasetName& dataset) = 0;
  virtual Files snapshot(const SnapshotName& snapshot) = 0;
  /// As `rm -rf` of a snapshot's files by a person.
  virtual void lose(const SnapshotName& snapshot) = 0;
  /// The process that uses the store dies and another opens it.
  virtual void restart() = 0;
};

struct Factory {
  std::string name;
  std::function<std::unique_ptr<Subject>()> make;
  friend std::ostream& operator<<(std::ostream& out, const Factory& f) { return out << f.name; }
};

std::unique_ptr<Subject> make_memory_subject();
std::unique_ptr<Subject> make_dir_subject();
/// On a tmpfs (/dev/shm), where files are always copied; nullptr where there is none.
std::unique_ptr<Subject> make_dir_tmpfs_subject();
/// Below $ZED_TEST_REFLINK_DIR, a folder on xfs or btrfs; nullptr where that is not set.
std::unique_ptr<Subject> make_dir_reflink_subject();
/// Below $ZED_TEST_ZFS_ROOT; nullptr where that is not set.
std::unique_ptr<Subject> make_zfs_subject();

}  // namespace zed::contract
