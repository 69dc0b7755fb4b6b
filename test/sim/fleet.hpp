#pragma once
// The simulated machines, and the cluster that is declared for them.

#include <cstdint>
#include <string>
#include <vector>

#include "core/cluster.hpp"
#include "core/gpu.hpp"

namespace zed::sim {

struct Hardware {
  std::string name;
  std::vector<Gpu> gpus;
  std::int64_t memory_gib = 64;
  bool laptop = false;
};

/// server (2x A100 80 GB), workstation (RTX 4090), laptop (RTX 3080), macbook (M3 Max); more of the
/// same, numbered, beyond four.
std::vector<Hardware> simulated_hardware(std::size_t machines);

/// Jobs "job0" … with requirements that some, or all, of these machines meet.
Cluster simulated_cluster(std::uint64_t seed, std::size_t jobs);

}  // namespace zed::sim
