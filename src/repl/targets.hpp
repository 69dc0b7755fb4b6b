#pragma once
// Where copies go, and in which order one stream visits several nodes.

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "core/fleet.hpp"
#include "core/placement.hpp"

namespace zed::repl {

struct CopyRequest {
  DatasetName dataset;
  DatasetId uuid;
  NodeName home;
  Bytes size;                  ///< of the home's copy
  std::int64_t copies = 1;     ///< wanted beside the home
  std::set<NodeName> able;     ///< nodes that could run the job, even if busy now
  std::set<NodeName> holders;  ///< targets that are already chosen for another reason (a policy)
};

struct CopyTargets {
  std::vector<NodeName> nodes;   ///< best first, at most `copies`; holders included
  std::vector<Refusal> refused;  ///< why each other node will not do
  std::int64_t missing = 0;      ///< copies for which there is no node: "only copy on X"
};

/// Nodes other than the home that are up, may hold the dataset and have space. A node that already
/// holds a replica stays chosen (also while it is only suspect), then nodes that could run the job,
/// then the most free space, then the name.
CopyTargets choose_copy_targets(const FleetView& view, const CopyRequest& request);

/// The order of a pipelined chain: fastest link first, laptops (not dialable, or labelled "laptop")
/// last, then by name. `rate` is bytes a second where measured; unmeasured counts as slowest.
std::vector<NodeName> chain_order(const FleetView& view, std::vector<NodeName> targets,
                                  const std::map<NodeName, Bytes>& rate);

}  // namespace zed::repl
