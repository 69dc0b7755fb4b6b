#pragma once
// Where a job goes. Lexicographic, never a sum: the prefer list, then the fallback list, then
// anything that fits; then the fewest bytes to move; then the tightest fit; then the name.

#include <optional>

#include "core/fleet.hpp"
#include "core/placement.hpp"
#include "sched/index.hpp"
#include "sched/request.hpp"

namespace zed::sched {

/// The best node and its GPUs, or why none will do. Deterministic; a preference never blocks.
/// Exhaustive: reads every node of the view.
PlacementResult place(const FleetView& view, const PlaceRequest& request);

/// The same answer from the index, in microseconds; none where place() would give a Rejection
/// (explain() says why).
std::optional<Placement> place(const Index& index, const PlaceRequest& request);

/// The promise that a placement makes, until its attempt is seen.
Reservation reservation_of(const PlaceRequest& request, const Placement& placement);

/// Every node's failed clauses and the node that misses by least. Meaningful if nothing fits.
Rejection explain(const FleetView& view, const PlaceRequest& request);

/// "server: 48 GB per GPU wanted, RTX 3080 with 10 GB there; …": for `why` and exit code 3. Nodes
/// that failed alike are counted together.
std::string show(const Rejection& rejection);

}  // namespace zed::sched
