#include "sim/sim_agent.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "sim/describe_events.hpp"
#include "sim/world.hpp"

namespace zed::sim {
namespace {

bool changes_store(const env::StoreRequest& request) {
  return !std::holds_alternative<env::ListDatasets>(request) &&
         !std::holds_alternative<env::ChangedDatasets>(request) &&
         !std::holds_alternative<env::InspectDataset>(request) &&
         !std::holds_alternative<env::AskSpace>(request);
}

bool changes_store(const agent::Effect& effect) {
  const auto* call = std::get_if<agent::CallStore>(&effect);
  return call != nullptr && changes_store(call->request);
}

}  // namespace

SimAgent::SimAgent(World& world, std::size_t machine, std::uint64_t run)
    : world_(world), machine_(machine), run_(run),
      random_(world.seed(), "agent run " + std::to_string(run)),
      ids_(std::make_unique<SeededIds>(world.seed(), "agent ids " + std::to_string(run))),
      state_(std::make_unique<agent::State>(*ids_)) {}

Machine& SimAgent::machine() {
  return world_.machine(machine_);
}

void SimAgent::start() {
  Machine& m = machine();
  agent::Started started;
  started.node = m.id;
  started.name = m.name;
  started.facts = m.facts;
  started.gpus = m.gpus;
  started.highest_term = m.disk.highest_term;
  started.journal_second = m.disk.journal_second;
  started.journal_copy_seq = m.disk.copy.last_seq;
  started.journal_copy_term = m.disk.copy_term;
  for (auto& [key, record] : m.disk.attempts) {
    const bool adoptable = record.process && record.process->alive() &&
                           record.process->supervisor_alive() && !record.exit;
    started.attempts.push_back({record.launch, adoptable, record.exit});
    // What nobody supervises any more has no processes left, or soon: the shell sees to it.
    if (!record.exit && !(record.process && record.process->alive())) {
      world_.schedule.after(random_.millis(10, 500), "left-overs are gone",
                            [&world = world_, index = machine_, launch = record.launch] {
                              ExitRecord exit;
                              exit.kind = ExitRecord::Kind::supervisor_lost;
                              exit.words = "the machine went down";
                              world.attempt_ended(index, launch, exit);
                            });
    }
  }
  hear(started);
  tick();
  for (const auto& job : m.live_jobs())
    world_.schedule.after(random_.millis(5, 1500), "job reconnects", [job] { job->connect(); });
}

void SimAgent::tick() {
  if (dead_) return;
  hear(agent::Tick{});
  redial();
  world_.schedule.after(random_.millis(200, 500), "agent tick", [weak = weak_from_this()] {
    if (auto self = weak.lock()) self->tick();
  });
}

void SimAgent::redial() {
  for (const auto& controller : world_.controllers()) {
    if (!world_.controller_runs(controller->run())) continue;
    if (world_.network.is_dialling_or_linked(run_, controller->run())) continue;
    if (!world_.network.reachable(machine_, controller->machine_index())) continue;
    if (random_.chance(400))
      world_.network.dial(machine_, run_, controller->run(), controller->machine_index());
  }
}

void SimAgent::hear(const agent::Event& event) {
  if (dead_) return;
  if (world_.schedule.tracing()) {
    if (std::string text = describe(event); !text.empty())
      world_.schedule.note(fmt::format("{} <- {}", machine().name.str(), text));
  }
  if (const auto* said = std::get_if<agent::ControllerSaid>(&event))
    if (const auto* order = std::get_if<StepOrder>(&said->message))
      told_to_fork_ |= std::holds_alternative<ApplyFork>(order->step.action) ||
                       std::holds_alternative<FollowHome>(order->step.action);
  perform_all(agent::on(*state_, event, machine().now()));
}

void SimAgent::perform_all(std::vector<agent::Effect> effects) {
  // Effects are unordered by contract, except what is said on one link.
  for (agent::Effect& effect : effects) {
    if (world_.schedule.tracing()) {
      if (std::string text = describe(effect); !text.empty())
        world_.schedule.note(fmt::format("{} -> {}", machine().name.str(), text));
    }
    if (auto* say = std::get_if<agent::SayToController>(&effect)) {
      outbox_.push_back(std::move(*say));
      in_a_moment(false, [this] { say_next(); });
      continue;
    }
    const bool changes = changes_store(effect);
    auto shared = std::make_shared<agent::Effect>(std::move(effect));
    in_a_moment(changes, [this, shared] {
      std::visit([this](auto& e) { perform(std::move(e)); }, *shared);
    });
  }
}

void SimAgent::in_a_moment(bool changes, Perform perform) {
  world_.schedule.after(random_.millis(0, 2), "agent effect",
                        [weak = weak_from_this(), changes, perform = std::move(perform)] {
                          auto self = weak.lock();
                          if (!self || self->dead_) return;
                          if (self->dies_here(changes, true)) return;
                          perform();
                          self->dies_here(changes, false);
                        });
}

bool SimAgent::dies_here(bool changes, bool before) {
  if (dead_) return true;
  if (crash_.effects_left < 0 || crash_.before != before) return false;
  if (crash_.only_store_changes && !changes) return false;
  if (crash_.only_in_fork && !told_to_fork_) return false;
  if (--crash_.effects_left >= 0) return false;
  world_.schedule.note(fmt::format("{}: agent killed {} an effect", machine().name.str(),
                                   before ? "before" : "after"));
  world_.crash_agent(machine_);
  return true;
}

void SimAgent::die() {
  dead_ = true;
  // The children of a dead agent end before the next one begins: what they were about is done or
  // not done by then.
  for (auto& [number, call] : store_calls_)
    if (random_.chance(500)) (void)world_.call_store(machine_, call.request);
  store_calls_.clear();
  outbox_.clear();
}

void SimAgent::reply(Millis delay, agent::Event event) {
  world_.schedule.after(delay, "result", [weak = weak_from_this(), event = std::move(event)] {
    if (auto self = weak.lock()) self->hear(event);
  });
}

void SimAgent::say_next() {
  if (outbox_.empty()) return;
  agent::SayToController say = std::move(outbox_.front());
  outbox_.pop_front();
  if (world_.planted() == Planted::wrong_success) {
    auto* report = std::get_if<AttemptReport>(&say.message);
    if (report != nullptr && report->attempt.exit &&
        report->attempt.exit->kind == ExitRecord::Kind::exit_code)
      report->attempt.exit->kind = ExitRecord::Kind::success;
  }
  world_.network.to_controller(say.link, std::move(say.message));
}

void SimAgent::perform(agent::SayToController&& effect) {
  world_.network.to_controller(effect.link, std::move(effect.message));
}

void SimAgent::perform(agent::CloseLink&& effect) {
  world_.network.close_from_agent(effect.link);
}

void SimAgent::perform(agent::CallStore&& effect) {
  const std::uint64_t number = next_call_++;
  store_calls_.emplace(number, std::move(effect));
  const std::int64_t factor = machine().slow ? 100 : 1;
  world_.schedule.after(
      random_.millis(1 * factor, 12 * factor), "store call", [weak = weak_from_this(), number] {
        auto self = weak.lock();
        if (!self || self->dead_) return;
        auto node = self->store_calls_.extract(number);
        if (self->dies_here(changes_store(node.mapped().request), true)) return;
        auto result = self->world_.call_store(self->machine_, node.mapped().request);
        if (self->dead_ || self->dies_here(changes_store(node.mapped().request), false)) return;
        self->reply(self->random_.millis(0, 5),
                    agent::StoreReturned{node.mapped().id, std::move(result)});
      });
}

void SimAgent::perform(agent::LaunchAttempt&& effect) {
  AttemptRecord record;
  record.launch = effect.launch;
  if (world_.planted() == Planted::old_generation && effect.launch.attempt.number > 1) {
    for (const LaunchedAttempt& earlier : world_.history.launched)
      if (earlier.job == effect.launch.attempt.job)
        record.launch.attempt.generation = earlier.generation;
  }
  const auto key = std::pair{record.launch.attempt.job, record.launch.attempt.generation};
  machine().disk.attempts.insert_or_assign(key, record);
  world_.schedule.after(random_.millis(5, 200), "attempt begins",
                        [weak = weak_from_this(), effect = std::move(effect)] {
                          if (auto self = weak.lock(); self && !self->dead_) self->launch(effect);
                        });
}

void SimAgent::launch(const agent::LaunchAttempt& effect) {
  // Looked up by what the record holds: a planted bug may have changed the generation.
  auto& attempts = machine().disk.attempts;
  auto found = std::find_if(attempts.begin(), attempts.end(), [&](const auto& entry) {
    const Attempt& a = entry.second.launch.attempt;
    return a.job == effect.launch.attempt.job && a.number == effect.launch.attempt.number &&
           !entry.second.process && !entry.second.exit;
  });
  if (found == attempts.end()) return;
  const env::LaunchRequest& launch = found->second.launch;
  auto job = std::make_shared<SimJob>(world_, machine_, launch, world_.next_attempt());
  found->second.process = job;
  world_.history.launched.push_back({launch.attempt.job, launch.attempt.generation,
                                     launch.attempt.timeline, machine_, world_.schedule.now()});
  reply(random_.millis(0, 30), agent::AttemptStarted{effect.id, Status{}});
  job->begin();
}

void SimAgent::perform(agent::StopProcesses&& effect) {
  auto found = machine().disk.attempts.find({effect.job, effect.generation});
  if (found == machine().disk.attempts.end() || !found->second.process) return;
  if (world_.planted() == Planted::early_exit && found->second.process->alive()) {
    ExitRecord exit;
    exit.kind = ExitRecord::Kind::stopped;
    exit.ran = Millis{1};
    reply(Millis{1}, agent::AttemptExited{effect.job, effect.generation, exit});
    return;
  }
  found->second.process->terminate(effect.mode);
}

void SimAgent::perform(agent::ExtendLease&& effect) {
  auto found = machine().disk.attempts.find({effect.job, effect.generation});
  if (found != machine().disk.attempts.end() && found->second.process)
    found->second.process->extend_lease(effect.lease);
}

void SimAgent::perform(agent::FreezeProcesses&& effect) {
  auto found = machine().disk.attempts.find({effect.job, effect.generation});
  if (found != machine().disk.attempts.end() && found->second.process)
    found->second.process->freeze(effect.frozen);
  reply(random_.millis(1, 50), agent::ProcessesFrozen{effect.id, Status{}});
}

void SimAgent::perform(agent::ForgetAttempt&& effect) {
  auto found = machine().disk.attempts.find({effect.job, effect.generation});
  if (found != machine().disk.attempts.end() && found->second.exit)
    machine().disk.attempts.erase(found);
}

std::shared_ptr<SimJob> SimAgent::job_of(std::uint64_t connection) {
  for (const auto& job : machine().live_jobs())
    if (job->connection() == connection) return job;
  return nullptr;
}

void SimAgent::perform(agent::AskJob&& effect) {
  if (auto job = job_of(effect.connection)) job->ask(effect.ask, effect.deadline);
}

void SimAgent::perform(agent::AnswerJob&& effect) {
  if (auto job = job_of(effect.connection)) job->answer(effect.reply);
}

void SimAgent::perform(agent::StartTransfer&& effect) {
  world_.transfers.start(machine_, run_, std::move(effect));
}

void SimAgent::perform(agent::CancelTransfer&& effect) {
  world_.transfers.cancel(machine_, run_, effect.step);
}

void SimAgent::perform(agent::UnpackCode&& effect) {
  machine().disk.write_live(effect.dataset, "train.py", effect.code.dataset.str());
  reply(random_.millis(5, 100), agent::CodeUnpacked{effect.id, {}});
}

void SimAgent::perform(agent::ImportPath&& effect) {
  ImportFiles import = effect.import;
  if (import.dataset.str() == code_root) {
    // What stands for the content of a folder here is its name.
    std::string text = import.path;
    text.resize(import.snapshot.bytes.size(), '.');
    std::copy(text.begin(), text.end(), import.snapshot.bytes.begin());
    import.dataset = code_dataset(import.snapshot);
    import.properties[property::uuid] = import.snapshot.str();
  }
  auto done = [&]() -> Result<Snapshot> {
    ZED_CHECK(world_.call_store(machine_, env::MakeDataset{import.dataset, import.properties}));
    machine().disk.write_live(import.dataset, "model.bin", import.path);
    ZED_TRY(SnapshotName name, SnapshotName::of(import.dataset, import.snapshot_name));
    Properties properties{{property::id, import.snapshot.str()}};
    ZED_TRY(env::StoreReply reply,
            world_.call_store(machine_, env::TakeSnapshot{name, properties}));
    ZED_CHECK(world_.call_store(machine_, env::SetReadonly{import.dataset, true}));
    return std::get<Snapshot>(reply);
  };
  reply(random_.millis(20, 500), agent::ImportEnded{effect.step, done()});
}

/// Machines without an agent are no part of the simulated world.
void SimAgent::perform(agent::StartHostSend&& effect) {
  reply(random_.millis(20, 500),
        agent::TransferEnded{effect.step, fail(ErrorCode::unavailable, "no such host here")});
}

void SimAgent::perform(agent::SaveNodeState&& effect) {
  machine().disk.highest_term = effect.highest_term;
  machine().disk.journal_second = effect.journal_second;
  reply(random_.millis(1, 10), agent::NodeStateSaved{effect.id, Status{}});
}

void SimAgent::perform(agent::StoreJournalCopy&& effect) {
  Status stored = store_journal_copy(effect.records);
  reply(random_.millis(1, 10), agent::JournalCopyStored{effect.id, std::move(stored)});
}

Status SimAgent::store_journal_copy(const JournalRecords& records) {
  Disk& disk = machine().disk;
  if (disk.full) return fail(ErrorCode::no_space, "the disk is full");
  if (records.reset) {
    disk.copy = {};
    disk.copy.last_seq = records.first_seq - 1;
  } else if (records.first_seq != disk.copy.last_seq + 1) {
    return fail(ErrorCode::stale, fmt::format("the copy ends at record {}, not before {}",
                                              disk.copy.last_seq, records.first_seq));
  }
  disk.copy_term = records.term;
  for (const std::string& record : records.records) {
    disk.copy.records.push_back(record);
    ++disk.copy.last_seq;
  }
  world_.copy_grew(machine_);
  return {};
}

void SimAgent::perform(agent::FetchLog&& effect) {
  LogPage page;
  page.request = effect.request.request;
  reply(random_.millis(1, 10), agent::LogRead{effect.id, page});
}

void SimAgent::perform(agent::AnswerQuestion&& effect) {
  // Simulated copies have no files, and nobody types commands into simulated jobs.
  reply(random_.millis(1, 10),
        agent::QuestionAnswered{effect.id, fail(ErrorCode::unsupported, "nothing to look at")});
}

}  // namespace zed::sim
