#pragma once
// How a job's processes start: the job itself (by its supervisor) and commands beside it (by the
// agent). One piece for both, since it is what gives up root. Inside the room only.

#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "net/fd.hpp"
#include "proc/launch.hpp"

namespace zed::proc {

struct NewChild {
  std::vector<std::string> argv;         ///< at least one; its first is looked for in its own PATH
  std::vector<std::string> environment;  ///< NAME=VALUE, all of it
  const net::Fd& input;                  ///< become descriptors 0, 1 and 2; nothing else is
  const net::Fd& output;                 ///< inherited
  const net::Fd& error;
  /// Done first, as ourselves: the new process's session or group. False gives up, errno says why.
  /// Async-signal-safe calls only, since we may have threads.
  std::function<bool()> begin;
};

/// NAME=VALUE of each variable that the launch names.
std::vector<std::string> environment_words(const Launch& launch);

/// Starts a program in the launch's folder as the launch's user (that user's one group and no
/// other; signals as a shell would have them) and returns once it runs. It is killed when the
/// thread that called this ends, unless it becomes a program of another user itself. Errors: those
/// of fork and exec: `not_found`, `io`.
Result<pid_t> start_child(const Launch& launch, NewChild child);

}  // namespace zed::proc
