#pragma once
// `zed-agent supervise FOLDER`: one small process an attempt. It starts the job, owns its pipes,
// writes its log, ends everything the job started, and leaves a durable exit record. It outlives
// the agent.

#include "proc/launch.hpp"

namespace zed::proc {

/// Runs one attempt to its end; the listening control socket is inherited on descriptor 3. Returns
/// the exit status of the supervisor itself: 0 once exit.json is durable.
int supervise(const AttemptFolder& folder);

}  // namespace zed::proc
