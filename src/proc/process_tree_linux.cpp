#include <sys/prctl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

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

}  // namespace

void adopt_orphans(const std::vector<std::string>&) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

std::vector<pid_t> descendants() {
  std::vector<pid_t> found;
  collect(::getpid(), found);
  return found;
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
