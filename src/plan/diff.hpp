#pragma once
// How a new cluster file differs from the applied one and from what was detected, in words.

#include <optional>
#include <vector>

#include "core/cluster.hpp"
#include "core/fleet.hpp"
#include "core/plan.hpp"

namespace zed::plan {

/// The lines of `zedctl plan`, nodes first, then models, data, jobs and policies, each by name.
/// `applied` nullptr: nothing was applied before. Removing a declaration never destroys data: the
/// line says what stays. Declared hardware is compared with what was detected, as notes.
std::vector<Change> diff(const Cluster* applied, const Cluster& next, const FleetView& view);

/// diff() with the revision it was made against and the replication steps that follow (from
/// repl/transfers.hpp, already with ids).
Plan make_plan(const Cluster* applied, const Cluster& next, const FleetView& view,
               std::vector<PlanStep> replication);

}  // namespace zed::plan
