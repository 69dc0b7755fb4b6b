#pragma once
// This machine's clocks, for effects alone: the pure rooms are told the time.

#include "base/units.hpp"

namespace zed {

/// Since the epoch, UTC. Jumps when somebody sets the clock; never for measuring how long something
/// took.
WallTime wall_now();

/// Since an arbitrary moment; never goes back.
Instant monotonic_now();

}  // namespace zed
