// What one job needs now, derived from desired state and the fleet view; called whenever either may
// have changed. Idempotent: what is under way is not ordered twice (steps.hpp).

#include <fmt/format.h>

#include "controller/imports.hpp"
#include "controller/machine.hpp"
#include "controller/timelines.hpp"

namespace zed::controller {
namespace {

void order_stop(Machine& m, const DesiredJob& job, const NodeName& node,
                const Generation& generation, StopMode mode, const std::string& reason) {
  PlanStep step;
  step.node = node;
  step.action = StopAttempt{job.job.id, generation, mode, reason};
  step.expect = m.expect();
  step.why = reason;
  std::string need = "stop:" + job.job.id.str() + ":" + node.str() + ":" + generation.str() + ":" +
                     std::string(to_string(mode));
  m.steps.want(need, job.job.id, {step}, m.fleet, m.now.monotonic, m.ids, m.out);
}

/// A placed attempt that is not there, while a later one is: it has ended long ago.
bool was_followed(const Machine& m, const DesiredJob& job, const NodeName& node,
                  const Attempt& later) {
  return job.placed->node == node && job.placed->generation < later.generation &&
         visible_attempt(m, job) == nullptr;
}

/// A live attempt that this journal does not know, on the current timeline and at the home: the
/// controller before us placed it and its record did not reach us. It is ours from now on.
bool adopt(Machine& m, DesiredJob& job, const NodeName& node, const Attempt& attempt) {
  bool continues = job.timeline.is_none() ? job.home.empty() : attempt.timeline == job.timeline;
  bool at_home = job.home.empty() || job.home == node;
  if (job.placed && !was_followed(m, job, node, attempt)) return false;
  if (job.is_over() || job.wanted != Wanted::run || !continues || !at_home ||
      attempt.generation <= job.last_generation || attempt.generation.term > m.term)
    return false;
  if (job.timeline.is_none() && attempt.timeline != attempt.generation) return false;
  PlacedAttempt placed{attempt.generation,
                       node,
                       attempt.gpus,
                       attempt.number,
                       attempt.since,
                       "adopted: it was running already",
                       JobId{},
                       std::string()};
  m.record(Placed{job.job.id, placed});
  m.tell("job", "job " + job.job.name.str(),
         "its running attempt on " + node.str() + " was adopted");
  return true;
}

bool ended_well(const Dataset& copy, const Generation& generation) {
  const Snapshot* newest = copy.newest();
  if (newest == nullptr) return false;
  auto closing = newest->properties.find(property::closing);
  auto of = newest->properties.find(property::generation);
  return closing != newest->properties.end() && of != newest->properties.end() &&
         closing->second == to_string(ExitRecord::Kind::success) && of->second == generation.str();
}

/// A job that this journal has never placed, and whose dataset is there: the controller before us
/// placed it, it ran, perhaps to its end, and nothing of that reached us. It is ours from now on.
bool adopt_dataset(Machine& m, DesiredJob& job, const NodeName& node, const Dataset& copy) {
  auto timeline = copy.timeline();
  auto generation = copy.generation();
  if (copy.property(property::home) != node.str() || !timeline || !generation ||
      *generation < *timeline || generation->term >= m.term)
    return false;
  const JobId id = job.job.id;
  std::int64_t number = 0;
  for (const Generation& was : {*timeline, *generation}) {
    if (job.last_generation >= was) continue;
    m.record(Placed{id, PlacedAttempt{was, node, {}, ++number, m.now.wall, "adopted", {}, {}}});
    ExitRecord exit;
    exit.kind = ExitRecord::Kind::supervisor_lost;
    exit.words = "it ran under a former controller";
    exit.ended = m.now.wall;
    m.record(AttemptOver{id, was, exit, false, false, m.now.wall});
  }
  if (newest_current_checkpoint(job, copy) != nullptr) m.record(FirstCheckpoint{id});
  m.tell("job", "job " + job.job.name.str(),
         "its dataset on " + node.str() + ", made under a former controller, was adopted");
  if (ended_well(copy, *generation)) {
    Outcome outcome{JobState::succeeded, "under a former controller", *generation, m.now.wall};
    m.record(Finished{id, outcome, std::nullopt, {}});
  }
  return true;
}

bool adopt_datasets(Machine& m, DesiredJob& job) {
  if (!job.home.empty() || !job.timeline.is_none() || job.placed || job.is_over()) return false;
  for (const NodeName& node : m.fleet.ready_holders(job.dataset_uuid()))
    if (adopt_dataset(m, job, node, *m.fleet.copy(node, job.dataset_uuid()))) return true;
  return false;
}

/// Whatever runs and is not the placed attempt is stale: it stops, and what it did becomes a branch
/// or stays as the closing snapshot.
void stop_stale_attempts(Machine& m, DesiredJob& job) {
  for (const NodeName& node : m.fleet.nodes_running(job.job.id)) {
    auto held = m.fleet.view().attempts.find(node);
    if (held == m.fleet.view().attempts.end()) continue;
    std::vector<Attempt> live;
    for (const Attempt& attempt : held->second)
      if (attempt.job == job.job.id && is_live(attempt)) live.push_back(attempt);
    for (const Attempt& attempt : live) {
      if (job.placed && job.placed->generation == attempt.generation) continue;
      if (adopt(m, job, node, attempt)) continue;
      if (attempt.phase == AttemptPhase::closing) continue;  // nothing of it runs any more
      order_stop(m, job, node, attempt.generation, StopMode::halt,
                 job.is_over() ? "the job has ended"
                               : "a newer attempt or timeline took its place");
    }
  }
}

/// A person wants the job stopped or cancelled.
void wind_down(Machine& m, DesiredJob& job) {
  bool cancels = job.wanted == Wanted::cancel;
  JobState state = cancels ? JobState::cancelled : JobState::stopped;
  if (job.placed && !m.fleet.is_lost(job.placed->node)) {
    order_stop(m, job, job.placed->node, job.placed->generation,
               cancels ? StopMode::cancel : StopMode::stop, job.wanted_why);
    return;
  }
  Generation generation = job.placed ? job.placed->generation : Generation{};
  m.record(Finished{job.job.id, Outcome{state, job.wanted_why, generation, m.now.wall}, {}, {}});
}

/// The placed attempt has to go elsewhere by plan: a drained node, or `resume --on`.
std::optional<std::string> reason_to_leave(const Machine& m, const DesiredJob& job) {
  const NodeName& node = job.placed->node;
  if (!job.only.empty() && job.only != node && m.fleet.is_ready(job.only))
    return "moves to " + job.only.str();
  auto duty = m.desired.duties.find(node);
  if (duty != m.desired.duties.end() && duty->second.duty == Duty::draining && job.only != node &&
      m.journal.is_durable(m.duty_seq))
    return "node " + node.str() + " is being drained";
  return std::nullopt;
}

void keep_running(Machine& m, DesiredJob& job) {
  const Attempt* attempt = visible_attempt(m, job);
  // Nothing of it runs any more, and a stop would take from a success the time to be kept.
  if (attempt != nullptr && attempt->phase == AttemptPhase::closing) return;
  if (!job.placed->evicted_for.is_nil()) {  // started or not, it makes room
    order_stop(m, job, job.placed->node, job.placed->generation, StopMode::stop,
               job.placed->evicted);
    return;
  }
  if (attempt == nullptr) {
    start_placed(m, job);
    return;
  }
  m.waits_for.erase(job.job.id);
  if (!is_live(*attempt)) return;
  auto reason = reason_to_leave(m, job);
  if (!reason) return;
  if (!m.moves.contains(job.job.id)) {
    drive_move(m, job);  // looks for a target first: nothing is stopped to wait for a place
    if (!m.moves.contains(job.job.id)) return;
  }
  order_stop(m, job, job.placed->node, job.placed->generation, StopMode::stop, *reason);
}

void publish_state(Machine& m, const DesiredJob& job) {
  JobState state = state_of(m, job);
  auto [shown, is_new] = m.shown.try_emplace(job.job.id, state);
  if (!is_new && shown->second == state) return;
  shown->second = state;
  std::string where = job.placed ? " on " + job.placed->node.str() : "";
  const bool has_reason = job.outcome && !job.outcome->reason.empty();
  std::string why = has_reason ? ": " + job.outcome->reason : "";
  m.tell("job", "job " + job.job.name.str(), std::string(to_string(state)) + where + why);
}

void decide(Machine& m, DesiredJob& job) {
  if (job.is_over()) return;
  if (job.wanted != Wanted::run) return wind_down(m, job);
  pin_inputs(m, job);
  if (!m.journal.is_durable(job.changed_seq)) return;
  if (job.placed && !m.fleet.is_lost(job.placed->node)) return keep_running(m, job);
  if (m.moves.contains(job.job.id)) return drive_move(m, job);
  if (!job.placed && !job.home.empty() && !home_is_lost(m, job) && prepare_home(m, job))
    m.place_due = true;
}

}  // namespace

void reconcile_job(Machine& m, const JobId& id) {
  DesiredJob* job = m.desired.find(id);
  if (job == nullptr) return;
  publish_state(m, *job);
  // What is not durable is not acted on; its JournalWritten brings us back.
  if (!m.journal.is_durable(job->changed_seq)) return;
  acknowledge_ends(m, id);
  if (!m.is_firm(job->safe_seq)) {
    m.until_safe.insert(id);
    m.waits_for[id] = "its fork or move is not yet on the second node " + m.desired.second.str();
    return;
  }
  m.until_safe.erase(id);
  stop_stale_attempts(m, *job);
  if (!m.journal.is_durable(job->changed_seq) || adopt_datasets(m, *job)) return;  // adopted
  notice_hand_rollback(m, *job);
  if (!m.is_firm(job->safe_seq)) return;
  follow_forks(m, *job);
  if (!m.journal.is_durable(job->changed_seq)) return;  // adopted
  set_homes(m, *job);
  decide(m, *job);
  keep_code(m, *job);
  keep_copies(m, *job);
  publish_state(m, *job);
}

}  // namespace zed::controller
