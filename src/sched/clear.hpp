#pragma once
// What it takes that a job which waits gets a place: whose end, and when that is. Backfill keeps
// free what it says (the head of the queue is never delayed), eviction ends what it says.

#include <map>
#include <optional>
#include <vector>

#include "sched/place.hpp"

namespace zed::sched {

/// A job that holds something, and may end.
struct Occupant {
  std::optional<Millis> ends_within;  ///< its time-out comes then at the latest; none: unknown
  Millis cost;                        ///< of making it end now; see eviction_cost
};

/// How a job fits on one node once others have ended.
struct Clearing {
  Placement placement;           ///< there, on GPUs that are free now or become so
  std::vector<JobId> leaving;    ///< in the order in which they go
  std::optional<Millis> within;  ///< all of them have ended by then; none: unknown
  Millis cost;                   ///< of ending them now, summed
};

/// soonest: those whose end is known and near go first, as they will. cheapest: those that lose
/// least.
enum class Leave { soonest, cheapest };

/// The clearing of the node where it is soonest (unknown ends are later than known ones), or costs
/// least; ties by fewer jobs, then by name. Only jobs of `occupants` may leave. None if the job
/// fits on no node even then, or needs no GPU: room on the machine is measured, not held. At most
/// 2,000 nodes are looked at.
std::optional<Clearing> clearing(const FleetView& view,
                                 const std::vector<Reservation>& reservations,
                                 const PlaceRequest& stuck,
                                 const std::map<JobId, Occupant>& occupants, Leave leave);

/// What ending an attempt costs: the work since its last checkpoint, and to save and restore its
/// files, on every GPU that it holds. `gpus` 0 counts as 1; a time before zero counts as zero.
Millis eviction_cost(std::size_t gpus, Millis since_checkpoint, Bytes size);

}  // namespace zed::sched
