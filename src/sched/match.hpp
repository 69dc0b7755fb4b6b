#pragma once
// Whether one node can run a job now, and if not, every clause that failed.

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/fleet.hpp"
#include "core/placement.hpp"
#include "sched/request.hpp"

namespace zed::sched {

/// Whether the clauses ask for a GPU at all (any GPU key, or a GPU wish; `gpus: 0` says no).
bool wants_gpu(const Requirement& requirement, const Preference& wishes);
/// Whether the job takes a part of a GPU (`share: true` with a declared vram), not the whole card.
bool is_shared(const Requirement& requirement);

/// The job fits: any `count` of `gpus` would do for the hard clauses.
struct Fit {
  std::int64_t count = 0;
  std::vector<std::string> gpus;  ///< UUIDs of all free ones that qualify, in the node's order
  friend bool operator==(const Fit&, const Fit&) = default;
};
using MatchResult = std::variant<Fit, std::vector<Shortfall>>;

/// Two-sided: the job's clauses against the node, and the node's rules (status, declared roots,
/// permission to run jobs, GPUs held by live attempts) against the job. `attempts` are those on
/// this node. Every failed clause is reported; `for_now` marks those that pass by themselves.
MatchResult match(const PlaceRequest& request, const Node& node,
                  const std::vector<Attempt>& attempts);

/// One line of `zedctl match`.
struct NodeReport {
  NodeName node;
  bool now = false;   ///< would start at once
  bool ever = false;  ///< would do once what is busy, silent or full for the moment is over
  std::vector<std::string> gpus;  ///< UUIDs that qualify now
  std::vector<Shortfall> shortfalls;
  friend bool operator==(const NodeReport&, const NodeReport&) = default;
};
/// Every node, in name order.
std::vector<NodeReport> match_fleet(const FleetView& view, const Requirement& requirement,
                                    const Preference& wishes = {});

}  // namespace zed::sched
