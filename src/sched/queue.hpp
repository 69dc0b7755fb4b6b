#pragma once
// The order in which pending jobs are tried, and one pass over them.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sched/place.hpp"

namespace zed::sched {

struct QueuedJob {
  JobId id;
  std::int64_t priority = 0;  ///< higher first
  std::string submitted_by;
  std::uint64_t submitted = 0;  ///< position in the journal: submit order
  std::int64_t weight = 1;      ///< GPUs it will hold; 0 counts as 1
};

/// Higher priority first; within one priority the user who holds least (what runs, plus what was
/// already taken in this order) goes next; within one user by submit order. `held` is the GPUs that
/// each user's live attempts hold. Deterministic and total.
std::vector<JobId> order(std::vector<QueuedJob> pending,
                         const std::map<std::string, std::int64_t>& held);

/// Decides whether a job may start although `blocked`, before it in the order, waits for a place.
/// The default lets every job pass: what fits, starts.
using MayPass = std::function<bool(const PlaceRequest& candidate, const PlaceRequest& blocked)>;

struct Decision {
  JobId job;
  std::optional<Placement> placement;  ///< none: it waits
};

/// Tries the requests in the order given and reserves in `index` what it decides, so that no GPU is
/// given twice. A job that nothing can hold never blocks those behind it.
std::vector<Decision> schedule(Index& index, const std::vector<PlaceRequest>& ordered,
                               const MayPass& may_pass = {});

/// A job to move so that another fits.
struct Move {
  JobId job;
  NodeName from;
  NodeName to;
  friend bool operator==(const Move&, const Move&) = default;
};
/// What to move so that `stuck` fits, fewest moves first; empty if it fits already or no moves
/// help. `running` gives the jobs of live attempts; an attempt whose job is not there stays.
/// (volcano-sh/volcano#3948: fragmentation leaves a 4-GPU job stuck.)
std::vector<Move> propose_moves(const FleetView& view, const PlaceRequest& stuck,
                                const std::map<JobId, Job>& running);

}  // namespace zed::sched
