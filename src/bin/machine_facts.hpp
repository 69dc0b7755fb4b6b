#pragma once
// What this machine is, measured.

#include "core/fleet.hpp"

namespace zed::bin {

/// Version, operating system, processor and memory; the rest is for the caller to fill in.
NodeFacts machine_facts();

}  // namespace zed::bin
