#pragma once
// Which of a machine's GPUs its environment lets us use.

#include <map>
#include <string>
#include <vector>

#include "core/gpu.hpp"

namespace zed::sched {

/// Narrows `gpus` (in the driver's order) by CUDA_VISIBLE_DEVICES, CUDA_DEVICE_ORDER and
/// NVIDIA_VISIBLE_DEVICES, with CUDA's meaning: unset is all; the list ends at the first entry that
/// names no device; a UUID may be cut short if only one begins so; of MIG instances CUDA sees only
/// the first. GPUs of other vendors are not touched.
std::vector<Gpu> visible_gpus(const std::vector<Gpu>& gpus,
                              const std::map<std::string, std::string>& environment);

}  // namespace zed::sched
