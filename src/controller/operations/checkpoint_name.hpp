#pragma once
// A checkpoint as a person types it. Inside the room only.

#include <cstdint>
#include <string_view>

#include "controller/machine.hpp"

namespace zed::controller {

/// "@epoch-15": on the job's current timeline, or taken by hand on its dataset; at the home if it
/// can be reached, else wherever it is. Errors: `not_found`, naming the nearest; `unavailable` if
/// no node that has a copy is connected.
Result<FoundCheckpoint> find_checkpoint(const Machine& m, const DesiredJob& job,
                                        std::string_view typed);

/// seq of a checkpoint; of one taken by hand that of the newest checkpoint before it.
std::uint64_t seq_at(const DesiredJob& job, const Dataset& copy, const Snapshot& snapshot);

/// Names of what a fork at `from` leaves behind on that copy, oldest first, closing ones left out.
std::vector<std::string> left_behind(const Dataset& copy, const Snapshot& from);

}  // namespace zed::controller
