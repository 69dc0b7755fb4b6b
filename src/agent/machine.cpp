#include "agent/machine.hpp"

#include <algorithm>

#include "agent/agent.hpp"
#include "agent/matters.hpp"

namespace zed::agent {
namespace {

constexpr std::size_t longest_lane = 256;  // waiting procedures on one dataset
constexpr std::size_t remembered_results = 256;

struct Handler {
  Machine& m;

  void operator()(const Started& e) const {
    m.node = e.node;
    m.name = e.name;
    m.facts = e.facts;
    m.gpus = e.gpus;
    m.highest_term = e.highest_term;
    m.journal_second = e.journal_second;
    m.copy_seq = e.journal_copy_seq;
    m.copy_term = e.journal_copy_term;
    // Results of an earlier run must not be taken for ours.
    auto random = m.ids.next();
    for (std::size_t i = 0; i < 6; ++i)
      m.last_effect = (m.last_effect << 8) | random[i];
    adopt_attempts(m, e.attempts);
    begin_inventory(m);
  }
  void operator()(const Tick&) const {
    tick_links(m);
    tick_inventory(m);
    tick_attempts(m);
    tick_checkpoints(m);
  }
  void operator()(const ControllerConnected& e) const { connected(m, e.link); }
  void operator()(const ControllerSaid& e) const { heard(m, e.link, e.message); }
  void operator()(const ControllerGone& e) const { disconnected(m, e.link); }
  void operator()(const StoreReturned& e) const {
    auto found = m.store_calls.extract(e.effect);
    if (!found.empty()) found.mapped()(e.result);
  }
  void operator()(const AttemptStarted& e) const { status(e.effect, e.result); }
  void operator()(const NodeStateSaved& e) const { status(e.effect, e.result); }
  void operator()(const JournalCopyStored& e) const { status(e.effect, e.result); }
  void operator()(const ProcessesFrozen& e) const { status(e.effect, e.result); }
  void operator()(const CodeUnpacked& e) const { status(e.effect, e.result); }
  void operator()(const SetupBegan& e) const { setup_began(m, e); }
  void operator()(const JobBegan& e) const { job_began(m, e); }
  void operator()(const AttemptExited& e) const { attempt_exited(m, e); }
  void operator()(const SupervisorLost& e) const { supervisor_lost(m, e); }
  void operator()(const JobConnected& e) const { job_connected(m, e); }
  void operator()(const JobDisconnected& e) const { job_disconnected(m, e.connection); }
  void operator()(const CheckpointAsked& e) const { checkpoint_asked(m, e); }
  void operator()(const JobStopped& e) const { job_stopped(m, e.connection); }
  void operator()(const TransferProgressed& e) const { transfer_progressed(m, e); }
  void operator()(const TransferEnded& e) const { transfer_ended(m, e); }
  void operator()(const ImportEnded& e) const { import_ended(m, e); }
  void operator()(const GpusProbed& e) const {
    if (m.gpus == e.gpus) return;
    m.gpus = e.gpus;
    m.say(GpusChanged{m.gpus});
    leave_broken_gpus(m);
  }
  void operator()(const MemoryMeasured& e) const {
    m.memory_free = e.memory_free;
    if (!e.loads.empty()) m.loads = e.loads;
    if (m.facts.power != e.power) m.power_changed = true;
    m.facts.power = e.power;
  }
  void operator()(const LogRead& e) const { log_read(m, e); }
  void operator()(const QuestionAnswered& e) const { answered(m, e); }

private:
  void status(EffectId effect, const Status& result) const {
    auto found = m.status_calls.extract(effect);
    if (!found.empty()) found.mapped()(result);
  }
};

}  // namespace

TurnToken::TurnToken(Machine& machine, DatasetName dataset)
    : machine_(machine), dataset_(std::move(dataset)) {}

TurnToken::~TurnToken() {
  machine_.free_lane(dataset_);
}

StepRun::StepRun(Machine& machine, PlanStep step) : machine_(machine), step_(std::move(step)) {
  machine_.steps[step_.id] = this;
}

StepRun::~StepRun() {
  if (!answered_)
    fail(Error{ErrorCode::internal, "the agent dropped this step", {}, "it is tried again"});
}

void StepRun::succeed(std::optional<CheckpointId> snapshot, Bytes moved) {
  answer(StepResult{step_.id, std::nullopt, snapshot, moved});
}

void StepRun::fail(Error error) {
  answer(StepResult{step_.id, std::move(error).with(describe(step_.action)), std::nullopt, {}});
}

void StepRun::answer(StepResult result) {
  if (answered_ || machine_.closing_down) return;
  answered_ = true;
  machine_.steps.erase(step_.id);
  machine_.say(result);
  // A failure that may pass is not remembered: the same order may try again.
  if (result.error && is_retryable(result.error->code)) return;
  machine_.result_order.push_back(step_.id);
  machine_.results[step_.id] = std::move(result);
  if (machine_.result_order.size() > remembered_results) {
    machine_.results.erase(machine_.result_order.front());
    machine_.result_order.pop_front();
  }
}

void Machine::call(env::StoreRequest request, std::function<void(StoreResult)> then) {
  EffectId id = next_effect();
  store_calls.emplace(id, std::move(then));
  emit(CallStore{id, std::move(request)});
}

EffectId Machine::expect_status(std::function<void(Status)> then) {
  EffectId id = next_effect();
  status_calls.emplace(id, std::move(then));
  return id;
}

void Machine::after(Millis delay, std::function<void()> then) {
  timers.emplace(now.monotonic + delay, std::move(then));
}

bool Machine::take_turn(const DatasetName& dataset, std::function<void(Turn)> work) {
  Lane& lane = lanes[dataset];
  if (lane.queue.size() >= longest_lane) return false;
  lane.queue.push_back(std::move(work));
  runnable.insert(dataset);
  return true;
}

void Machine::free_lane(const DatasetName& dataset) {
  if (closing_down) return;
  touched[dataset] = ++turn_clock;
  lanes[dataset].busy = false;
  runnable.insert(dataset);
}

bool Machine::is_current(const DatasetName& dataset, std::uint64_t read_at) const {
  auto lane = lanes.find(dataset);
  if (lane != lanes.end() && lane->second.busy) return false;
  if (branches_to_be.contains(dataset)) return false;
  auto last = touched.find(dataset);
  return last == touched.end() || last->second <= read_at;
}

void Machine::say(AgentMessage message) {
  if (active) emit(SayToController{*active, std::move(message)});
}

void Machine::notice(const std::string& subject, const std::string& text) {
  say(Notice{subject, text});
}

void Machine::pump() {
  while (!timers.empty() && timers.begin()->first <= now.monotonic) {
    auto due = timers.extract(timers.begin());
    due.mapped()();
  }
  // Each round starts at most one procedure a lane, each of which waits for an effect or ends, so
  // the rounds end with the queues.
  do {
    advance_forks(*this);
    while (!runnable.empty()) {
      DatasetName dataset = *runnable.begin();
      runnable.erase(runnable.begin());
      Lane& lane = lanes[dataset];
      if (lane.busy) continue;
      if (lane.queue.empty()) {
        lanes.erase(dataset);
        continue;
      }
      auto work = std::move(lane.queue.front());
      lane.queue.pop_front();
      lane.busy = true;
      work(std::make_shared<TurnToken>(*this, dataset));
    }
    advance_forks(*this);
  } while (!runnable.empty());
}

LiveAttempt* Machine::find_attempt(const AttemptKey& key) {
  auto found = attempts.find(key);
  return found == attempts.end() ? nullptr : &found->second;
}

LiveAttempt* Machine::live_attempt(const JobId& job) {
  for (auto& [key, live] : attempts)
    if (key.job == job && !live.has_ended()) return &live;
  return nullptr;
}

LiveAttempt* Machine::live_attempt_on(const DatasetName& dataset) {
  for (auto& [key, live] : attempts)
    if (live.attempt.dataset == dataset && !live.has_ended()) return &live;
  return nullptr;
}

bool Machine::is_written(const DatasetName& dataset) const {
  return std::any_of(attempts.begin(), attempts.end(), [&](const auto& entry) {
    return entry.second.attempt.dataset == dataset && !entry.second.has_ended();
  });
}

bool Machine::is_forking(const DatasetName& dataset) const {
  if (forking.count(dataset) > 0) return true;
  for (const WaitingFork& waiting : waiting_forks)
    if (waiting.dataset == dataset) return true;
  return false;
}

State::State(IdSource& ids) : machine_(std::make_unique<Machine>(ids)) {}
State::State(State&&) noexcept = default;
State& State::operator=(State&&) noexcept = default;
State::~State() = default;

const std::map<DatasetName, Dataset>& State::datasets() const {
  return machine_->datasets;
}

std::vector<Attempt> State::attempts() const {
  std::vector<Attempt> all;
  for (const auto& [key, live] : machine_->attempts)
    all.push_back(live.attempt);
  return all;
}

std::multiset<std::string> State::held_gpus() const {
  std::multiset<std::string> held;
  for (const auto& [key, live] : machine_->attempts)
    if (live.has_processes()) held.insert(live.attempt.gpus.begin(), live.attempt.gpus.end());
  return held;
}

ControllerTerm State::highest_term() const {
  return machine_->highest_term;
}

bool State::is_ready() const {
  return machine_->ready;
}

std::vector<Effect> on(State& state, const Event& event, Now now) {
  Machine& m = *state.machine_;
  m.now = now;
  std::visit(Handler{m}, event);
  m.pump();
  return std::exchange(m.effects, {});
}

}  // namespace zed::agent
