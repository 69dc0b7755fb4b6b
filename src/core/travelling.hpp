#pragma once
// What goes with a snapshot to other nodes.

#include "core/dataset.hpp"

namespace zed {

/// The properties that `snapshot` has on every other node. One that a person took carries no id
/// here: there, it carries the one that its guid gives it, for a files stream has no guid.
Properties travelling_properties(const Snapshot& snapshot);

}  // namespace zed
