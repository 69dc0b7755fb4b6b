// Attempts: launch, adoption, stop, exit, closing snapshot, acknowledgement.
//
// A GPU is reserved at the moment an order to start is taken, and free again when every process of
// the attempt is gone. An attempt is ended when its exit record and its closing snapshot are
// durable; it is repeated to each controller until one says that the end is safe.

#include <algorithm>
#include <set>

#include "agent/matters.hpp"
#include "base/text.hpp"

namespace zed::agent {
namespace {

constexpr Millis stop_patience = seconds(60);  // for the checkpoint that a stop asks for
constexpr Millis repeat_stop = seconds(15);    // beyond the grace
constexpr std::size_t most_attempts = 1024;    // live or not acknowledged
constexpr std::int64_t closing_tries_of_a_failure = 8;
constexpr char stop_asked[] = "stop_asked";  // generation whose job was asked to stop

Error refusal(ErrorCode code, std::string why, std::string hint = "the controller plans again") {
  return Error{code, std::move(why), {}, std::move(hint)};
}

/// "rtx4090" of "NVIDIA GeForce RTX 4090", for the property that people read.
std::string short_gpu_name(const std::string& model) {
  std::string name;
  for (const std::string& word : split(lower(model), ' '))
    if (word != "nvidia" && word != "geforce" && word != "amd" && word != "apple") name += word;
  return name;
}

const Gpu* find_gpu(const Machine& m, const std::string& uuid) {
  for (const Gpu& gpu : m.gpus)
    if (gpu.uuid == uuid) return &gpu;
  return nullptr;
}

Status check_gpu(const Machine& m, const StartAttempt& action, const std::string& uuid) {
  const Gpu* gpu = find_gpu(m, uuid);
  if (gpu == nullptr)
    return fail(ErrorCode::unavailable, "GPU " + uuid + " is not on node " + m.name.str());
  if (!is_schedulable(gpu->health))
    return fail(ErrorCode::unavailable, "GPU " + uuid + " takes no jobs: " + gpu->why);
  Bytes shared = action.vram;
  for (const auto& [key, live] : m.attempts) {
    const Attempt& other = live.attempt;
    bool holds = live.has_processes() &&
                 std::find(other.gpus.begin(), other.gpus.end(), uuid) != other.gpus.end();
    if (!holds) continue;
    if (!other.share || !action.job.requirement.share)
      return fail(ErrorCode::busy,
                  "GPU " + uuid + " is held by generation " + key.generation.brief());
    shared += other.vram;
  }
  if (action.job.requirement.share && shared > gpu->vram_reported - gpu->vram_reserved)
    return fail(ErrorCode::busy, "GPU " + uuid + " has no " + show(action.vram) + " left to share");
  return {};
}

/// The place that an attempt takes from the order until its launch; given back if that never comes.
class Reservation {
public:
  Reservation(Machine& m, AttemptKey key) : m_(m), key_(key) {}
  ~Reservation() {
    if (kept_ || m_.closing_down) return;
    auto gone = m_.attempts.extract(key_);
    if (gone.empty()) return;
    for (const Step& step : gone.mapped().enders)
      step->succeed();
    for (const LiveAttempt::Asker& asker : gone.mapped().askers)
      asker.step->fail(refusal(ErrorCode::stale, "the attempt did not start"));
  }
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  void keep() { kept_ = true; }

private:
  Machine& m_;
  AttemptKey key_;
  bool kept_ = false;
};

struct Start {
  Step step;
  StartAttempt action;
  std::shared_ptr<Reservation> reservation;
  Turn turn;
  Dataset dataset;
  std::vector<Input> to_hold;
  Instant since;  ///< of the order
  AttemptKey key() const { return {action.job.id, action.generation}; }
  void fail(Error error) const { step->fail(std::move(error)); }
};

bool has_closing_of(const Dataset& dataset, const Generation& least) {
  return std::any_of(dataset.snapshots.begin(), dataset.snapshots.end(), [&](const Snapshot& s) {
    auto generation = s.properties.find(property::generation);
    if (s.properties.count(property::closing) == 0 || generation == s.properties.end())
      return false;
    auto parsed = Generation::parse(generation->second);
    return parsed && *parsed >= least;
  });
}

Status check_dataset(const Machine& m, const StartAttempt& action, const Dataset& there) {
  const std::string name = there.name.str();
  auto stale = [](std::string why) { return fail(refusal(ErrorCode::stale, std::move(why))); };
  if (there.uuid.bytes != action.job.id.bytes)
    return stale(name + " is not the dataset of job " + action.job.name.str());
  if (there.property(property::home) != m.name.str())
    return stale("the home of " + name + " is \"" + there.property(property::home) + "\", not " +
                 m.name.str());
  if (there.timeline().value_or(Timeline{}) != action.timeline)
    return stale(name + " is on another timeline");
  if (there.generation().value_or(Generation{}) > action.generation)
    return stale(name + " has a newer generation");
  if (has_closing_of(there, action.generation))
    return stale("generation " + action.generation.brief() + " of " + name + " has ended already");
  if (was_rolled_back(m, there))
    return stale(name + " was rolled back by hand: the fork must be recorded first");
  if (there.receiving || m.is_forking(there.name))
    return fail(refusal(ErrorCode::busy, name + " is being received or forked"));
  return {};
}

PropertyChanges start_properties(const Machine& m, const StartAttempt& action) {
  PropertyChanges changes{
      {property::generation, action.generation.str()},
      {property::status, std::string(to_string(JobState::running))},
      {"node", m.name.str()},
      {"gpus", join(action.gpus, ",")},
      {"started", to_iso8601(m.now.wall)},
      {"attempt", std::to_string(action.number)},
      {"reason", std::nullopt},
      {stop_asked, std::nullopt},
  };
  const Gpu* gpu = action.gpus.empty() ? nullptr : find_gpu(m, action.gpus.front());
  changes["gpu"] = gpu != nullptr ? std::optional(short_gpu_name(gpu->model)) : std::nullopt;
  if (action.job.model) changes["model"] = action.job.model->str();
  return changes;
}

std::string property_or_empty(const Snapshot* snapshot, const char* name) {
  if (snapshot == nullptr) return {};
  auto found = snapshot->properties.find(name);
  return found == snapshot->properties.end() ? std::string() : found->second;
}

env::LaunchRequest launch_request(const Machine& m, const StartAttempt& action,
                                  const Dataset& there, const Attempt& attempt) {
  env::LaunchRequest launch;
  launch.attempt = attempt;
  launch.job_name = action.job.name;
  launch.argv = action.job.argv;
  launch.env = action.job.env;
  const Snapshot* newest = there.newest_checkpoint();
  launch.env["ZED_JOB"] = action.job.name.str();
  launch.env["ZED_ATTEMPT"] = std::to_string(action.number);
  launch.env["ZED_GENERATION"] = action.generation.str();
  // A job that begins with another's checkpoint has these from its controller, until it has its
  // own.
  auto set = [&](const char* key, const std::string& value) {
    if (newest != nullptr) launch.env[key] = value;
    launch.env.emplace(key, "");
  };
  set("ZED_CHECKPOINT", newest != nullptr ? newest->name : "");
  set("ZED_CHECKPOINT_EPOCH", property_or_empty(newest, property::epoch));
  set("ZED_CHECKPOINT_STEP", property_or_empty(newest, property::step));
  launch.env["ZED_CHECKPOINT_EVERY"] = text_of(action.job.checkpoint_policy);
  launch.env.emplace("ZED_SKIP_BATCHES", "0");
  launch.model = action.model;
  launch.data = action.data;
  launch.code = action.code;
  launch.visible_gpus = action.gpus;
  const Gpu* gpu = action.gpus.empty() ? nullptr : find_gpu(m, action.gpus.front());
  launch.vendor = gpu != nullptr ? gpu->vendor : GpuVendor::other;
  launch.grace = action.job.grace;
  launch.time_left = action.time_left;
  launch.lease = action.lease;
  launch.run_as = action.run_as;
  return launch;
}

std::string attempt_tag(const Generation& generation) {
  return "attempt." + generation.str();
}

void signal_processes(Machine& m, LiveAttempt& live) {
  Stopping& stopping = *live.stopping;
  stopping.signalled = true;
  stopping.next = m.now.monotonic + live.launch.grace + repeat_stop;
  m.emit(StopProcesses{live.attempt.job, live.attempt.generation, stopping.mode});
}

void started(Machine& m, const AttemptKey& key, const Step& step, const Status& result) {
  step->succeed();  // the attempt exists; what became of it is in its reports
  LiveAttempt* live = m.find_attempt(key);
  if (live == nullptr || live->attempt.phase >= AttemptPhase::closing) return;
  if (!result) {
    ExitRecord exit;
    exit.kind = ExitRecord::Kind::start_failed;
    exit.words = "could not be started: " + result.error().describe();
    exit.ended = m.now.wall;
    return attempt_exited(m, AttemptExited{key.job, key.generation, exit});
  }
  if (live->stopping) return signal_processes(m, *live);
  if (live->attempt.phase == AttemptPhase::starting) set_phase(m, *live, AttemptPhase::running);
}

void launch(Machine& m, const std::shared_ptr<Start>& start) {
  LiveAttempt* live = m.find_attempt(start->key());
  if (live == nullptr || live->stopping)
    return start->fail(refusal(ErrorCode::cancelled, "the attempt was stopped before it started"));
  live->launch = launch_request(m, start->action, start->dataset, live->attempt);
  if (auto& lease = live->launch.lease) {
    // It counts from the order on: nobody waits longer for an attempt that was long in preparation.
    lease = *lease - (m.now.monotonic - start->since);
    if (*lease <= Millis{0})
      return start->fail(refusal(ErrorCode::timeout, "its lease ended before it could start"));
  }
  live->launched = true;
  live->every = period_of(live->launch.env["ZED_CHECKPOINT_EVERY"]);
  if (live->every) live->next_timed = m.now.monotonic + *live->every;
  start->reservation->keep();
  EffectId id = m.expect_status([&m, key = start->key(), step = start->step](Status result) {
    started(m, key, step, result);
  });
  m.emit(LaunchAttempt{id, live->launch});
  report(m, *live);
}

/// The submitted code, once a job: its snapshot tells of any checkpoint which code made it.
void unpack_code(Machine& m, const std::shared_ptr<Start>& start) {
  if (!start->action.code || !start->dataset.snapshots.empty()) return launch(m, start);
  DatasetName name = start->dataset.name;
  EffectId id = m.expect_status([&m, start, name](Status unpacked) {
    if (!unpacked) return start->fail(unpacked.error());
    Properties properties{{property::id, CheckpointId{m.ids.next()}.str()},
                          {property::job, start->action.job.id.str()},
                          {property::timeline, start->action.timeline.str()},
                          {property::generation, start->action.generation.str()}};
    m.call(env::TakeSnapshot{SnapshotName{name, property::submitted}, properties},
           [&m, start, name](StoreResult taken) {
             if (!taken) return start->fail(taken.error());
             refresh(m, name, [&m, start] { launch(m, start); });
           });
  });
  m.emit(UnpackCode{id, name, *start->action.code});
}

void hold_inputs(Machine& m, const std::shared_ptr<Start>& start) {
  if (start->to_hold.empty()) return unpack_code(m, start);
  Input input = start->to_hold.back();
  start->to_hold.pop_back();
  bool queued = m.take_turn(input.dataset, [&m, start, input](Turn turn) {
    auto known = m.datasets.find(input.dataset);
    const Snapshot* snapshot =
        known != m.datasets.end() ? known->second.find(input.snapshot) : nullptr;
    if (snapshot == nullptr)
      return start->fail(refusal(ErrorCode::not_found,
                                 "input " + input.dataset.str() + " is not on " + m.name.str()));
    hold(m, turn, snapshot->name, attempt_tag(start->action.generation),
         [&m, start, turn](Status held) {
           if (!held) return start->fail(held.error());
           hold_inputs(m, start);
         });
  });
  if (!queued) start->fail(refusal(ErrorCode::busy, input.dataset.str() + " is busy"));
}

/// The generation, so that older attempts are fenced, and not before it writable; then inputs.
void prepare(Machine& m, const std::shared_ptr<Start>& start) {
  DatasetName name = start->dataset.name;
  PropertyChanges changes = start_properties(m, start->action);
  m.call(env::SetDatasetProperties{name, changes, false}, [&m, start, name](StoreResult set) {
    if (!set) return start->fail(set.error());
    refresh(m, name, [&m, start] { hold_inputs(m, start); });
  });
}

Status check_start(Machine& m, const StartAttempt& action) {
  if (!m.facts.may_run_jobs)
    return fail(refusal(ErrorCode::refused, m.name.str() + " runs no jobs"));
  if (m.attempts.size() >= most_attempts)
    return fail(refusal(ErrorCode::busy, "too many attempts are not acknowledged yet"));
  if (const LiveAttempt* other = m.live_attempt(action.job.id)) {
    bool older = other->attempt.generation < action.generation;
    return fail(refusal(older ? ErrorCode::busy : ErrorCode::stale,
                        "generation " + other->attempt.generation.brief() + " of job " +
                            action.job.name.str() + " has not ended here"));
  }
  return check_gpus(m, action);
}

LiveAttempt new_attempt(const Machine& m, const StartAttempt& action) {
  LiveAttempt live;
  live.attempt.job = action.job.id;
  live.attempt.generation = action.generation;
  live.attempt.timeline = action.timeline;
  live.attempt.number = action.number;
  live.attempt.dataset = action.job.dataset;
  live.attempt.gpus = action.gpus;
  live.attempt.share = action.job.requirement.share;
  live.attempt.vram = action.vram;
  live.attempt.since = m.now.wall;
  return live;
}

// ---- the end of an attempt ----

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

void close(Machine& m, const AttemptKey& key);

void close_later(Machine& m, const AttemptKey& key, const Error& why) {
  LiveAttempt* live = m.find_attempt(key);
  if (live == nullptr) return;
  ++live->closing_tries;
  bool success = live->attempt.exit && live->attempt.exit->kind == ExitRecord::Kind::success;
  if (live->closing_tries >= closing_tries_of_a_failure && !success) {
    m.notice(live->attempt.dataset.str(), "ended without a closing snapshot: " + why.describe());
    return finish_close(m, key, std::nullopt);
  }
  // A success counts only with its closing snapshot, so it waits for as long as it takes.
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

/// Whether it is being stopped by asking, and there is somebody to ask.
bool may_be_asked(const LiveAttempt& live) {
  return live.has_processes() && live.connection && live.stopping &&
         live.stopping->mode == StopMode::stop && !live.stopping->signalled;
}

}  // namespace

void leave_broken_gpus(Machine& m) {
  for (auto& [key, live] : m.attempts) {
    if (!live.has_processes()) continue;
    for (const std::string& uuid : live.attempt.gpus) {
      const Gpu* gpu = find_gpu(m, uuid);
      bool broken = gpu != nullptr &&
                    (gpu->health == GpuHealth::lost || gpu->health == GpuHealth::reset_required);
      if (!broken) continue;
      std::string why = "GPU " + uuid + " is " + std::string(to_string(gpu->health));
      if (!gpu->why.empty()) why += ": " + gpu->why;
      m.notice(live.attempt.dataset.str(), why + "; its job ends here and goes on elsewhere");
      live.gpu_trouble = why;
      stop_live(m, live, StopMode::halt, why);
      break;
    }
  }
}

Status check_gpus(const Machine& m, const StartAttempt& action) {
  std::set<std::string> distinct(action.gpus.begin(), action.gpus.end());
  if (distinct.size() != action.gpus.size())
    return fail(ErrorCode::invalid, "the step names a GPU twice");
  for (const std::string& uuid : action.gpus)
    ZED_CHECK(check_gpu(m, action, uuid));
  return {};
}

void adopt_attempts(Machine& m, const std::vector<env::FoundAttempt>& found) {
  for (const env::FoundAttempt& one : found) {
    LiveAttempt live;
    live.attempt = one.launch.attempt;
    live.launch = one.launch;
    live.launched = true;
    live.adopted = true;
    live.attempt.exit = one.exit;
    live.attempt.since = m.now.wall;
    auto every = one.launch.env.find("ZED_CHECKPOINT_EVERY");
    if (every != one.launch.env.end()) live.every = period_of(every->second);
    if (live.every) live.next_timed = m.now.monotonic + *live.every;
    const JobId job = live.attempt.job;
    const Generation generation = live.attempt.generation;
    if (one.exit) {
      live.attempt.phase = AttemptPhase::closing;
    } else if (one.supervisor_alive) {
      live.attempt.phase = AttemptPhase::running;
      // It may have been frozen when the earlier run ended.
      m.emit(FreezeProcesses{job, generation, false, 0});
    } else {
      live.attempt.phase = AttemptPhase::stopping;
      live.orphaned = true;
      live.stopping = Stopping{StopMode::halt, "its supervisor was lost", false, {}};
      signal_processes(m, live);
    }
    m.attempts.emplace(AttemptKey{job, generation}, std::move(live));
  }
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

void start_attempt(Machine& m, const Step& step, const StartAttempt& action) {
  AttemptKey key{action.job.id, action.generation};
  if (const LiveAttempt* same = m.find_attempt(key)) {
    if (same->launched) return step->succeed();
    return step->fail(refusal(ErrorCode::busy, "the attempt is being started"));
  }
  if (auto possible = check_start(m, action); !possible) return step->fail(possible.error());
  m.attempts.emplace(key, new_attempt(m, action));
  auto start = std::make_shared<Start>();
  start->step = step;
  start->action = action;
  start->since = m.now.monotonic;
  start->reservation = std::make_shared<Reservation>(m, key);
  start->to_hold = action.data;
  if (action.model) start->to_hold.push_back(*action.model);
  if (action.code) start->to_hold.push_back(*action.code);
  with_checked(m, step, action.job.dataset, [&m, start](Turn turn, std::optional<Dataset> there) {
    if (!there)
      return start->fail(
          refusal(ErrorCode::not_found, "no dataset " + start->action.job.dataset.str() + " here"));
    if (auto fit = check_dataset(m, start->action, *there); !fit) return start->fail(fit.error());
    start->turn = std::move(turn);
    start->dataset = std::move(*there);
    prepare(m, start);
  });
}

void stop_attempt(Machine& m, const Step& step, const StopAttempt& action) {
  LiveAttempt* live = m.live_attempt(action.job);
  if (live == nullptr || live->attempt.generation > action.generation) return step->succeed();
  live->enders.push_back(step);
  stop_live(m, *live, action.mode, action.reason);
}

void ask_to_stop(Machine& m, const LiveAttempt& live) {
  DatasetName name = live.attempt.dataset;
  AttemptKey key = live.key();
  auto again = [&m, key] {
    if (const LiveAttempt* attempt = m.find_attempt(key);
        attempt != nullptr && may_be_asked(*attempt))
      ask_to_stop(m, *attempt);
  };
  bool queued = m.take_turn(name, [&m, name, key, again](Turn turn) {
    PropertyChanges changes{{stop_asked, key.generation.str()}};
    m.call(env::SetDatasetProperties{name, changes}, [&m, turn, key, again](StoreResult kept) {
      const LiveAttempt* attempt = m.find_attempt(key);
      if (attempt == nullptr || !may_be_asked(*attempt)) return;
      if (!kept) return m.after(seconds(1), again);
      const Stopping& stopping = *attempt->stopping;
      m.emit(AskJob{*attempt->connection, env::Ask::stop, stopping.next, stopping.reason});
    });
  });
  if (!queued) m.after(seconds(1), again);
}

void stop_live(Machine& m, LiveAttempt& live, StopMode mode, const std::string& reason) {
  if (!live.has_processes()) return;
  if (live.stopping && live.stopping->mode >= mode) return;
  bool was_stopping = live.stopping.has_value();
  live.stopping = Stopping{mode, reason, false, m.now.monotonic + stop_patience};
  bool starting = live.attempt.phase == AttemptPhase::starting;
  if (!was_stopping && live.launched && !starting) set_phase(m, live, AttemptPhase::stopping);
  if (!live.launched || starting) return;  // the start sees it
  if (mode == StopMode::stop && live.connection) {
    ask_to_stop(m, live);
    return;
  }
  signal_processes(m, live);
}

void attempt_exited(Machine& m, const AttemptExited& event) {
  LiveAttempt* live = m.find_attempt({event.job, event.generation});
  if (live == nullptr || live->attempt.phase >= AttemptPhase::closing) return;
  ExitRecord exit = event.exit;
  if (live->orphaned) {
    exit.kind = ExitRecord::Kind::supervisor_lost;
    exit.words = "its supervisor was lost";
  } else if (!live->gpu_trouble.empty() && exit.kind != ExitRecord::Kind::success) {
    // Whatever the job made of it, it is not the job's fault.
    exit.kind = ExitRecord::Kind::stopped;
    exit.words = live->gpu_trouble;
  } else if (live->said_stopped && exit.kind == ExitRecord::Kind::success) {
    exit.kind = live->stopping && live->stopping->mode == StopMode::cancel
                    ? ExitRecord::Kind::cancelled
                    : ExitRecord::Kind::stopped;
    exit.words = "stopped as asked";
  }
  live->attempt.exit = exit;
  end_checkpoints(m, *live);
  set_phase(m, *live, AttemptPhase::closing);
  if (m.listed) close(m, live->key());  // else after the first listing
}

void supervisor_lost(Machine& m, const SupervisorLost& event) {
  LiveAttempt* live = m.find_attempt({event.job, event.generation});
  if (live == nullptr || !live->has_processes()) return;
  live->orphaned = true;
  live->stopping = Stopping{StopMode::halt, "its supervisor was lost", true,
                            m.now.monotonic + live->launch.grace + repeat_stop};
  set_phase(m, *live, AttemptPhase::stopping);
}

void job_stopped(Machine& m, JobConnection connection) {
  for (auto& [key, live] : m.attempts) {
    if (live.connection != connection) continue;
    live.said_stopped = true;
    if (live.stopping && !live.stopping->signalled)
      live.stopping->next = m.now.monotonic + live.launch.grace;
  }
}

void acknowledge(Machine& m, const AckExit& ack) {
  LiveAttempt* live = m.find_attempt({ack.job, ack.generation});
  if (live == nullptr || !live->has_ended()) return;
  m.emit(ForgetAttempt{ack.job, ack.generation});
  m.attempts.erase(live->key());
}

void tick_attempts(Machine& m) {
  for (auto& [key, live] : m.attempts) {
    bool due = live.stopping && live.launched && live.has_processes() &&
               live.attempt.phase != AttemptPhase::starting &&
               live.stopping->next <= m.now.monotonic;
    if (due) signal_processes(m, live);
  }
}

void report(Machine& m, const LiveAttempt& live) {
  m.say(AttemptReport{live.attempt});
}

void set_phase(Machine& m, LiveAttempt& live, AttemptPhase phase) {
  live.attempt.phase = phase;
  live.attempt.since = m.now.wall;
  report(m, live);
}

}  // namespace zed::agent
