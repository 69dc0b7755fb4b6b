#pragma once
// Bookmarks: what is left of a snapshot that a peer has. Once the snapshot is gone here, an
// increment from it can still be sent to that peer.

#include "core/dataset.hpp"
#include "store/zfs/zfs.hpp"

namespace zed::store::zfs {

/// Makes and drops this store's own bookmarks (bookmark_word()); a person's are left alone. The
/// caller has the dataset's turn (store/transfers.hpp).
class Bookmarks {
public:
  explicit Bookmarks(const Zfs& zfs) : zfs_(zfs) {}

  /// `peer` has this snapshot now: a bookmark of it takes the place of those of older ones. Of one
  /// dataset there are at most 64, for all peers together; the oldest go first.
  Status keep(const DatasetName& dataset, const Snapshot& snapshot, const NodeName& peer) const;
  /// Drops every bookmark that was made for `peer`.
  Status forget(const DatasetName& dataset, const NodeName& peer) const;
  /// Drops those that are newer than the newest snapshot: they would keep a person's plain
  /// `zfs rollback` away.
  Status drop_newer_than_snapshots(const DatasetName& dataset) const;
  /// Of the snapshot with this id. Errors: `not_found`.
  Result<BookmarkRow> find(const DatasetName& dataset, const CheckpointId& id) const;

private:
  Status drop(const std::string& what, const DatasetName& dataset, const BookmarkRow& row) const;

  const Zfs& zfs_;
};

}  // namespace zed::store::zfs
