#pragma once
// What the system tells about processes: /proc on Linux (process_table_linux.cpp), libproc on macOS
// (process_table_macos.cpp), sysctl on FreeBSD (process_table_freebsd.cpp). All of it is a glance:
// a process may have ended, and its pid be another's, when the call returns.

#include <string>
#include <vector>

#include <sys/types.h>

namespace zed::proc {

struct ProcessEntry {
  pid_t pid = 0;
  pid_t parent = 0;
  bool at_rest = false;  ///< stopped, or a zombie: it runs nothing until it is let go on
};

/// All processes of the machine that we may see, in no order.
std::vector<ProcessEntry> all_processes();

/// The words that a process was started with, and its environment ("NAME=value"), as they were
/// then. Empty if we may not read them or it is gone. At most the first 2 MiB of each, which is
/// what Linux lets a process have.
std::vector<std::string> arguments_of(pid_t pid);
std::vector<std::string> environment_of(pid_t pid);

}  // namespace zed::proc
