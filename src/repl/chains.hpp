#pragma once
// Chains: one stream that leaves its source once and visits several nodes, each passing it on while
// it receives it.

#include <functional>
#include <vector>

#include "repl/transfers.hpp"

namespace zed::repl {

/// A broken node ends what comes after it, so a chain is not longer; what is left makes another.
inline constexpr std::size_t most_hops = 8;

/// Whether `from` may pass a stream on to `to`: room, and what is known of the link between them.
using MayPass = std::function<bool(const NodeName& from, const NodeName& to)>;

/// Whether one of two nodes can be reached by the other.
bool can_meet(const FleetView& view, const NodeName& from, const NodeName& to);

/// The first of the transfers and those that its stream can serve as well: the same snapshot of the
/// same copy, on the same base and of the same kind, to targets that begin at its start. Each is
/// passed on by the one before it. They are taken out of `due`, whose order is kept (chain_order()
/// before). `due` must not be empty.
std::vector<Transfer> take_chain(const FleetView& view, std::vector<Transfer>& due,
                                 const MayPass& may_pass);

/// The plan steps of each hop, tied to one another. The view must be the one that the transfers
/// were made from.
std::vector<std::vector<PlanStep>> plan_chain(const FleetView& view,
                                              const std::vector<Transfer>& hops,
                                              const ControllerTerm& term, IdSource& ids);

}  // namespace zed::repl
