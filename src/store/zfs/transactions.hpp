#pragma once
// What happens in one transaction group, or not at all.

#include <cstdint>
#include <string>
#include <vector>

#include "core/dataset.hpp"
#include "store/zfs/zfs.hpp"

namespace zed::store::zfs {

/// What a channel program is to compare and change, in one transaction group.
struct Transaction {
  enum class Snapshots {
    none,
    take,   ///< one, with its properties
    dress,  ///< set the properties of one that is there
  };

  DatasetName dataset;
  Properties expected;  ///< of the dataset, own values
  Snapshots snapshots = Snapshots::none;
  std::string snapshot;  ///< the word
  Properties snapshot_properties;
  std::string parent;  ///< a snapshot's word that must still be there; "" for none
  std::uint64_t parent_guid = 0;
  PropertyChanges changes;
  std::vector<std::string> also_removed;
};

/// Thread-safe. `what` is for the error.
class Transactions {
public:
  /// `privileged`: as root, who alone may run channel programs.
  Transactions(const Zfs& zfs, bool privileged) : zfs_(zfs), privileged_(privileged) {}

  /// Compares and changes. Without root it is not atomic, nor is it allowed to take snapshots or to
  /// compare: what is left half done is repaired at the next start. Errors: `not_found`, `stale`
  /// (what was expected is not so), `unsupported`, `io`.
  Status apply(const std::string& what, const Transaction& transaction) const;
  /// Destroys a dataset with all of its snapshots. Root only. Errors: `not_found`, `busy` (held, in
  /// use, or a clone needs it).
  Status destroy_whole(const std::string& what, const DatasetName& dataset) const;

private:
  Status apply_step_by_step(const Transaction& transaction) const;

  const Zfs& zfs_;
  bool privileged_;
};

}  // namespace zed::store::zfs
