#pragma once
// Which GPUs an agent has: those of its machine, or simulated ones where it was asked for them.

#include <memory>
#include <string>

#include "bin/agent_shell.hpp"
#include "env/gpus.hpp"

namespace zed::bin {

/// Whether `--gpus` names a profile: neither "auto" nor "none".
bool are_simulated(const std::string& gpus);

/// "auto": those that `zed-agent probe` finds, its inventory kept in the state folder, narrowed by
/// CUDA_VISIBLE_DEVICES as the agent was started with. Else a simulated profile. Errors: those of
/// the profile.
Result<std::unique_ptr<env::Gpus>> open_gpus(const std::string& gpus, const AgentConfig& config);

}  // namespace zed::bin
