#pragma once
// What goes to other nodes: which datasets, and what with their snapshots.

#include "core/cluster.hpp"
#include "core/dataset.hpp"

namespace zed {

/// The properties that `snapshot` has on every other node. One that a person took carries no id
/// here: there, it carries the one that its guid gives it, for a files stream has no guid.
Properties travelling_properties(const Snapshot& snapshot);

/// Whether the policy is about the dataset of that name, wherever it is. Of a branch it never is,
/// which its name does not tell.
bool is_about(const ReplicationPolicy& policy, const DatasetName& dataset);

}  // namespace zed
