#pragma once
// All processes that an attempt started, forked grandchildren too.

#include <string>
#include <vector>

#include <sys/types.h>

#include "core/job.hpp"

namespace zed::proc {

/// Makes orphaned descendants ours, so that none escapes by forking twice. Where the system has no
/// such thing (macOS) they are known by having been seen, or by the entries of `mark` in their
/// environment.
void adopt_orphans(const std::vector<std::string>& mark);

/// Every live descendant of this process, children before their parents.
std::vector<pid_t> descendants();

/// Signals every descendant of this process; returns how many there were.
std::size_t signal_descendants(int signal);

/// Whether every descendant is stopped (or on its way out).
bool are_descendants_stopped();

/// The entries that stand in the environment of all that an attempt started, unless it removed
/// them.
std::vector<std::string> attempt_mark(const JobId& job, const Generation& generation);

/// Whether a process's environment holds all of these "KEY=value" entries, as far as we may see it.
bool has_environment(pid_t pid, const std::vector<std::string>& entries);

/// Processes anywhere on the machine of which that is true: what is left of an attempt whose
/// supervisor died. Only for that rare case.
std::vector<pid_t> processes_with_environment(const std::vector<std::string>& entries);

/// How often the kernel has killed for memory, in this process's cgroup where it tells, else on the
/// whole machine.
long out_of_memory_kills();

}  // namespace zed::proc
