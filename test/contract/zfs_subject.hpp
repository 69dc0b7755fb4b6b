#pragma once
// The zfs store under contract: each subject is a dataset of its own under $ZED_TEST_ZFS_ROOT (a
// pool, or a dataset in one, that the tests fill). The lab's machines set it, and are
// thrown away with their pools afterwards.

#include <memory>
#include <string>

#include "contract/subject.hpp"
#include "store/zfs/command.hpp"

namespace zed::contract {

class ZfsSubject final : public Subject {
public:
  explicit ZfsSubject(std::string root);
  env::Store& store() override { return *store_; }
  void write(const DatasetName& dataset, const std::string& path,
             const std::string& bytes) override;
  void remove(const DatasetName& dataset, const std::string& path) override;
  Files live(const DatasetName& dataset) override;
  Files snapshot(const SnapshotName& snapshot) override;
  void lose(const SnapshotName& snapshot) override;
  void restart() override;

  /// As a person types it; fails the test if the command does. What it printed.
  std::string by_hand(store::zfs::Arguments arguments);
  const std::string& root() const { return root_; }
  /// "tank/contract-7/jobs/a".
  std::string full(const std::string& name) const { return root_ + "/" + name; }
  /// The agent is gone.
  void close() { store_.reset(); }

private:
  std::string root_;
  std::unique_ptr<store::zfs::Commands> commands_;
  std::unique_ptr<env::Store> store_;
};

/// nullptr where $ZED_TEST_ZFS_ROOT is not set.
std::unique_ptr<ZfsSubject> make_zfs();

}  // namespace zed::contract
