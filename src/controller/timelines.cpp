#include "controller/timelines.hpp"

#include <algorithm>
#include <limits>

#include "base/enum.hpp"

namespace zed::controller {
namespace {

/// A return to a timeline that succeeded is recorded as a fork too; it leads nowhere further back.
bool leads_forward(const KnownFork& fork) {
  return fork.fork.left < fork.fork.timeline;
}

/// The fork that began `timeline`, or nullptr for a job's first one.
const KnownFork* beginning_of(const DesiredJob& job, const Timeline& timeline) {
  for (const KnownFork& fork : job.forks)
    if (fork.fork.timeline == timeline && leads_forward(fork)) return &fork;
  return nullptr;
}

}  // namespace

bool is_on_current_timeline(const DesiredJob& job, const Timeline& timeline, std::uint64_t seq) {
  std::uint64_t limit = std::numeric_limits<std::uint64_t>::max();
  Timeline at = job.timeline;
  // Each turn goes to a lower timeline, so at most most_forks of them.
  for (std::size_t turn = 0; turn <= most_forks; ++turn) {
    if (at == timeline) return seq <= limit;
    const KnownFork* fork = beginning_of(job, at);
    if (fork == nullptr || !fork->fork.from) return false;
    limit = std::min(limit, fork->from_seq);
    at = fork->fork.left;
  }
  return false;
}

bool is_on_current_timeline(const DesiredJob& job, const Snapshot& snapshot) {
  auto seq = snapshot.seq();
  auto timeline = snapshot.timeline();
  return seq && timeline && is_on_current_timeline(job, *timeline, *seq);
}

const Snapshot* newest_current_checkpoint(const DesiredJob& job, const Dataset& copy) {
  const Snapshot* newest = nullptr;
  for (const Snapshot& snapshot : copy.snapshots) {
    if (!is_on_current_timeline(job, snapshot)) continue;
    if (newest == nullptr || *snapshot.seq() > *newest->seq()) newest = &snapshot;
  }
  return newest;
}

const KnownFork* next_fork(const DesiredJob& job, const Timeline& held) {
  if (held == job.timeline) return nullptr;
  for (const KnownFork& fork : job.forks)
    if (fork.fork.left == held) return &fork;
  return nullptr;
}

bool has_beginning(const DesiredJob& job, const Dataset& copy) {
  const KnownFork* fork = beginning_of(job, job.timeline);
  if (fork == nullptr || !fork->fork.from || copy.find(*fork->fork.from) != nullptr) return true;
  return std::any_of(copy.snapshots.begin(), copy.snapshots.end(),
                     [&](const Snapshot& snapshot) { return snapshot.timeline() == job.timeline; });
}

SuccessVerdict judge_success(const DesiredJob& job, const Timeline& timeline) {
  if (job.is_terminal()) return {false, {}, "the job has ended already"};
  if (timeline == job.timeline) return {true, {}, {}};
  const KnownFork* leaving = nullptr;
  Timeline at = job.timeline;
  for (std::size_t turn = 0; turn <= most_forks && at != timeline; ++turn) {
    const KnownFork* fork = beginning_of(job, at);
    if (fork == nullptr) return {false, {}, "its timeline is unknown here"};
    if (fork->fork.why != Fork::Why::node_lost)
      return {false, {}, "its timeline was left by a " + std::string(to_string(fork->fork.why))};
    leaving = fork;
    at = fork->fork.left;
  }
  if (at != timeline || leaving == nullptr) return {false, {}, "its timeline is unknown here"};
  KnownFork back = *leaving;
  back.fork.timeline = timeline;
  back.fork.left = job.timeline;
  back.fork.by = "zed";
  return {true, back, {}};
}

}  // namespace zed::controller
