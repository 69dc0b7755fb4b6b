// Invariants of what the cluster file says: keep, exclusive.

#include <algorithm>

#include <fmt/format.h>

#include "sim/invariants.hpp"

namespace zed::sim {

/// The smallest `last:` of all the `keep`s that are about a job: its own, and those of policies.
std::int64_t Invariants::least_kept(const JobId& id) const {
  std::int64_t least = 1;  // the newest always stays
  std::optional<std::int64_t> declared;
  auto consider = [&](const Retention& retention) {
    if (retention.keeps_all()) return;
    declared = std::min(declared.value_or(1'000'000), retention.last.value_or(1));
  };
  auto newest = world_.newest_controller();
  const controller::DesiredJob* job = newest ? newest->durable().find(id) : nullptr;
  if (job != nullptr) consider(job->job.retention);
  for (const ReplicationPolicy& policy : world_.cluster().policies)
    consider(policy.retention);
  return std::max(least, declared.value_or(1));
}

Violation Invariants::spares(const Pruned& pruned) const {
  const JobId job{pruned.dataset.bytes};
  auto content = contents_.find(pruned.machine);
  if (content == contents_.end()) return std::nullopt;
  for (const auto& [name, dataset] : content->second) {
    if (dataset.uuid != pruned.dataset) continue;
    // Its agent refuses: somebody committed, or rolled back, meanwhile.
    if (pruned.newest && (dataset.newest() == nullptr || dataset.newest()->id != *pruned.newest))
      return std::nullopt;
    auto is_doomed = [&](const CheckpointId& id) {
      return std::find(pruned.snapshots.begin(), pruned.snapshots.end(), id) !=
             pruned.snapshots.end();
    };
    const std::string where = name.str() + " on " + world_.machine(pruned.machine).name.str();
    for (const Snapshot& snapshot : dataset.snapshots) {
      if (!is_doomed(snapshot.id)) continue;
      auto forks = world_.history.forks.find(job);
      if (forks != world_.history.forks.end())
        for (const KnownFork& known : forks->second)
          if (known.fork.from == snapshot.id)
            return "@" + snapshot.name + " of " + where + " is where a fork began, and is to go";
      if (!snapshot.seq()) continue;
      const auto newer = std::count_if(
          dataset.snapshots.begin(), dataset.snapshots.end(), [&](const Snapshot& other) {
            return other.seq() && *other.seq() > *snapshot.seq() && !is_doomed(other.id);
          });
      if (newer < least_kept(job))
        return fmt::format("@{} of {} is to go, and only {} newer ones stay", snapshot.name, where,
                           newer);
    }
  }
  return std::nullopt;
}

Violation Invariants::keep_spares_what_must_stay() {
  for (; pruned_seen_ < world_.history.pruned.size(); ++pruned_seen_)
    if (Violation wrong = spares(world_.history.pruned[pruned_seen_])) return wrong;
  return std::nullopt;
}

/// Of one reign: a controller that was taken over from and cannot know it goes on granting leases
/// to whoever is cut off with it (docs/controller.md).
Violation Invariants::exclusive_runs_alone() {
  std::map<JobId, std::pair<std::size_t, Generation>> seen;
  for (std::size_t m = 0; m < world_.machine_count(); ++m)
    for (const auto& process : world_.machine(m).live_jobs()) {
      const Attempt& attempt = process->launch().attempt;
      const Job* job = world_.cluster().find_job(process->launch().job_name);
      if (job == nullptr || !job->exclusive) continue;
      auto [other, first] = seen.emplace(attempt.job, std::pair{m, attempt.generation});
      if (first || other->second.second.term != attempt.generation.term) continue;
      return fmt::format("{} is exclusive and runs on {} and on {}", job->name.str(),
                         world_.machine(other->second.first).name.str(),
                         world_.machine(m).name.str());
    }
  return std::nullopt;
}

}  // namespace zed::sim
