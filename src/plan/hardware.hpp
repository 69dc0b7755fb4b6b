#pragma once
// Declared hardware against what an agent found.

#include <functional>
#include <string_view>
#include <vector>

#include "core/fleet.hpp"
#include "core/plan.hpp"

namespace zed::plan {

/// Whether a declared GPU name means a detected GPU (sched/gpu_name.hpp has the rules; this room
/// may not see them). Without one, every word that was declared must stand in the detected name.
using SameGpu = std::function<bool(std::string_view declared, const Gpu& detected)>;

/// Notes only: declared hardware is never capacity. Says what was declared and what was detected
/// where they differ ("server declares 2x A100 80 GB; detected 1x NVIDIA A100-SXM4-80GB"), nothing
/// where they agree; the same for pool and store. A GPU that is detected and not declared is a
/// difference too, if any GPU is declared there.
std::vector<Change> hardware_notes(const DeclaredNode& declared, const Node& detected,
                                   const SameGpu& same_gpu = {});

}  // namespace zed::plan
