#pragma once
// `nvidia-smi -L` and `nvidia-smi topo -m`, as text.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/device.hpp"

namespace zed::gpu {

/// GPUs with name and UUID; MIG instances, with their profile in the name ("NVIDIA A100 MIG
/// 1g.10gb"), behind their GPU.
std::vector<Device> read_nvidia_list(std::string_view text);

/// How GPUs of one machine reach each other.
struct Topology {
  std::map<std::int64_t, std::int64_t> numa;    ///< GPU number -> NUMA node
  std::map<std::int64_t, std::string> islands;  ///< GPU number -> those joined by NVLink
};
Topology read_topology(std::string_view text);

}  // namespace zed::gpu
