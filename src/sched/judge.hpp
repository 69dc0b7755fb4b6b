#pragma once
// Inside the room: a node judged clause by clause, in words. Slow and complete; placement decides
// by choose.hpp, and both must agree on whether a node will do.

#include <cstdint>
#include <string>
#include <vector>

#include "core/placement.hpp"
#include "sched/demand.hpp"

namespace zed::sched {

struct Miss {
  Shortfall shortfall;
  double by = 1;  ///< how far off, 0 (nearly there) to 1
};

struct Judgement {
  std::vector<Miss> misses;       ///< empty: the job fits
  std::int64_t count = 0;         ///< GPUs to take
  std::vector<std::string> gpus;  ///< UUIDs that qualify and are free
};

Judgement judge(const Demand& demand, const Node& node, const std::vector<Attempt>& attempts);

}  // namespace zed::sched
