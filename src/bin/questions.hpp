#pragma once
// Questions about this node's copies, and commands beside its jobs, answered off the loop.

#include <filesystem>

#include "core/question.hpp"
#include "env/store.hpp"
#include "proc/job_commands.hpp"

namespace zed::bin {

/// Blocks: on the disk, and for output of a command up to a quarter of a second. Any thread.
/// `attempts` holds the launch records. Errors: those of store/look and proc/job_commands.
Result<NodeReply> answer_question(env::Store& store, proc::JobCommands& commands,
                                  const std::filesystem::path& attempts,
                                  const NodeQuestion& question, Instant now);

}  // namespace zed::bin
