#pragma once
// What Apple's Metal says of the GPU's memory: metal.mm where the program is built on a Mac,
// metal_none.cpp everywhere else.

#include <optional>

#include "base/units.hpp"

namespace zed::gpu {

/// How much memory the GPU of this machine can use without being slowed down
/// (recommendedMaxWorkingSetSize); the largest of several. None: Metal is not here, or has no GPU.
std::optional<Bytes> metal_working_set();

}  // namespace zed::gpu
