#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/number.hpp"
#include "proc/process_tree.hpp"

namespace zed::proc {
namespace {

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> children;
  std::error_code error;
  std::filesystem::path tasks = "/proc/" + std::to_string(pid) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks, error)) {
    std::ifstream file(task.path() / "children");
    for (pid_t child = 0; file >> child;)
      children.push_back(child);
  }
  return children;
}

void collect(pid_t pid, std::vector<pid_t>& found) {
  // A tree deeper or larger than this is a fork bomb: what is left over is met in the next round.
  constexpr std::size_t most = 100'000;
  for (pid_t child : children_of(pid)) {
    if (found.size() >= most) return;
    collect(child, found);
    found.push_back(child);
  }
}

long counter_in(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  std::string key;
  long value = 0;
  while (file >> key >> value)
    if (key == name) return value;
  return -1;
}

bool has_all(const std::string& environment, const std::vector<std::string>& entries) {
  return std::all_of(entries.begin(), entries.end(), [&](const std::string& entry) {
    std::string whole = entry + '\0';
    std::size_t at = environment.find(whole);
    while (at != std::string::npos && at > 0 && environment[at - 1] != '\0')
      at = environment.find(whole, at + 1);
    return at != std::string::npos;
  });
}

}  // namespace

void adopt_orphans() {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

std::vector<pid_t> descendants() {
  std::vector<pid_t> found;
  collect(::getpid(), found);
  return found;
}

std::size_t signal_descendants(int signal) {
  std::vector<pid_t> all = descendants();
  for (pid_t pid : all)
    ::kill(pid, signal);
  return all.size();
}

bool are_descendants_stopped() {
  for (pid_t pid : descendants()) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string stat;
    std::getline(file, stat);
    // "pid (name) S …": the name may hold anything.
    std::size_t name_end = stat.rfind(')');
    if (name_end == std::string::npos || name_end + 2 >= stat.size()) continue;
    if (std::string_view("TtZX").find(stat[name_end + 2]) == std::string_view::npos) return false;
  }
  return true;
}

std::vector<pid_t> processes_with_environment(const std::vector<std::string>& entries) {
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    std::string name = entry.path().filename().string();
    const auto pid = parse_number<pid_t>(name);
    if (!pid || *pid == ::getpid()) continue;
    std::ifstream file(entry.path() / "environ", std::ios::binary);
    std::ostringstream environment;
    environment << file.rdbuf();
    if (has_all(environment.str(), entries)) found.push_back(*pid);
  }
  return found;
}

long out_of_memory_kills() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("0::", 0) != 0) continue;
    long kills = counter_in("/sys/fs/cgroup" + line.substr(3) + "/memory.events", "oom_kill");
    if (kills >= 0) return kills;
  }
  return counter_in("/proc/vmstat", "oom_kill");
}

}  // namespace zed::proc
