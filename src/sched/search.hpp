#pragma once
// Inside the room: the best place so far, and what one node or one group of equal nodes offers.

#include "core/placement.hpp"
#include "sched/choose.hpp"

namespace zed::sched {

/// The best candidate of one tier. Order: bytes to move, then the score, then the name.
struct Best {
  const NodeState* node = nullptr;
  Bytes cost;
  Choice choice;

  bool is_beaten_by(Bytes cost_of, const Score& score, const NodeName& name) const;
};

/// Hard rules that are about one node and no GPU: status, exclusions, `--on`, RAM, free space.
bool accepts(const Demand& demand, const NodeState& node, Bytes cost);
Shape shape_of(Family family, const NodeState& node);

Placement placement_of(const Demand& demand, const Best& best, std::size_t tier);

}  // namespace zed::sched
