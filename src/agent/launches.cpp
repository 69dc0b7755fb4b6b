// Attempts from the order to start them to their first process.
//
// A GPU is reserved at the moment an order to start is taken, and free again when every process of
// the attempt is gone.

#include <algorithm>
#include <set>

#include "agent/attempt_parts.hpp"
#include "base/text.hpp"

namespace zed::agent {
namespace {

constexpr std::size_t most_attempts = 1024;  // live or not acknowledged
constexpr Millis setup_patience = minutes(60);

/// "rtx4090" of "NVIDIA GeForce RTX 4090", for the property that people read.
std::string short_gpu_name(const std::string& model) {
  std::string name;
  for (const std::string& word : split(lower(model), ' '))
    if (word != "nvidia" && word != "geforce" && word != "amd" && word != "apple") name += word;
  return name;
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
      asker.step->fail(ErrorCode::stale, "the attempt did not start", plans_again);
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
  void fail(ErrorCode code, std::string why) const {
    step->fail(code, std::move(why), plans_again);
  }
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
  auto stale = [](std::string why) { return fail(ErrorCode::stale, std::move(why), plans_again); };
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
    return fail(ErrorCode::busy, name + " is being received or forked", plans_again);
  return {};
}

PropertyChanges start_properties(const Machine& m, const StartAttempt& action) {
  PropertyChanges changes{
      {property::generation, action.generation.str()},
      {property::status,
       std::string(to_string(action.job.setup ? JobState::preparing : JobState::running))},
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
  launch.content = action.job.content;
  if (action.job.setup)
    launch.setup = env::Setup{*action.job.setup, m.node.str(),
                              action.job.setup_timeout.value_or(setup_patience)};
  launch.visible_gpus = action.gpus;
  const Gpu* gpu = action.gpus.empty() ? nullptr : find_gpu(m, action.gpus.front());
  launch.vendor = gpu != nullptr ? gpu->vendor : GpuVendor::other;
  launch.grace = action.job.grace;
  launch.time_left = action.time_left;
  launch.lease = action.lease;
  launch.run_as = action.run_as;
  return launch;
}

/// What a person who asks the pool reads; the controller hears the attempt's phase.
void set_status_running(Machine& m, const AttemptKey& key, const DatasetName& dataset) {
  (void)m.take_turn(dataset, [&m, key, dataset](Turn turn) {
    const LiveAttempt* live = m.find_attempt(key);
    if (live == nullptr || live->attempt.phase >= AttemptPhase::stopping) return;
    PropertyChanges changes{{property::status, std::string(to_string(JobState::running))}};
    m.call(env::SetDatasetProperties{dataset, changes}, [&m, turn, dataset](StoreResult set) {
      if (set) refresh(m, dataset, [turn] {});
    });
  });
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
  if (live->attempt.phase == AttemptPhase::starting && !live->setting_up) job_runs(m, *live);
}

void launch(Machine& m, const std::shared_ptr<Start>& start) {
  LiveAttempt* live = m.find_attempt(start->key());
  if (live == nullptr || live->stopping)
    return start->fail(ErrorCode::cancelled, "the attempt was stopped before it started");
  live->launch = launch_request(m, start->action, start->dataset, live->attempt);
  if (auto& lease = live->launch.lease) {
    // It counts from the order on: nobody waits longer for an attempt that was long in preparation.
    lease = *lease - (m.now.monotonic - start->since);
    if (*lease <= Millis{0})
      return start->fail(ErrorCode::timeout, "its lease ended before it could start");
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
    add_origins(properties, launch_request(m, start->action, start->dataset, {}));
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
      return start->fail(ErrorCode::not_found,
                         "input " + input.dataset.str() + " is not on " + m.name.str());
    hold(m, turn, snapshot->name, attempt_tag(start->action.generation),
         [&m, start, turn](Status held) {
           if (!held) return start->fail(held.error());
           hold_inputs(m, start);
         });
  });
  if (!queued) start->fail(ErrorCode::busy, input.dataset.str() + " is busy");
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
    return fail(ErrorCode::refused, m.name.str() + " runs no jobs", plans_again);
  if (m.attempts.size() >= most_attempts)
    return fail(ErrorCode::busy, "too many attempts are not acknowledged yet", plans_again);
  if (const LiveAttempt* other = m.live_attempt(action.job.id)) {
    bool older = other->attempt.generation < action.generation;
    return fail(older ? ErrorCode::busy : ErrorCode::stale,
                "generation " + other->attempt.generation.brief() + " of job " +
                    action.job.name.str() + " has not ended here",
                plans_again);
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

}  // namespace

void job_runs(Machine& m, LiveAttempt& live) {
  if (live.every) live.next_timed = m.now.monotonic + *live.every;
  set_phase(m, live, AttemptPhase::running);
  if (live.launch.setup) set_status_running(m, live.key(), live.attempt.dataset);
}

std::string property_or_empty(const Snapshot* snapshot, const char* name) {
  if (snapshot == nullptr) return {};
  auto found = snapshot->properties.find(name);
  return found == snapshot->properties.end() ? std::string() : found->second;
}

void add_origins(Properties& properties, const env::LaunchRequest& launch) {
  // A store keeps a property of 8 KiB; a name is at most 256 long.
  constexpr std::size_t most_inputs = 24;
  if (launch.content) properties[property::code] = launch.content->str();
  std::vector<std::string> data;
  for (const Input& input : launch.data)
    if (data.size() < most_inputs) data.push_back(input.dataset.str() + "@" + input.snapshot.str());
  if (!data.empty()) properties[property::data] = join(data, ",");
}

Status check_gpus(const Machine& m, const StartAttempt& action) {
  std::set<std::string> distinct(action.gpus.begin(), action.gpus.end());
  if (distinct.size() != action.gpus.size())
    return fail(ErrorCode::invalid, "the step names a GPU twice");
  for (const std::string& uuid : action.gpus)
    ZED_CHECK(check_gpu(m, action, uuid));
  return {};
}

void start_attempt(Machine& m, const Step& step, const StartAttempt& action) {
  AttemptKey key{action.job.id, action.generation};
  if (const LiveAttempt* same = m.find_attempt(key)) {
    if (same->launched) return step->succeed();
    return step->fail(ErrorCode::busy, "the attempt is being started", plans_again);
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
      return start->fail(ErrorCode::not_found,
                         "no dataset " + start->action.job.dataset.str() + " here");
    if (auto fit = check_dataset(m, start->action, *there); !fit) return start->fail(fit.error());
    start->turn = std::move(turn);
    start->dataset = std::move(*there);
    prepare(m, start);
  });
}

}  // namespace zed::agent
