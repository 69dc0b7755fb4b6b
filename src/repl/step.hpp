#pragma once
// The next thing to do to bring one replica up to its source: a value from two values. Snapshots
// are told apart by identity alone; names are never parsed and no clock is read.

#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "core/cluster.hpp"
#include "core/dataset.hpp"
#include "core/plan.hpp"

namespace zed::repl {

struct UpToDate {
  friend bool operator==(const UpToDate&, const UpToDate&) = default;
};
struct Incremental {
  CheckpointId base;  ///< the newest that both have, and the target's newest
  CheckpointId snapshot;
  friend bool operator==(const Incremental&, const Incremental&) = default;
};
struct Full {
  CheckpointId snapshot;
  friend bool operator==(const Full&, const Full&) = default;
};
/// An interrupted receive waits at the target: go on with it. If what waits is not of `snapshot`,
/// the receiver drops it and begins again.
struct Resume {
  std::optional<CheckpointId> base;
  CheckpointId snapshot;
  friend bool operator==(const Resume&, const Resume&) = default;
};
/// Nothing in common. Both histories, oldest first, are the evidence.
struct Conflict {
  std::vector<std::string> source;  ///< "epoch-1 (3f2a…)"
  std::vector<std::string> target;
  std::string why;
  friend bool operator==(const Conflict&, const Conflict&) = default;
};
/// The target has something beyond the newest common snapshot: it goes to a branch first.
struct FollowHome {
  CheckpointId common;
  friend bool operator==(const FollowHome&, const FollowHome&) = default;
};
using ReplicationStep = std::variant<UpToDate, Incremental, Full, Resume, Conflict, FollowHome>;

/// One step, towards the oldest snapshot that is missing. `target` nullptr: no dataset there.
/// `skip`: snapshots that a policy's retention does not want there; the newest is never skipped.
ReplicationStep replication_step(const Dataset& source, const Dataset* target,
                                 const std::set<CheckpointId>& skip = {});
/// Snapshots still to travel, oldest first: what a status line counts. Empty after a conflict.
std::vector<CheckpointId> missing_snapshots(const Dataset& source, const Dataset* target,
                                            const std::set<CheckpointId>& skip = {});

/// zfs if both stores are, and the receiver is empty or has the base with the same guid; else
/// files. `base` is the newest common snapshot, none for a full stream.
StreamKind stream_kind(StoreKind source_store, StoreKind target_store, const Dataset& source,
                       const Dataset* target, const std::optional<CheckpointId>& base);

}  // namespace zed::repl
