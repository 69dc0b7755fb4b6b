#pragma once
// How a new cluster file differs from the applied one and from what was detected, in words.

#include <vector>

#include "core/cluster.hpp"
#include "core/fleet.hpp"
#include "core/plan.hpp"
#include "plan/hardware.hpp"

namespace zed::plan {

/// The lines of `zedctl plan`: the fleet's own, then nodes, models, data, jobs and policies, each
/// by name; one line for each field that differs. `applied` nullptr: nothing was applied before.
/// Removing a declaration never destroys data: the line says what stays. A tighter `keep` does, and
/// is flagged. Notes tell of nodes that are declared and not joined, joined and not declared, of
/// declared hardware that was not detected, and of policies that select nothing that there is or
/// will be.
std::vector<Change> diff(const Cluster* applied, const Cluster& next, const FleetView& view,
                         const SameGpu& same_gpu = {});

/// diff() with the revision it was made against and the replication steps that follow from it
/// (repl/transfers.hpp makes them).
Plan make_plan(const Cluster* applied, const Cluster& next, const FleetView& view,
               std::vector<PlanStep> replication, const SameGpu& same_gpu = {});

}  // namespace zed::plan
