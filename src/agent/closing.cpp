// The end of attempts: closing snapshot, what the dataset says of it, inputs released.
//
// An attempt is ended when its exit record and its closing snapshot are durable; it is repeated to
// each controller until one says that the end is safe.

#include <algorithm>

#include "agent/attempt_parts.hpp"

namespace zed::agent {
namespace {

constexpr std::int64_t few_tries = 8;    ///< about two minutes
constexpr std::int64_t many_tries = 30;  ///< about half an hour

std::vector<Input> inputs_of(const env::LaunchRequest& launch) {
  std::vector<Input> inputs = launch.data;
  if (launch.model) inputs.push_back(*launch.model);
  if (launch.code) inputs.push_back(*launch.code);
  return inputs;
}

void release_inputs(Machine& m, const LiveAttempt& live) {
  for (const Input& input : inputs_of(live.launch)) {
    auto known = m.datasets.find(input.dataset);
    const Snapshot* snapshot =
        known != m.datasets.end() ? known->second.find(input.snapshot) : nullptr;
    if (snapshot != nullptr)
      release(m, input.dataset, snapshot->name, attempt_tag(live.attempt.generation));
  }
}

void finish_close(Machine& m, const AttemptKey& key, std::optional<CheckpointId> snapshot) {
  LiveAttempt* live = m.find_attempt(key);
  if (live == nullptr || live->has_ended()) return;
  live->attempt.closing_snapshot = snapshot;
  release_inputs(m, *live);
  set_phase(m, *live, AttemptPhase::ended);
  for (const Step& step : std::exchange(live->enders, {}))
    step->succeed(snapshot);
}

bool is_closing_of(const Snapshot& snapshot, const AttemptKey& key) {
  return snapshot.properties.count(property::closing) > 0 &&
         property_or_empty(&snapshot, property::generation) == key.generation.str() &&
         property_or_empty(&snapshot, property::job) == key.job.str();
}

/// It may be on a branch by now.
const Snapshot* find_closing(const Machine& m, const Dataset* there, const AttemptKey& key) {
  auto in = [&](const Dataset& dataset) -> const Snapshot* {
    for (const Snapshot& snapshot : dataset.snapshots)
      if (is_closing_of(snapshot, key)) return &snapshot;
    return nullptr;
  };
  if (there != nullptr)
    if (const Snapshot* found = in(*there)) return found;
  for (const auto& [name, dataset] : m.datasets)
    if (dataset.property(property::branch_of) == key.job.str())
      if (const Snapshot* found = in(dataset)) return found;
  return nullptr;
}

std::string closing_name(const Dataset& there, const Generation& generation) {
  std::string name = "closed-" + generation.brief();
  for (int n = 2; there.find(name) != nullptr; ++n)
    name = "closed-" + generation.brief() + "." + std::to_string(n);
  return name;
}

std::string_view status_after(ExitRecord::Kind kind) {
  switch (kind) {
  case ExitRecord::Kind::success: return to_string(JobState::succeeded);
  case ExitRecord::Kind::cancelled: return to_string(JobState::cancelled);
  case ExitRecord::Kind::stopped: return to_string(JobState::stopped);
  case ExitRecord::Kind::exit_code:
  case ExitRecord::Kind::signal:
  case ExitRecord::Kind::out_of_memory:
  case ExitRecord::Kind::timed_out:
  case ExitRecord::Kind::start_failed:
  case ExitRecord::Kind::supervisor_lost: break;
  }
  return to_string(JobState::failed);
}

bool is_success(const LiveAttempt& live) {
  return live.attempt.exit && live.attempt.exit->kind == ExitRecord::Kind::success;
}

/// A success counts only with its closing snapshot, so it waits for what may pass by itself for as
/// long as it takes; not for a folder that the job has removed, and not against a person's word.
bool gives_up(const LiveAttempt& live, ErrorCode why) {
  if (!is_success(live) || !live.enders.empty() || !is_retryable(why))
    return live.closing_tries >= few_tries;
  return why == ErrorCode::io && live.closing_tries >= many_tries;
}

void end_without_snapshot(Machine& m, LiveAttempt& live, const Error& why) {
  const AttemptKey key = live.key();
  m.notice(live.attempt.dataset.str(), "ended without a closing snapshot: " + why.describe());
  // Its result is nowhere: no success.
  if (is_success(live)) {
    live.attempt.exit->kind = ExitRecord::Kind::exit_code;
    live.attempt.exit->words =
        ("exited with 0, but its last files could not be kept: " + why.describe()).substr(0, 512);
  }
  finish_close(m, key, std::nullopt);
}

void close_later(Machine& m, const AttemptKey& key, const Error& why) {
  LiveAttempt* live = m.find_attempt(key);
  if (live == nullptr) return;
  ++live->closing_tries;
  if (gives_up(*live, why.code)) return end_without_snapshot(m, *live, why);
  if (live->closing_tries == 1)
    m.notice(live->attempt.dataset.str(), "no closing snapshot yet: " + why.describe());
  std::int64_t wait = std::int64_t{1} << std::min<std::int64_t>(live->closing_tries - 1, 6);
  m.after(std::min(seconds(wait), seconds(60)), [&m, key] { close(m, key); });
}

/// What the end of an attempt leaves on its dataset.
PropertyChanges closing_changes(const LiveAttempt& live) {
  const ExitRecord exit = live.attempt.exit.value_or(ExitRecord{});
  PropertyChanges changes{{property::status, std::string(status_after(exit.kind))},
                          {stop_asked, std::nullopt}};
  if (!exit.words.empty()) changes["reason"] = exit.words.substr(0, 512);
  return changes;
}

void settled(Machine& m, const Turn& turn, const AttemptKey& key, CheckpointId snapshot) {
  refresh(m, turn->dataset(), [&m, turn, key, snapshot] { finish_close(m, key, snapshot); });
}

/// The snapshot exists from an earlier try: nobody writes here any more, and the status says why.
void settle(Machine& m, const Turn& turn, const AttemptKey& key, CheckpointId snapshot) {
  LiveAttempt* live = m.find_attempt(key);
  if (live == nullptr) return;
  m.call(env::SetDatasetProperties{turn->dataset(), closing_changes(*live), true},
         [&m, turn, key, snapshot](StoreResult done) {
           if (!done) return close_later(m, key, done.error());
           settled(m, turn, key, snapshot);
         });
}

void take_closing(Machine& m, const Turn& turn, const AttemptKey& key, const Dataset& there) {
  LiveAttempt* live = m.find_attempt(key);
  if (live == nullptr) return;
  const Attempt& attempt = live->attempt;
  CheckpointId id = m.new_checkpoint_id();
  Properties properties{
      {property::id, id.str()},
      {property::job, attempt.job.str()},
      {property::generation, attempt.generation.str()},
      {property::timeline, attempt.timeline.str()},
      {property::closing, std::string(to_string(attempt.exit.value_or(ExitRecord{}).kind))}};
  add_origins(properties, live->launch);
  SnapshotName name{there.name, closing_name(there, attempt.generation)};
  m.call(env::TakeSnapshot{name, properties, closing_changes(*live)},
         [&m, turn, key, id](StoreResult taken) {
           if (!taken) return close_later(m, key, taken.error());
           settled(m, turn, key, id);
         });
}

/// A job says on its socket that it stops with work remaining, and then exits with 0. Its
/// supervisor does not hear that, and the agent that did may have died since: of an attempt that
/// this run did not see to its end, what an earlier run judged counts (the closing snapshot says
/// it), else an exit with 0 after the ask counts as stopped. Going on from the last checkpoint
/// costs little; counting unfinished work as success would not be undone.
void judge_unheard_stop(LiveAttempt& live, const Dataset& there, const Snapshot* closing) {
  ExitRecord& exit = *live.attempt.exit;
  if (!live.adopted || exit.kind != ExitRecord::Kind::success) return;
  const std::string judged = property_or_empty(closing, property::closing);
  const bool stopped = closing != nullptr
                           ? judged != to_string(ExitRecord::Kind::success)
                           : there.property(stop_asked) == live.attempt.generation.str();
  if (!stopped) return;
  exit.kind = enum_of<ExitRecord::Kind>(judged).value_or(ExitRecord::Kind::stopped);
  exit.words = "stopped as asked";
}

void close_in_turn(Machine& m, const Turn& turn, const AttemptKey& key, StoreResult reply) {
  LiveAttempt* live = m.find_attempt(key);
  if (live == nullptr || live->has_ended()) return;
  auto there = reply_as<Dataset>(std::move(reply));
  if (!there && there.error().code != ErrorCode::not_found)
    return close_later(m, key, there.error());
  const Snapshot* closing = find_closing(m, there ? &*there : nullptr, key);
  if (there || closing != nullptr) judge_unheard_stop(*live, there ? *there : Dataset{}, closing);
  const auto existing = closing != nullptr ? std::optional(closing->id) : std::nullopt;
  bool ours = there && there->uuid.bytes == key.job.bytes &&
              there->generation().value_or(Generation{}) <= key.generation;
  if (!ours) return finish_close(m, key, existing);
  if (existing) return settle(m, turn, key, *existing);
  take_closing(m, turn, key, *there);
}

}  // namespace

void close(Machine& m, const AttemptKey& key) {
  LiveAttempt* live = m.find_attempt(key);
  if (live == nullptr || live->has_ended()) return;
  DatasetName name = live->attempt.dataset;
  bool queued = m.take_turn(name, [&m, key, name](Turn turn) {
    m.call(env::InspectDataset{name},
           [&m, turn, key](StoreResult reply) { close_in_turn(m, turn, key, std::move(reply)); });
  });
  if (!queued) m.after(seconds(1), [&m, key] { close(m, key); });
}

void close_found_attempts(Machine& m) {
  std::vector<AttemptKey> closing;
  for (auto& [key, live] : m.attempts) {
    if (live.attempt.phase == AttemptPhase::closing) closing.push_back(key);
    auto known = m.datasets.find(live.attempt.dataset);
    if (known == m.datasets.end()) continue;
    if (const Snapshot* newest = known->second.newest_checkpoint())
      live.attempt.last_checkpoint = newest->id;
  }
  for (const AttemptKey& key : closing)
    close(m, key);
}

}  // namespace zed::agent
