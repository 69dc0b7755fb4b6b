#include "controller/records.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "spec/cluster_file.hpp"

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

void make_absolute(std::optional<std::string>& path, const std::string& folder) {
  if (!path || path->starts_with('/') || folder.empty()) return;
  // "." and "./src" are how people write it, and not how it is told.
  std::string whole = std::filesystem::path(folder + "/" + *path).lexically_normal().string();
  while (whole.size() > 1 && whole.back() == '/')
    whole.pop_back();
  *path = std::move(whole);
}

/// What the text means. It was read without a fault when it was applied; another version of this
/// program may see it with other eyes.
void read_meaning(AppliedFile& file) {
  spec::Checked checked = spec::check(file.text);
  if (!checked.cluster) {
    file.fault = checked.diagnostics.empty() ? "it does not read" : checked.diagnostics[0].message;
    return;
  }
  file.cluster = std::move(*checked.cluster);
  resolve_paths(file.cluster, file.folder);
}

class Folder {
public:
  Folder(DesiredState& state, std::uint64_t seq, Reading reading)
      : state_(state), seq_(seq), reading_(reading) {}

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
  void operator()(const Forgotten& r) {
    if (state_.members.erase(r.node) == 0) return;
    state_.duties.erase(r.node);
    if (state_.second == r.node) state_.second = NodeName{};
    ++state_.revision;
  }
  void operator()(const DutySet& r) {
    if (r.duty == Duty::none)
      state_.duties.erase(r.node);
    else
      state_.duties[r.node] = NodeDuty{r.duty, r.by, r.why};
    ++state_.revision;
  }
  void operator()(const SecondChosen& r) { state_.second = r.node; }
  void operator()(const Uploaded& r) {
    if (r.part == 0) {
      state_.upload = r.upload;
      state_.uploaded.clear();
      state_.upload_parts = 0;
    }
    bool follows = r.upload == state_.upload && r.part == state_.upload_parts &&
                   state_.uploaded.size() + r.text.size() <= spec::largest_file;
    if (!follows) return;
    state_.uploaded += r.text;
    ++state_.upload_parts;
  }
  void operator()(const Applied& r) {
    AppliedFile file = r.file;
    if (!file.upload.empty()) {
      if (file.upload != state_.upload) return;
      file.text = std::exchange(state_.uploaded, {}) + file.text;
      state_.upload.clear();
      file.upload.clear();
    }
    if (reading_ == Reading::now) read_meaning(file);
    state_.applied = std::move(file);
    ++state_.revision;
  }

  void operator()(const Submitted& r) {
    if (r.job.id.is_nil() || state_.jobs.contains(r.job.id)) return;
    DesiredJob job;
    job.job = r.job;
    job.by = r.by;
    job.submitted = r.at;
    job.begins = r.begins;
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
    job->placed_at = r.attempt.at;
    job->unconfirmed = NodeName{};
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
    const bool progressed = r.fork.from_seq > (job->forks.empty() ? 0 : job->forks.back().from_seq);
    turn(*job, r.fork);
    if (!r.home.empty()) job->home = r.home;
    const bool was_placed = job->placed.has_value();
    if (was_placed) job->unconfirmed = job->placed->node;
    job->placed.reset();
    job->moved_with.reset();
    job->had_checkpoint = r.fork.fork.from.has_value();
    // A node that was lost has lost its claim as well; the job may be what killed it.
    if (r.fork.fork.why == Fork::Why::node_lost) {
      job->only = NodeName{};
      if (was_placed) job->crashes = progressed ? 1 : job->crashes + 1;
    }
    std::erase_if(state_.proposals, [&](const Proposal& proposal) {
      return proposal.fork.fork.job == r.fork.fork.job;
    });
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
      job->failures = job->crashes = job->evictions = 0;
      job->outcome.reset();
    }
    touch(*job);
  }

  void operator()(const Evicted& r) {
    DesiredJob* job = open_job(r.job);
    if (job == nullptr || !job->placed || job->placed->generation != r.generation ||
        !job->placed->evicted_for.is_nil() || r.for_job.is_nil())
      return;
    job->placed->evicted_for = r.for_job;
    job->placed->evicted = r.why;
    ++job->evictions;
    touch(*job);
  }

  void operator()(const AttemptOver& r) {
    DesiredJob* job = open_job(r.job);
    if (job == nullptr || !job->placed || job->placed->generation != r.generation) return;
    // A stop that another job was the reason of is told as that.
    job->last_exit = job->placed->evicted.empty() ? r.exit.words : "it " + job->placed->evicted;
    job->placed.reset();
    job->ran += r.exit.ran;
    job->last_exit_at = r.at;
    if (r.counted) ++job->failures;
    job->crashes = r.crashed ? job->crashes + 1 : 0;
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

  void operator()(const ExpirySet& r) {
    if (r.withdrawn)
      state_.expiries.erase(r.expiry.branch);
    else if (!r.expiry.branch.is_nil())
      state_.expiries[r.expiry.branch] = r.expiry;
  }
  void operator()(const ExpiryAnnounced& r) {
    auto expiry = state_.expiries.find(r.branch);
    if (expiry != state_.expiries.end()) expiry->second.announced = r.at;
  }
  void operator()(const Proposed& r) {
    if (state_.proposals.size() >= most_proposals) state_.proposals.erase(state_.proposals.begin());
    state_.proposals.push_back(r.proposal);
  }

  void operator()(const InputsPinned& r) {
    DesiredJob* job = open_job(r.job);
    if (job == nullptr) return;
    if (!job->job.content) job->job.content = r.content;
    auto& inputs = job->job.inputs;
    for (const Input& input : r.inputs)
      if (std::none_of(inputs.begin(), inputs.end(),
                       [&](const Input& known) { return known.dataset == input.dataset; }))
        inputs.push_back(input);
    touch(*job);
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
  Reading reading_;
};

}  // namespace

void resolve_paths(Cluster& cluster, const std::string& folder) {
  for (DeclaredModel& model : cluster.models)
    make_absolute(model.file, folder);
  for (DeclaredData& data : cluster.data)
    make_absolute(data.file, folder);
  for (Job& job : cluster.jobs)
    make_absolute(job.code, folder);
}

void fold(DesiredState& state, const Record& record, std::uint64_t seq, Reading reading) {
  std::visit(Folder(state, seq, reading), record);
}

std::vector<Record> records_of(AppliedFile file) {
  // JSON makes six bytes of a control character at worst.
  constexpr std::size_t piece = largest_record / 6 - 1024;
  std::vector<Record> records;
  if (file.text.size() <= piece) {
    records.emplace_back(Applied{std::move(file)});
    return records;
  }
  // Two files of the same moment are the same file.
  file.upload = std::to_string(file.at.ms) + "-" + std::to_string(file.text.size());
  for (std::size_t at = 0; at < file.text.size();) {
    std::size_t end = std::min(file.text.size(), at + piece);
    // Not within a character: each record is UTF-8 by itself.
    while (end < file.text.size() && end > at + 1 &&
           (static_cast<unsigned char>(file.text[end]) & 0xC0U) == 0x80U)
      --end;
    records.emplace_back(Uploaded{file.upload, records.size(), file.text.substr(at, end - at)});
    at = end;
  }
  file.text.clear();
  records.emplace_back(Applied{std::move(file)});
  return records;
}

std::vector<Record> compaction_of(const DesiredState& state) {
  std::vector<Record> records;
  records.push_back(TermBegan{state.term, state.machine, {}});
  for (const auto& [node, id] : state.members)
    records.push_back(Joined{node, id});
  for (const auto& [node, duty] : state.duties)
    records.push_back(DutySet{node, duty.duty, duty.by, duty.why});
  if (!state.second.empty()) records.push_back(SecondChosen{state.second});
  if (state.applied)
    for (Record& record : records_of(*state.applied))
      records.push_back(std::move(record));
  for (const auto& [branch, expiry] : state.expiries)
    records.push_back(ExpirySet{expiry, false});
  for (const Proposal& proposal : state.proposals)
    records.push_back(Proposed{proposal});
  for (const auto& [id, job] : state.jobs)
    records.push_back(JobKept{job});
  records.push_back(Compacted{state.revision, state.counter});
  return records;
}

}  // namespace zed::controller
