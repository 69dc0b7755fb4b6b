#include <set>
#include <utility>

#include <unistd.h>

#include "proc/identity.hpp"
#include "proc/orphans.hpp"
#include "proc/process_tree.hpp"

namespace zed::proc {
namespace {

/// Of this process: a supervisor, which has one thread.
struct Known {
  std::vector<std::string> mark;
  std::set<std::pair<pid_t, std::int64_t>> family;  ///< pid and start of whom the last look saw
};

Known& known() {
  static Known known;
  return known;
}

std::pair<pid_t, std::int64_t> key_of(pid_t pid) {
  const auto identity = identity_of(pid);
  return {pid, identity ? identity->start_ticks : 0};
}

bool is_ours(pid_t pid) {
  if (known().family.count(key_of(pid)) > 0) return true;
  return !known().mark.empty() && has_environment(pid, known().mark);
}

}  // namespace

void adopt_orphans(const std::vector<std::string>& mark) {
  known().mark = mark;
}

std::vector<ProcessEntry> orphans_among(const std::vector<ProcessEntry>& all) {
  constexpr pid_t launchd = 1;
  std::vector<ProcessEntry> orphans;
  for (const ProcessEntry& process : all)
    if (process.parent == launchd && process.pid != ::getpid() && is_ours(process.pid))
      orphans.push_back(process);
  return orphans;
}

void remember_family(const std::vector<ProcessEntry>& family) {
  std::set<std::pair<pid_t, std::int64_t>> now;
  for (const ProcessEntry& process : family)
    now.insert(key_of(process.pid));
  known().family = std::move(now);
}

}  // namespace zed::proc
