// Invariants of what people were promised, as the journals of controllers hold it.

#include <algorithm>

#include <fmt/format.h>

#include "sim/invariants.hpp"

namespace zed::sim {
namespace {

std::string short_id(const std::string& hex) {
  return hex.substr(0, 6);
}

const controller::DesiredJob* job_in(const SimController& controller, const JobId& id) {
  return controller.durable().find(id);
}

bool has_fork(const controller::DesiredJob& job, const Timeline& timeline) {
  return std::any_of(job.forks.begin(), job.forks.end(), [&](const controller::KnownFork& known) {
    return known.fork.timeline == timeline;
  });
}

}  // namespace

Violation Invariants::keeps_its_word(const SimController& controller) const {
  const History& history = world_.history;
  for (const JobId& id : history.safe.submits)
    if (job_in(controller, id) == nullptr)
      return fmt::format("the controller on {} knows nothing of job {}, whose submit was safe",
                         world_.machine(controller.machine_index()).name.str(), short_id(id.str()));
  for (const auto& [id, timeline] : history.safe.forks)
    if (const auto* job = job_in(controller, id);
        job != nullptr && job->forks.size() < controller::most_forks && !has_fork(*job, timeline))
      return fmt::format(
          "the controller on {} knows nothing of job {}'s timeline {}, which is safe",
          world_.machine(controller.machine_index()).name.str(), short_id(id.str()),
          timeline.brief());
  for (const Promise& promise : history.promises) {
    if (promise.kind != Promise::Kind::submit || promise.machine != controller.machine_index())
      continue;
    if (job_in(controller, promise.job) == nullptr)
      return fmt::format("{} was accepted by the controller on {} and is gone", promise.job_name,
                         world_.machine(promise.machine).name.str());
  }
  return std::nullopt;
}

Violation Invariants::promises_are_kept() {
  auto newest = world_.newest_controller();
  if (!newest) return std::nullopt;
  const std::uint64_t seq = newest->durable_seq();
  auto [seen, first] = journal_seen_.emplace(newest->run(), 0);
  if (!first && seen->second == seq) return std::nullopt;
  seen->second = seq;
  return keeps_its_word(*newest);
}

Violation Invariants::terminal_state_never_changes() {
  auto newest = world_.newest_controller();
  if (!newest) return std::nullopt;
  const History& history = world_.history;
  for (const auto& [id, end] : history.terminal) {
    auto safe = history.safe.ends.find(id);
    const bool on_this_disk = end.machine == newest->machine_index();
    if (!on_this_disk && safe == history.safe.ends.end()) continue;
    const JobState expected = on_this_disk ? end.state : safe->second;
    const auto* job = job_in(*newest, id);
    if (job == nullptr) continue;  // promises_are_kept says so
    if (!job->outcome || job->outcome->state != expected)
      return fmt::format("job {} was {} and is {} for the controller on {}", short_id(id.str()),
                         to_string(expected),
                         job->outcome ? to_string(job->outcome->state) : "not over",
                         world_.machine(newest->machine_index()).name.str());
  }
  return std::nullopt;
}

Violation Invariants::judge(const SimController& controller,
                            const controller::DesiredJob& job) const {
  const Generation& generation = job.outcome->generation;
  const auto& ended = world_.history.ended;
  auto end = std::find_if(ended.begin(), ended.end(), [&](const EndedAttempt& e) {
    return e.job == job.job.id && e.generation == generation;
  });
  const std::string who =
      fmt::format("job {} counts as succeeded by generation {} on {}", short_id(job.job.id.str()),
                  generation.brief(), world_.machine(controller.machine_index()).name.str());
  if (end == ended.end() || end->exit.kind != ExitRecord::Kind::success)
    return who + ", which did not succeed";
  if (end->work_remains) return who + ", which only stopped as it was asked to";
  // Every fork after the one that began this timeline must have been a takeover after a loss; the
  // last may be the return to it.
  bool begun = std::none_of(job.forks.begin(), job.forks.end(), [&](const auto& known) {
    return known.fork.timeline == end->timeline;
  });
  for (const controller::KnownFork& known : job.forks) {
    if (begun && known.fork.timeline != end->timeline && known.fork.why != Fork::Why::node_lost)
      return fmt::format("{}, but a {} had left its timeline {}", who, to_string(known.fork.why),
                         end->timeline.brief());
    if (known.fork.timeline == end->timeline) begun = true;
  }
  for (const auto& [id, snapshot] : world_.history.snapshots)
    if (snapshot.snapshot.properties.contains(property::closing) &&
        snapshot.snapshot.properties.contains(property::generation) &&
        snapshot.snapshot.properties.at(property::generation) == generation.str())
      return std::nullopt;
  return who + ", which has no closing snapshot";
}

Violation Invariants::success_is_counted_by_the_rule() {
  for (const auto& controller : world_.controllers())
    for (const auto& [id, job] : controller->durable().jobs) {
      if (!job.outcome || job.outcome->state != JobState::succeeded) continue;
      if (!judged_.emplace(controller->run(), id).second) continue;
      if (Violation wrong = judge(*controller, job)) return wrong;
    }
  return std::nullopt;
}

// ---- liveness -----------------------------------------------------------------------------------

/// A job that waits for another which a person ended, or that failed; or for a model whose last
/// copy is on a lost disk.
bool Invariants::waits_in_vain(const controller::DesiredJob& job) const {
  const auto& desired = world_.newest_controller()->durable();
  for (const JobName& name : job.job.after) {
    auto named = desired.by_name.find(name);
    const auto* other = named == desired.by_name.end() ? nullptr : desired.find(named->second);
    if (other == nullptr || (other->outcome && other->outcome->state != JobState::succeeded))
      return true;
    if (!other->outcome && waits_in_vain(*other)) return true;
  }
  if (!job.job.model || world_.history.lost_disks.empty()) return false;
  for (const auto& [machine, content] : contents_)
    for (const auto& [name, dataset] : content)
      if (dataset.property(property::type) == "model" && dataset.newest() != nullptr) return false;
  return true;
}

Violation Invariants::can_finish_but_did_not(const controller::DesiredJob& job) const {
  auto newest = world_.newest_controller();
  if (job.is_terminal()) return std::nullopt;
  if (job.outcome &&
      (job.outcome->state == JobState::stopped || job.outcome->state == JobState::failed))
    return std::nullopt;  // a person's word, or its own failures: a person's word resumes it
  if (job.wanted == controller::Wanted::stop || job.wanted == controller::Wanted::cancel)
    return fmt::format("{} was told to {} and is still {}", job.job.name.str(),
                       to_string(job.wanted), to_string(newest->state().state_of(job.job.id)));
  const JobState state = newest->state().state_of(job.job.id);
  if (waits_in_vain(job)) return std::nullopt;
  // Its checkpoints went with their only disk: it waits for a person and says so.
  if (state == JobState::waiting && !world_.history.lost_disks.empty()) return std::nullopt;
  return fmt::format("{} is {} although nothing hinders it any more", job.job.name.str(),
                     to_string(state));
}

Violation Invariants::check_liveness() {
  auto newest = world_.newest_controller();
  if (!newest) return "liveness: no controller runs";
  for (const auto& [id, job] : newest->durable().jobs)
    if (Violation wrong = can_finish_but_did_not(job)) return "liveness: " + *wrong;
  return std::nullopt;
}

}  // namespace zed::sim
