#pragma once
// The processes of a development fleet: who runs, how they start, how they end.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.hpp"
#include "base/units.hpp"
#include "cli/dev_fleet.hpp"
#include "proc/identity.hpp"

namespace zed::cli {

/// The program of that name that lies beside this one. Errors: `not_found`.
Result<std::filesystem::path> program_beside(const std::string& name);

/// The live process that a state folder's pid.json names. A stale file (the machine was restarted,
/// the pid is another's now) names none.
std::optional<proc::ProcessIdentity> running_in(const std::filesystem::path& state);

/// Starts a daemon that writes <state>/pid.json and waits until it has. Errors: `unavailable` with
/// the end of its log if it ended instead, `timeout`.
Result<proc::ProcessIdentity> start_daemon(const std::filesystem::path& program,
                                           std::vector<std::string> arguments,
                                           const std::filesystem::path& state,
                                           const std::filesystem::path& log);

/// Supervisors and processes of jobs of one node that are alive: those whose attempt or job folder
/// lies in its state folder, and what they started. Reads /proc: Linux only.
std::vector<proc::ProcessIdentity> job_processes_of(const std::filesystem::path& state);

/// SIGTERM, then SIGKILL to whoever is left after `grace`; true if all are gone after `limit` more.
bool end_processes(const std::vector<proc::ProcessIdentity>& processes, Millis grace);
/// SIGKILL at once; true if all are gone within two seconds.
bool kill_processes(const std::vector<proc::ProcessIdentity>& processes);
/// Kills what a node's jobs run until nothing of it is left, also what was forked meanwhile.
bool kill_jobs_of(const std::filesystem::path& state);

/// Free TCP ports on loopback, all different.
Result<std::vector<std::int64_t>> free_ports(std::size_t count);

/// The last lines of a log.
std::string tail_of(const std::filesystem::path& log, std::size_t lines);

}  // namespace zed::cli
