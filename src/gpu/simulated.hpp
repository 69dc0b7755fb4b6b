#pragma once
// GPUs that are not there: for development fleets, demos and tests. They are reported as simulated
// wherever a node is shown.

#include <memory>
#include <string>
#include <vector>

#include "core/names.hpp"
#include "env/gpus.hpp"

namespace zed::gpu {

/// Names of the profiles that ship with Zed: "rtx-4090", "m3-max-64", "rtx-3080-10", "2x-a100-80",
/// "none".
std::vector<std::string> builtin_profiles();

/// A profile by name, or from a file when `profile` holds a '/' or ends in ".json":
///
///   {"schema": 1, "gpus": [{"model": "NVIDIA RTX A6000", "vram_mib": 49140, "vendor": "nvidia",
///                           "memory_kind": "dedicated", "arch": "8.6", "driver": "550.54",
///                           "health": "ok", "count": 2}]}
///
/// Only model and vram_mib are required. UUIDs are derived from the node's name and the position,
/// unless given as "uuid". Errors: `not_found` naming the nearest profile, `invalid` naming the
/// member.
Result<std::vector<Gpu>> simulated_gpus(const std::string& profile, const NodeName& node);

/// Reads the profile again at each probe, so that editing its file takes a GPU away or breaks one.
class SimulatedGpus final : public env::Gpus {
public:
  SimulatedGpus(std::string profile, NodeName node)
      : profile_(std::move(profile)), node_(std::move(node)) {}
  Result<std::vector<Gpu>> probe() override { return simulated_gpus(profile_, node_); }
  std::vector<Gpu> known() override { return probe().value_or(std::vector<Gpu>{}); }

private:
  std::string profile_;
  NodeName node_;
};

}  // namespace zed::gpu
