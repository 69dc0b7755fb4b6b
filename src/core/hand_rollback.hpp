#pragma once
// `zfs rollback` by a person's hand, as its dataset shows it. Pure. Controller and agent judge by
// the same: the one records a fork, the other starts nothing there before that.

#include "core/dataset.hpp"

namespace zed {

/// Whether a person rolled a job's dataset back: its store saw it happen (`reverted`), or the
/// checkpoint that the dataset says it is at has gone. Not while a fork of ours is under way.
bool was_rolled_back_by_hand(const Dataset& dataset);

}  // namespace zed
