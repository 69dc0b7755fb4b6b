#include "proc/process_tree.hpp"

#include <algorithm>

#include <signal.h>
#include <unistd.h>

#include "proc/process_table.hpp"

namespace zed::proc {

std::size_t signal_descendants(int signal) {
  std::vector<pid_t> all = descendants();
  for (pid_t pid : all)
    ::kill(pid, signal);
  return all.size();
}

std::vector<std::string> attempt_mark(const JobId& job, const Generation& generation) {
  return {"ZED_JOB_ID=" + job.str(), "ZED_GENERATION=" + generation.str()};
}

bool has_environment(pid_t pid, const std::vector<std::string>& entries) {
  const std::vector<std::string> environment = environment_of(pid);
  return std::all_of(entries.begin(), entries.end(), [&environment](const std::string& entry) {
    return std::find(environment.begin(), environment.end(), entry) != environment.end();
  });
}

std::vector<pid_t> processes_with_environment(const std::vector<std::string>& entries) {
  std::vector<pid_t> found;
  for (const ProcessEntry& process : all_processes())
    if (process.pid != ::getpid() && has_environment(process.pid, entries))
      found.push_back(process.pid);
  return found;
}

}  // namespace zed::proc
