#pragma once
// What launches.cpp, attempts.cpp and closing.cpp have in common: an attempt's start, its life and
// its end. Inside the room only.

#include <string>

#include "agent/matters.hpp"

namespace zed::agent {

/// Property of a job's dataset: the generation whose job was asked to stop.
inline constexpr char stop_asked[] = "stop_asked";

/// The name under which an attempt holds its inputs.
inline std::string attempt_tag(const Generation& generation) {
  return "attempt." + generation.str();
}
/// A GPU of this machine, or nullptr.
const Gpu* find_gpu(const Machine& m, const std::string& uuid);
/// "" where it is not set, or there is no snapshot.
std::string property_or_empty(const Snapshot* snapshot, const char* name);

/// Its first process has been started, its setup is over: what it reports from then on.
void job_runs(Machine& m, LiveAttempt& live);
/// SIGTERM, and again later; the stop that is under way says how.
void signal_processes(Machine& m, LiveAttempt& live);
/// Every process of it is gone: a closing snapshot, and then it has ended.
void close(Machine& m, const AttemptKey& key);

}  // namespace zed::agent
