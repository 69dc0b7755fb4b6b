#include "controller/records.hpp"

#include <algorithm>

namespace zed::controller {

const DesiredJob* DesiredState::find(const JobId& id) const {
  auto found = jobs.find(id);
  return found == jobs.end() ? nullptr : &found->second;
}

DesiredJob* DesiredState::find(const JobId& id) {
  auto found = jobs.find(id);
  return found == jobs.end() ? nullptr : &found->second;
}

namespace {

class Folder {
public:
  Folder(DesiredState& state, std::uint64_t seq) : state_(state), seq_(seq) {}

  void operator()(const TermBegan& r) {
    if (r.term <= state_.term) return;
    state_.term = r.term;
    state_.machine = r.machine;
    state_.counter = 0;
    ++state_.revision;
  }
  void operator()(const Joined& r) {
    if (r.node.empty() || !state_.members.emplace(r.node, r.id).second) return;
    ++state_.revision;
  }
  void operator()(const DutySet& r) {
    if (r.duty == Duty::none)
      state_.duties.erase(r.node);
    else
      state_.duties[r.node] = r.duty;
    ++state_.revision;
  }
  void operator()(const SecondChosen& r) { state_.second = r.node; }
  void operator()(const Applied& r) {
    state_.applied = r.file;
    ++state_.revision;
  }

  void operator()(const Submitted& r) {
    if (r.job.id.is_nil() || state_.jobs.contains(r.job.id)) return;
    DesiredJob job;
    job.job = r.job;
    job.by = r.by;
    job.submitted = r.at;
    job.submitted_seq = seq_;
    job.changed_seq = seq_;
    state_.by_name[r.job.name] = r.job.id;
    state_.jobs.emplace(r.job.id, std::move(job));
    ++state_.revision;
  }

  void operator()(const Placed& r) {
    DesiredJob* job = open_job(r.job);
    const Generation& generation = r.attempt.generation;
    if (job == nullptr || job->is_over() || generation <= job->last_generation) return;
    raise_counter(generation);
    job->placed = r.attempt;
    job->last_generation = generation;
    ++job->attempts;
    if (job->home.empty()) job->home = r.attempt.node;
    if (job->timeline.is_none()) job->timeline = generation;
    touch(*job);
  }

  void operator()(const Forked& r) {
    DesiredJob* job = open_job(r.fork.fork.job);
    if (job == nullptr || r.fork.fork.timeline <= job->last_generation) return;
    raise_counter(r.fork.fork.timeline);
    job->last_generation = r.fork.fork.timeline;
    turn(*job, r.fork);
    if (!r.home.empty()) job->home = r.home;
    job->placed.reset();
    job->moved_with.reset();
    job->had_checkpoint = r.fork.fork.from.has_value();
    // A node that was lost has lost its claim as well.
    if (r.fork.fork.why == Fork::Why::node_lost) job->only = NodeName{};
    touch(*job);
    job->safe_seq = seq_;
  }

  void operator()(const Moved& r) {
    DesiredJob* job = open_job(r.job);
    if (job == nullptr || job->placed || r.home.empty()) return;
    job->home = r.home;
    job->moved_with = r.closing_snapshot;
    touch(*job);
    job->safe_seq = seq_;
  }

  void operator()(const WantedSet& r) {
    DesiredJob* job = open_job(r.job);
    if (job == nullptr) return;
    job->wanted = r.wanted;
    job->wanted_why = r.why;
    if (r.wanted == Wanted::run) {
      job->only = r.only;
      job->failures = 0;
      job->outcome.reset();
    }
    touch(*job);
  }

  void operator()(const AttemptOver& r) {
    DesiredJob* job = open_job(r.job);
    if (job == nullptr || !job->placed || job->placed->generation != r.generation) return;
    job->placed.reset();
    job->ran += r.exit.ran;
    job->last_exit = r.exit.words;
    job->last_exit_at = r.at;
    if (r.counted) ++job->failures;
    touch(*job);
  }

  void operator()(const Finished& r) {
    DesiredJob* job = open_job(r.job);
    if (job == nullptr) return;
    job->outcome = r.outcome;
    job->placed.reset();
    if (r.back) turn(*job, *r.back);
    if (r.back || (!r.home.empty() && r.home != job->home)) job->safe_seq = seq_;
    if (!r.home.empty()) job->home = r.home;
    touch(*job);
  }

  void operator()(const FirstCheckpoint& r) {
    if (DesiredJob* job = state_.find(r.job)) job->had_checkpoint = true;
  }

  void operator()(const JobKept& r) {
    DesiredJob job = r.job;
    if (job.job.id.is_nil() || state_.jobs.contains(job.job.id)) return;
    job.changed_seq = job.safe_seq = seq_;
    auto named = state_.by_name.find(job.job.name);
    const DesiredJob* other = named == state_.by_name.end() ? nullptr : state_.find(named->second);
    if (other == nullptr || other->submitted_seq <= job.submitted_seq)
      state_.by_name[job.job.name] = job.job.id;
    state_.jobs.emplace(job.job.id, std::move(job));
  }

  void operator()(const Compacted& r) {
    state_.revision = r.revision;
    state_.counter = r.counter;
  }

private:
  /// The job, unless its state may never change again.
  DesiredJob* open_job(const JobId& id) {
    DesiredJob* job = state_.find(id);
    return job == nullptr || job->is_terminal() ? nullptr : job;
  }
  void raise_counter(const Generation& generation) {
    if (generation.term == state_.term)
      state_.counter = std::max(state_.counter, generation.counter);
  }
  static void turn(DesiredJob& job, const KnownFork& fork) {
    job.timeline = fork.fork.timeline;
    job.forks.push_back(fork);
    if (job.forks.size() > most_forks) job.forks.erase(job.forks.begin());
  }
  void touch(DesiredJob& job) {
    job.changed_seq = seq_;
    ++state_.revision;
  }

  DesiredState& state_;
  std::uint64_t seq_;
};

}  // namespace

void fold(DesiredState& state, const Record& record, std::uint64_t seq) {
  std::visit(Folder(state, seq), record);
}

std::vector<Record> compaction_of(const DesiredState& state) {
  std::vector<Record> records;
  records.push_back(TermBegan{state.term, state.machine, {}});
  for (const auto& [node, id] : state.members)
    records.push_back(Joined{node, id});
  for (const auto& [node, duty] : state.duties)
    records.push_back(DutySet{node, duty, {}});
  if (!state.second.empty()) records.push_back(SecondChosen{state.second});
  if (state.applied) records.push_back(Applied{*state.applied});
  for (const auto& [id, job] : state.jobs)
    records.push_back(JobKept{job});
  records.push_back(Compacted{state.revision, state.counter});
  return records;
}

}  // namespace zed::controller
