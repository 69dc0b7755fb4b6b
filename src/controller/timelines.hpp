#pragma once
// Which snapshots are on a job's current timeline, which fork a holder still has to follow, and
// which success counts. Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "controller/desired.hpp"
#include "core/dataset.hpp"

namespace zed::controller {

/// Whether a checkpoint of `timeline` and `seq` is on the current timeline or, up to each fork, on
/// its ancestors.
bool is_on_current_timeline(const DesiredJob& job, const Timeline& timeline, std::uint64_t seq);
bool is_on_current_timeline(const DesiredJob& job, const Snapshot& snapshot);

/// The checkpoint of the highest seq among `copy`'s that are on the current timeline; nullptr if
/// there is none. Never a closing snapshot, nor one of an abandoned timeline.
const Snapshot* newest_current_checkpoint(const DesiredJob& job, const Dataset& copy);

/// The fork that a holder whose dataset is on `held` must follow next; nullptr if it is current, or
/// if nothing is known of that timeline. Holders that missed several forks follow them in order.
const KnownFork* next_fork(const DesiredJob& job, const Timeline& held);

/// Whether a copy has what the current timeline begins with, or has gone on from there.
bool has_beginning(const DesiredJob& job, const Dataset& copy);

/// Whether a durable success of `timeline` ends the job: if it is current, or was left only by
/// takeovers after a loss, and nothing has succeeded before (design: which success counts).
struct SuccessVerdict {
  bool counts = false;
  std::optional<KnownFork> back;  ///< how the others return to that timeline, if it was left
  std::string why_not;
};
SuccessVerdict judge_success(const DesiredJob& job, const Timeline& timeline);

}  // namespace zed::controller
