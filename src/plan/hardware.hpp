#pragma once
// Declared hardware against what an agent found.

#include <vector>

#include "core/fleet.hpp"
#include "core/plan.hpp"

namespace zed::plan {

/// Notes only: declared hardware is never capacity. Says what was declared and what was detected
/// where they differ ("declares 2x A100 80 GB; detected 1x NVIDIA A100-SXM4-80GB"), nothing where
/// they agree.
std::vector<Change> hardware_notes(const DeclaredNode& declared, const Node& detected);

}  // namespace zed::plan
