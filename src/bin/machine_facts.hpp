#pragma once
// What this machine is, measured.

#include <filesystem>

#include "core/fleet.hpp"

namespace zed::bin {

/// Version, operating system, processor, memory, ROCm, and whether it runs on its battery; the rest
/// is for the caller to fill in. `root` is where /etc, /proc, /sys and /opt are read.
NodeFacts machine_facts(const std::filesystem::path& root = "/");

}  // namespace zed::bin
