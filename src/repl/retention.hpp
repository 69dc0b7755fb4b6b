#pragma once
// What `keep` keeps, and what goes.

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/dataset.hpp"
#include "core/requirement.hpp"

namespace zed::repl {

struct Doomed {
  CheckpointId id;
  std::string name;
  Bytes frees;  ///< at least: what only this snapshot holds
  friend bool operator==(const Doomed&, const Doomed&) = default;
};

/// Snapshots to destroy, oldest first. The union of the clauses stays, and always: the newest
/// snapshot and the newest checkpoint, the newest closing snapshot, fork points (the lineage's, and
/// the last of a timeline that another continues), what a person took by hand or pinned, and
/// `protected_ids` (origins of branches, what a model needs, bases of transfers).
std::vector<Doomed> to_destroy(const Dataset& dataset, const Retention& retention,
                               const std::set<CheckpointId>& protected_ids);

/// A checkpoint's metric: its own property, else the one in `metrics`; none if it is no number.
std::optional<double> metric_of(const Snapshot& snapshot, const std::string& metric);

/// The checkpoints that forks began at: the ids in the lineage "<timeline>@<id>,…".
std::set<CheckpointId> fork_points(const Dataset& dataset);

}  // namespace zed::repl
