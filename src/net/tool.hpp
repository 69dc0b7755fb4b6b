#pragma once
// Running a program that may hang, and may stay there whatever one does.

#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"

namespace zed::net {

struct ToolAnswer {
  std::string out;
  std::string err;
  int status = 0;  ///< exit status; 128 + signal if one ended it
};

/// The program of that name in PATH, else in the folders where vendors put theirs (WSL, ROCm,
/// sbin); empty if there is none. A name with a '/' stands for itself.
std::string find_tool(const std::string& name);

/// Runs `command` (argv; the program found by find_tool) to its end, with LC_ALL=C and nothing on
/// standard input, in a process group of its own. Output is read to its end, at most 4 MiB of each
/// stream. At the deadline the group is killed and not waited for: a process in an uninterruptible
/// sleep cannot be killed. Blocks; call it from a worker.
///
/// Errors: `not_found` if there is no such program, `timeout`, `io`, `corrupt` for too much output.
Result<ToolAnswer> run_tool(const std::vector<std::string>& command, Millis deadline);

}  // namespace zed::net
