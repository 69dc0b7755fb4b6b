#pragma once
// All processes that an attempt started, forked grandchildren too.

#include <string>
#include <vector>

#include <sys/types.h>

namespace zed::proc {

/// Makes orphaned descendants ours, so that none escapes by forking twice.
void adopt_orphans();

/// Every live descendant of this process, children before their parents.
std::vector<pid_t> descendants();

/// Signals every descendant of this process; returns how many there were.
std::size_t signal_descendants(int signal);

/// Whether every descendant is stopped (or on its way out).
bool are_descendants_stopped();

/// Processes anywhere on the machine whose environment holds all of these "KEY=value" entries: what
/// is left of an attempt whose supervisor died. Reads /proc; only for that rare case.
std::vector<pid_t> processes_with_environment(const std::vector<std::string>& entries);

/// How often the kernel has killed for memory, in this process's cgroup where it tells, else on the
/// whole machine.
long out_of_memory_kills();

}  // namespace zed::proc
