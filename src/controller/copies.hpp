#pragma once
// Transfers and pruning, as copies of jobs and policies share them. Inside the room only.

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "controller/machine.hpp"
#include "repl/transfers.hpp"

namespace zed::controller {

/// One node sends or receives at most this many streams at once; the others wait their turn.
inline constexpr std::int64_t most_transfers = 4;

/// Orders one transfer, unless it is under way, pauses after a failure, or either end has enough to
/// do. `home` is what the copy's property becomes; empty: the source's.
bool order_transfer(Machine& m, const repl::Transfer& transfer, const JobId& owner,
                    const NodeName& home = {});

/// Orders transfers, those that one stream can serve as a chain. In the order of chain_order().
void order_transfers(Machine& m, std::vector<repl::Transfer> due, const JobId& owner);

/// Where policies bring that copy of a node, and which of them.
std::map<NodeName, std::string> policy_targets(const Machine& m, const NodeName& source,
                                               const Dataset& copy);

/// A transfer failed: its nodes do not follow one another in a chain for a while.
void note_broken_hop(Machine& m, const Ticket& ticket);

/// A new home that does not have yet what its timeline begins with: whoever brings it that has more
/// than the home, rightly, and follows nobody.
bool is_arriving(const DesiredJob& job, const Dataset& home);

/// Snapshots of a copy that no `keep` may end: fork points, a move's closing snapshot, bases of the
/// next increments, what a job is to begin with.
std::set<CheckpointId> pinned_snapshots(const Machine& m, const Dataset& copy);

/// Destroys on `node` what `retention` no longer wants and `may_go` lets go.
void prune(Machine& m, const NodeName& node, const Dataset& copy, const Retention& retention,
           const std::string& why, const JobId& owner,
           const std::function<bool(const Snapshot&)>& may_go);

}  // namespace zed::controller
