#pragma once
// What the end of the placed attempt means for its job. Pure.

#include <cstdint>
#include <optional>

#include "controller/desired.hpp"

namespace zed::controller {

/// The final state that this end brings, or nothing if the job goes on with a new attempt. A
/// success counts even when a stop or a cancel was on its way; timeline rules are judge_success's.
std::optional<JobState> state_after(const DesiredJob& job, const ExitRecord& exit);

/// The job's own failures; losses, stops and a killed supervisor are not.
bool counts_as_failure(ExitRecord::Kind kind);

/// Losses of node or supervisor in a row, without a checkpoint between, after which a job is held.
inline constexpr std::int64_t most_crashes = 5;
/// Different jobs in a row that a node could not start, after which it is drained.
inline constexpr std::size_t most_troubles = 3;

/// 1 s, doubled for each failure in a row, at most 60 s.
Millis pause_before_retry(std::int64_t failures);

}  // namespace zed::controller
