#include "sim/invariants.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace zed::sim {
namespace {

std::string short_id(const std::string& hex) {
  return hex.substr(0, 6);
}

}  // namespace

Violation Invariants::check() {
  if (world_.broken) return world_.broken;
  read_touched();
  struct Named {
    std::string_view name;
    Violation (Invariants::*check)();
  };
  static constexpr Named all[] = {
      {"gpu_has_one_live_attempt", &Invariants::gpu_has_one_live_attempt},
      {"generations_only_grow", &Invariants::generations_only_grow},
      {"abandoned_timeline_is_never_resumed", &Invariants::abandoned_timeline_is_never_resumed},
      {"timelines_never_mix", &Invariants::timelines_never_mix},
      {"checkpoints_are_whole", &Invariants::checkpoints_are_whole},
      {"snapshots_never_change", &Invariants::snapshots_never_change},
      {"last_copy_goes_only_by_name", &Invariants::last_copy_goes_only_by_name},
      {"keep_spares_what_must_stay", &Invariants::keep_spares_what_must_stay},
      {"exclusive_runs_alone", &Invariants::exclusive_runs_alone},
      {"promises_are_kept", &Invariants::promises_are_kept},
      {"success_is_counted_by_the_rule", &Invariants::success_is_counted_by_the_rule},
      {"terminal_state_never_changes", &Invariants::terminal_state_never_changes},
  };
  for (const Named& invariant : all)
    if (Violation wrong = (this->*invariant.check)())
      return fmt::format("{}: {}", invariant.name, *wrong);
  changed_.clear();
  return std::nullopt;
}

void Invariants::read_touched() {
  for (std::size_t machine : world_.take_touched()) {
    Content content;
    if (!world_.machine(machine).disk_lost)
      for (Dataset& dataset : world_.machine(machine).disk.look_at_all())
        content.emplace(dataset.name, std::move(dataset));
    contents_[machine] = std::move(content);
    changed_.insert(machine);
  }
}

Violation Invariants::gpu_has_one_live_attempt() {
  for (std::size_t m = 0; m < world_.machine_count(); ++m) {
    std::map<std::string, Generation> held;
    for (const auto& job : world_.machine(m).live_jobs()) {
      const Attempt& attempt = job->launch().attempt;
      for (const std::string& gpu : attempt.gpus) {
        auto [other, free] = held.emplace(gpu, attempt.generation);
        if (!free)
          return fmt::format("{} on {} is held by {} and {}", gpu, world_.machine(m).name.str(),
                             other->second.brief(), attempt.generation.brief());
      }
    }
  }
  return std::nullopt;
}

/// A success behind a partition makes its timeline current again: copies that had left it return to
/// it, and so to its older generation. Nothing starts there any more.
bool Invariants::returned_to_success(const Dataset& dataset) const {
  auto end = world_.history.terminal.find(JobId{dataset.uuid.bytes});
  return end != world_.history.terminal.end() && end->second.state == JobState::succeeded &&
         dataset.generation() == end->second.generation;
}

Violation Invariants::generations_only_grow() {
  const History& history = world_.history;
  for (std::size_t i = launched_seen_; i < history.launched.size(); ++i) {
    const LaunchedAttempt& launched = history.launched[i];
    Generation& last = launched_generations_[{launched.machine, launched.job}];
    if (launched.generation <= last)
      return fmt::format("{} starts generation {} of job {} after {}",
                         world_.machine(launched.machine).name.str(), launched.generation.brief(),
                         short_id(launched.job.str()), last.brief());
    last = launched.generation;
  }
  for (std::size_t i = ordered_seen_; i < history.ordered.size(); ++i) {
    const OrderedStart& ordered = history.ordered[i];
    Generation& last = ordered_generations_[ordered.job];
    // A controller of an older term that is cut off may still order under its own.
    if (ordered.generation.term == last.term && ordered.generation < last)
      return fmt::format("generation {} of job {} is ordered after {}", ordered.generation.brief(),
                         short_id(ordered.job.str()), last.brief());
    last = std::max(last, ordered.generation);
  }
  for (std::size_t machine : changed_)
    for (const auto& [name, dataset] : contents_[machine]) {
      auto generation = dataset.generation();
      if (!generation || dataset.property(property::type) != "job") continue;
      Generation& last = dataset_generations_[{machine, dataset.uuid}];
      if (*generation < last && !returned_to_success(dataset))
        return fmt::format("{} on {} goes back from generation {} to {}", name.str(),
                           world_.machine(machine).name.str(), last.brief(), generation->brief());
      last = *generation;
    }
  return std::nullopt;
}

Violation Invariants::abandoned_timeline_is_never_resumed() {
  const History& history = world_.history;
  for (; ordered_seen_ < history.ordered.size(); ++ordered_seen_) {
    const OrderedStart& ordered = history.ordered[ordered_seen_];
    auto forks = history.forks.find(ordered.job);
    if (forks == history.forks.end()) continue;
    // A later fork that begins the same timeline (the return to one that succeeded) undoes it.
    bool left = false;
    for (const KnownFork& fork : forks->second) {
      if (fork.term > ordered.term) continue;
      if (fork.fork.left == ordered.timeline) left = true;
      if (fork.fork.timeline == ordered.timeline) left = false;
    }
    if (left)
      return fmt::format("generation {} of job {} is ordered on timeline {}, which a fork has left",
                         ordered.generation.brief(), short_id(ordered.job.str()),
                         ordered.timeline.brief());
  }
  for (; launched_seen_ < history.launched.size(); ++launched_seen_) {
    const LaunchedAttempt& launched = history.launched[launched_seen_];
    if (world_.machine(launched.machine).disk_lost) continue;
    const Content& content = contents_[launched.machine];
    for (const auto& [name, dataset] : content)
      if (dataset.uuid.bytes == launched.job.bytes && dataset.timeline() != launched.timeline)
        return fmt::format("generation {} starts on timeline {} in {}, which is on {}",
                           launched.generation.brief(), launched.timeline.brief(), name.str(),
                           dataset.timeline() ? dataset.timeline()->brief() : "none");
  }
  return std::nullopt;
}

// ---- files --------------------------------------------------------------------------------------

bool Invariants::may_begin_with(const JobId& job, const Timeline& timeline,
                                const std::vector<EpochLine>& prefix, bool may_be_behind) const {
  // A job's first timeline begins with nothing.
  if (prefix.empty()) return true;
  auto forks = world_.history.forks.find(job);
  if (forks == world_.history.forks.end()) return false;
  for (const KnownFork& known : forks->second) {
    if (known.fork.timeline != timeline || !known.fork.from) continue;
    auto from = world_.history.snapshots.find(*known.fork.from);
    if (from == world_.history.snapshots.end()) continue;
    auto state = from->second.files.find("state");
    const std::string text = state == from->second.files.end() ? "" : state->second;
    const std::string begins = write_state(prefix);
    if (text == begins || (may_be_behind && text.rfind(begins, 0) == 0)) return true;
  }
  return false;
}

Violation Invariants::lines_fit_timeline(const JobId& job, const Timeline& timeline,
                                         const std::string& state, const std::string& where,
                                         bool is_replica) const {
  auto lines = read_state(state);
  if (!lines) return fmt::format("the state in {} is torn", where);
  std::vector<EpochLine> prefix = std::move(*lines);
  const std::string own = timeline.str();
  while (!prefix.empty() && prefix.back().timeline == own)
    prefix.pop_back();
  // A copy on its way to a new holder begins with the oldest snapshot: it is behind the fork.
  const bool may_be_behind = is_replica && prefix.size() == read_state(state)->size();
  if (may_begin_with(job, timeline, prefix, may_be_behind)) return std::nullopt;
  return fmt::format("{} is on timeline {}, but holds {} epochs that end on {}", where,
                     timeline.brief(), prefix.size(),
                     Generation::parse(prefix.back().timeline).value_or(Generation{}).brief());
}

Violation Invariants::mix_in(std::size_t machine, const Dataset& dataset) const {
  const auto timeline = dataset.timeline();
  if (!timeline || dataset.receiving) return std::nullopt;
  const Disk& disk = world_.machine(machine).disk;
  const std::string where =
      fmt::format("{} on {}", dataset.name.str(), world_.machine(machine).name.str());
  auto files = disk.live_files(dataset.name);
  auto state = files.find("state");
  if (state == files.end()) return std::nullopt;
  // The clone of a fork is writable for a moment on a replica as well.
  const bool is_replica =
      dataset.readonly || dataset.property(property::home) != world_.machine(machine).name.str();
  return lines_fit_timeline(JobId{dataset.uuid.bytes}, *timeline, state->second, where, is_replica);
}

Violation Invariants::timelines_never_mix() {
  for (std::size_t machine : changed_)
    for (const auto& [name, dataset] : contents_[machine])
      if (dataset.property(property::type) == "job")
        if (Violation wrong = mix_in(machine, dataset)) return wrong;
  return std::nullopt;
}

Violation Invariants::checkpoints_are_whole() {
  for (const auto& [id, committed] : world_.history.committed) {
    if (!known_whole_.insert(id).second) continue;
    const std::string where = fmt::format("{}@{} ({})", committed.dataset.str(),
                                          committed.snapshot.name, short_id(id.str()));
    auto timeline = committed.snapshot.timeline();
    if (!timeline) return where + " names no timeline";
    auto state = committed.files.find("state");
    auto epoch = committed.snapshot.properties.find(property::epoch);
    const bool of_epoch = epoch != committed.snapshot.properties.end();
    // A job that does not speak is frozen at any moment, before its first epoch too.
    if (state == committed.files.end() && !of_epoch) continue;
    if (state == committed.files.end()) return where + " has no state";
    if (Violation wrong = lines_fit_timeline(committed.job, *timeline, state->second, where, false))
      return wrong;
    if (!of_epoch) continue;
    const std::int64_t number = std::strtoll(epoch->second.c_str(), nullptr, 10);
    auto weights = committed.files.find("weights-" + epoch->second);
    auto lines = read_state(state->second);
    if (weights == committed.files.end() || !lines ||
        number > static_cast<std::int64_t>(lines->size()) ||
        weights->second != weights_of(*lines, number))
      return where + " is not whole: its weights are missing or of another state";
  }
  return std::nullopt;
}

Violation Invariants::snapshots_never_change() {
  for (std::size_t machine : changed_)
    for (const auto& [name, dataset] : contents_[machine])
      for (const Snapshot& snapshot : dataset.snapshots) {
        auto original = world_.history.snapshots.find(snapshot.id);
        if (original == world_.history.snapshots.end()) continue;
        const std::string key = fmt::format("{}@{} {}", name.str(), snapshot.name, snapshot.guid);
        if (!compared_.emplace(machine, key).second) continue;
        auto full = SnapshotName::of(name, snapshot.name);
        const std::string where =
            fmt::format("{} on {}", full->str(), world_.machine(machine).name.str());
        if (world_.machine(machine).disk.snapshot_files(*full) != original->second.files)
          return where + " has other files than when it was made";
        // One that a person took carries no id where it was made, and its own elsewhere.
        Properties made = original->second.snapshot.properties;
        if (snapshot.properties.contains(property::id)) made[property::id] = snapshot.id.str();
        if (snapshot.properties != made)
          return where + " has other properties than when it was made";
      }
  return std::nullopt;
}

bool Invariants::was_discarded(const Committed& committed) const {
  auto forks = world_.history.forks.find(committed.job);
  if (forks == world_.history.forks.end()) return false;
  return std::any_of(forks->second.begin(), forks->second.end(), [&](const KnownFork& known) {
    return known.fork.discard && committed.snapshot.timeline() == known.fork.left;
  });
}

Violation Invariants::last_copy_goes_only_by_name() {
  if (changed_.empty()) return std::nullopt;
  std::set<CheckpointId> here;
  for (const auto& [machine, content] : contents_)
    for (const auto& [name, dataset] : content)
      for (const Snapshot& snapshot : dataset.snapshots)
        here.insert(snapshot.id);
  for (const auto& [id, committed] : world_.history.committed) {
    if (here.contains(id) || world_.history.may_be_gone.contains(id)) continue;
    if (was_discarded(committed)) continue;
    return fmt::format("{}@{} ({}) is nowhere any more, and nobody asked for that",
                       committed.dataset.str(), committed.snapshot.name, short_id(id.str()));
  }
  return std::nullopt;
}

}  // namespace zed::sim
