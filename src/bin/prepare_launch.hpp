#pragma once
// What a job's processes are started with on this machine: whose they are, where, and what their
// environment says.

#include "base/result.hpp"
#include "env/attempts.hpp"
#include "env/gpus.hpp"
#include "env/store.hpp"
#include "proc/launch.hpp"

namespace zed::bin {

struct AgentConfig;

/// Opens the job's files and inputs, gives them to its user and makes the folder of its setup.
/// Blocks on the disk. Errors: `not_found` if an input is not here any more, those of the store and
/// of the system's users.
Result<proc::Launch> prepare_launch(const AgentConfig& config, env::Store& store, env::Gpus& gpus,
                                    const env::LaunchRequest& request);

}  // namespace zed::bin
