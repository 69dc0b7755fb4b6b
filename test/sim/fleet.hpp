#pragma once
// The simulated machines, and the cluster that is declared for them.

#include <cstdint>
#include <string>
#include <vector>

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

struct ClusterShape {
  std::size_t machines = 4;
  std::size_t jobs = 2;
  std::string files_on;   ///< the machine that has the model's file
  bool all_keep = false;  ///< every job, instead of now and then one
};
/// A cluster file: jobs "job0" … with requirements that some, or all, of these machines meet, and
/// what else the language has for them: models, policies, keep, leases, time-outs, priorities.
std::string simulated_cluster(std::uint64_t seed, const ClusterShape& shape);

/// The same without variety: every job prefers the A100 and has one copy.
std::string plain_cluster(std::size_t jobs);

}  // namespace zed::sim
