// macOS and FreeBSD.
#include <map>
#include <signal.h>
#include <unistd.h>

#include "proc/orphans.hpp"
#include "proc/process_table.hpp"
#include "proc/process_tree.hpp"

namespace zed::proc {
namespace {

using ByParent = std::multimap<pid_t, ProcessEntry>;

/// A tree larger than this is a fork bomb: what is left over is met in the next round.
constexpr std::size_t most = 100'000;

// Bounded by `most` in depth too: a pid that was reused meanwhile could close a circle.
void collect(pid_t pid, const ByParent& table, std::vector<ProcessEntry>& found) {
  const auto [first, end] = table.equal_range(pid);
  for (auto child = first; child != end; ++child) {
    if (found.size() >= most || child->second.pid == pid) return;
    const ProcessEntry entry = child->second;
    found.push_back(entry);
    collect(entry.pid, table, found);
  }
}

/// Children before their parents.
std::vector<ProcessEntry> family() {
  const std::vector<ProcessEntry> all = all_processes();
  ByParent table;
  for (const ProcessEntry& process : all)
    if (process.pid != ::getpid()) table.emplace(process.parent, process);
  std::vector<ProcessEntry> found;
  collect(::getpid(), table, found);
  for (const ProcessEntry& orphan : orphans_among(all)) {
    found.push_back(orphan);
    collect(orphan.pid, table, found);
  }
  remember_family(found);
  return {found.rbegin(), found.rend()};
}

}  // namespace

std::vector<pid_t> descendants() {
  std::vector<pid_t> pids;
  for (const ProcessEntry& process : family())
    pids.push_back(process.pid);
  return pids;
}

bool are_descendants_stopped() {
  for (const ProcessEntry& process : family())
    if (!process.at_rest) return false;
  return true;
}

/// Neither system counts them: such an end is told as that by SIGKILL.
long out_of_memory_kills() {
  return 0;
}

}  // namespace zed::proc
