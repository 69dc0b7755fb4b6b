// The end of attempts: what it means for the job, and when the agent may forget it.

#include <algorithm>

#include <fmt/format.h>

#include "controller/ends.hpp"
#include "controller/machine.hpp"
#include "controller/timelines.hpp"

namespace zed::controller {

std::optional<JobState> state_after(const DesiredJob& job, const ExitRecord& exit) {
  using Kind = ExitRecord::Kind;
  if (exit.kind == Kind::success) return JobState::succeeded;
  if (job.wanted == Wanted::cancel) return JobState::cancelled;
  if (job.wanted == Wanted::stop) return JobState::stopped;
  if (exit.kind == Kind::timed_out) return JobState::failed;
  if (!counts_as_failure(exit.kind)) return std::nullopt;
  return job.failures + 1 > job.job.retries ? std::optional(JobState::failed) : std::nullopt;
}

bool counts_as_failure(ExitRecord::Kind kind) {
  using Kind = ExitRecord::Kind;
  switch (kind) {
  case Kind::exit_code:
  case Kind::signal:
  case Kind::out_of_memory:
  case Kind::start_failed: return true;
  case Kind::success:
  case Kind::stopped:
  case Kind::cancelled:
  case Kind::timed_out:
  case Kind::supervisor_lost: return false;
  }
  return false;
}

Millis pause_before_retry(std::int64_t failures) {
  std::int64_t doublings = std::clamp<std::int64_t>(failures - 1, 0, 6);
  return std::min(seconds(std::int64_t{1} << doublings), seconds(60));
}

namespace {

/// The checkpoint before the newest; "" if there is none.
std::string one_back(const Machine& m, const DesiredJob& job) {
  auto found = newest_reachable(m, job);
  if (!found) return "";
  const Snapshot* before = nullptr;
  for (const Snapshot& snapshot : m.fleet.copy(found->node, job.dataset_uuid())->snapshots)
    if (is_on_current_timeline(job, snapshot) && *snapshot.seq() < *found->snapshot->seq() &&
        (before == nullptr || *before->seq() < *snapshot.seq()))
      before = &snapshot;
  return before != nullptr ? before->name : "";
}

std::string reason_of(const Machine& m, const DesiredJob& job, bool got_anywhere, JobState state,
                      const ExitRecord& exit) {
  if (state == JobState::failed && counts_as_failure(exit.kind)) {
    std::string reason = exit.words;
    if (job.job.retries > 0)
      reason += fmt::format("; {} of {} retries used", std::min(job.failures, job.job.retries),
                            job.job.retries);
    // It may be the checkpoint that is bad (htcondor/htcondor#2718).
    std::string before = got_anywhere ? "" : one_back(m, job);
    if (!before.empty())
      reason += fmt::format("; it came no further than its newest checkpoint: zedctl rollback "
                            "{}@{} begins at the one before",
                            job.job.name.str(), before);
    return reason;
  }
  if (state == JobState::failed) return "time-out: " + exit.words;
  if (state == JobState::succeeded) return {};  // the state says it all
  return job.wanted_why.empty() ? exit.words : job.wanted_why;
}

/// Restarting the same job at once over and over would only heat the room.
void pause_job(Machine& m, const DesiredJob& job, bool counted) {
  Millis pause = counted ? pause_before_retry(job.failures) : seconds(1);
  m.not_before[job.job.id] = m.now.monotonic + pause;
  m.wake(m.now.monotonic + pause, job.job.id);
}

void count_success(Machine& m, DesiredJob& job, const NodeName& node, const Attempt& attempt) {
  SuccessVerdict verdict = judge_success(job, attempt.timeline);
  if (!verdict.counts) {
    m.tell_once("uncounted " + attempt.generation.str(), "job", "job " + job.job.name.str(),
                fmt::format("attempt {} on {} succeeded and is not counted: {}", attempt.number,
                            node.str(), verdict.why_not));
    return;
  }
  if (verdict.back) {
    verdict.back->fork.at = m.now.wall;
    verdict.back->branch_uuid = m.fresh<DatasetId>();
  }
  Outcome outcome{JobState::succeeded, "", attempt.generation, m.now.wall};
  if (verdict.back) outcome.reason = "on " + node.str() + ", which had been lost";
  m.record(Finished{job.job.id, outcome, verdict.back, node});
}

}  // namespace

void end_placed(Machine& m, DesiredJob& job, const ExitRecord& exit) {
  ZED_ASSERT(job.placed.has_value());
  const Generation generation = job.placed->generation;
  const NodeName node = job.placed->node;
  std::optional<JobState> final = state_after(job, exit);
  bool counted = counts_as_failure(exit.kind) && job.wanted == Wanted::run;
  bool lost = exit.kind == ExitRecord::Kind::supervisor_lost;
  // One that committed got somewhere.
  const Attempt* attempt = visible_attempt(m, job);
  const bool got_anywhere = attempt != nullptr && attempt->last_checkpoint.has_value();
  bool crashed = lost && !got_anywhere;
  m.record(AttemptOver{job.job.id, generation, exit, counted, crashed, m.now.wall});
  if (exit.kind == ExitRecord::Kind::success) m.troubles.erase(node);
  if (lost) note_trouble(m, node, job.job.id, exit.words);
  m.tell("job", "job " + job.job.name.str(),
         fmt::format("attempt {} on {} ended: {}", job.attempts, node.str(), exit.words));
  if (final) {
    Outcome outcome{*final, reason_of(m, job, got_anywhere, *final, exit), generation, m.now.wall};
    m.record(Finished{job.job.id, outcome, std::nullopt, {}});
  } else if (job.crashes >= most_crashes && job.wanted == Wanted::run) {
    std::string why = fmt::format("held: it took its supervisor along {} times in a row, without a "
                                  "checkpoint between; the last time: {}",
                                  job.crashes, exit.words);
    m.record(Finished{job.job.id, Outcome{JobState::stopped, why, generation, m.now.wall}, {}, {}});
  } else {
    pause_job(m, job, counted);
  }
}

std::uint64_t set_duty(Machine& m, const NodeName& node, Duty duty, const std::string& by,
                       const std::string& why) {
  m.duty_seq = m.record(DutySet{node, duty, by, why});
  m.troubles.erase(node);
  refresh_nodes(m);
  for (const JobId& id : m.placed_on[node])
    m.until_durable.emplace(m.duty_seq, id);
  return m.duty_seq;
}

void note_trouble(Machine& m, const NodeName& node, const JobId& job, const std::string& why) {
  NodeTrouble& trouble = m.troubles[node];
  trouble.jobs.insert(job);
  if (trouble.jobs.size() < most_troubles || m.desired.duties.contains(node)) return;
  // The last one that takes jobs is left: nothing could run at all.
  const auto& nodes = m.fleet.view().nodes;
  bool others = std::any_of(nodes.begin(), nodes.end(), [&](const auto& entry) {
    return entry.first != node && entry.second.status == NodeStatus::up &&
           entry.second.facts.may_run_jobs && m.fleet.is_ready(entry.first);
  });
  if (!others) return;
  std::string text = fmt::format("{} different jobs in a row could not run there, the last one: {}",
                                 trouble.jobs.size(), why);
  m.tell("node", "node " + node.str(),
         "is drained: " + text + "; `zedctl uncordon " + node.str() + "` ends that");
  set_duty(m, node, Duty::draining, "zed", text);
}

void on_attempt_report(Machine& m, const NodeName& node, const Attempt& attempt) {
  DesiredJob* job = m.desired.find(attempt.job);
  if (job == nullptr) {
    m.tell_once("unknown " + attempt.job.str(), "notice", "node " + node.str(),
                "runs a job that is not in the journal: " + attempt.dataset.str());
    return;
  }
  if (is_live(attempt) || !attempt.exit) return;
  if (job->placed && job->placed->generation == attempt.generation)
    end_placed(m, *job, *attempt.exit);
  else if (attempt.exit->kind == ExitRecord::Kind::success && !job->is_terminal())
    count_success(m, *job, node, attempt);
  m.look_at(attempt.job);
}

void acknowledge_ends(Machine& m, const JobId& id) {
  const DesiredJob* job = m.desired.find(id);
  if (job == nullptr || !m.journal.is_durable(job->changed_seq)) return;
  for (const NodeName& node : m.fleet.nodes_running(id)) {
    if (!m.fleet.is_connected(node)) continue;
    std::vector<Generation> ended;
    for (const Attempt& attempt : m.fleet.view().attempts.at(node))
      if (attempt.job == id && !is_live(attempt) && attempt.exit)
        ended.push_back(attempt.generation);
    for (const Generation& generation : ended) {
      if (job->placed && job->placed->generation == generation) continue;
      m.say(node, AckExit{id, generation});
      Observed seen;
      m.fleet.forget_attempt(node, id, generation, seen);
      m.place_due = true;
    }
  }
}

}  // namespace zed::controller
