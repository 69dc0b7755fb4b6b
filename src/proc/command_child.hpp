#pragma once
// The process of a command beside a job. Inside the room only.

#include <sys/types.h>

#include "core/question.hpp"
#include "net/fd.hpp"
#include "proc/launch.hpp"

namespace zed::proc {

struct CommandChild {
  pid_t pid = -1;  ///< leads its own process group
  net::Fd input;   ///< not blocking; of a terminal the same open file as `output`
  net::Fd output;  ///< not blocking
  net::Fd exit;    ///< readable once the process has ended
};

/// Errors: those of fork, exec and of making a terminal, in words.
Result<CommandChild> start_command_child(const Launch& launch, const StartCommand& question);

}  // namespace zed::proc
