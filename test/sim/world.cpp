#include "sim/world.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "controller/records.hpp"
#include "sim/fleet.hpp"
#include "spec/cluster_file.hpp"

namespace zed::sim {

Instant Machine::monotonic() const {
  return schedule->now() + Millis{clock_offset_ms};
}

WallTime Machine::wall() const {
  // 2024-04-13T10:00:00Z, so that traces look like the days that they simulate.
  return WallTime{1'713'002'400'000 + schedule->now().ms + wall_offset_ms};
}

std::vector<std::shared_ptr<SimJob>> Machine::live_jobs() const {
  std::vector<std::shared_ptr<SimJob>> jobs;
  for (const auto& [key, record] : disk.attempts)
    if (record.process && record.process->alive()) jobs.push_back(record.process);
  return jobs;
}

World::World(WorldSettings settings)
    : settings_(settings), schedule(settings.seed), network(*this), transfers(*this), people(*this),
      chance(settings.seed, "world") {
  const std::vector<Hardware> hardware = simulated_hardware(settings.machines);
  for (std::size_t index = 0; index < hardware.size(); ++index)
    make_machine(index, hardware[index]);
  // The cluster file was applied before this story begins.
  controller::AppliedFile applied;
  applied.by = "uid 1000";
  applied.from_node = machine(settings.controller_machine).name;
  applied.text = settings.cluster;
  if (applied.text.empty())
    applied.text =
        settings.behaviour
            ? plain_cluster(settings.jobs)
            : simulated_cluster(settings.seed,
                                {settings.machines, settings.jobs, applied.from_node.str(),
                                 settings.planted == Planted::greedy_keep});
  spec::Checked checked = spec::check(applied.text);
  ZED_ASSERT(checked.cluster.has_value());
  cluster_ = std::move(*checked.cluster);
  JournalDisk& journal = machine(settings.controller_machine).disk.journal;
  for (const controller::Record& record : controller::records_of(std::move(applied))) {
    journal.records.push_back(controller::encode_record(record));
    ++journal.last_seq;
  }
  start_controller(settings.controller_machine);
  for (std::size_t index = 0; index < hardware.size(); ++index)
    schedule.after(chance.millis(10, 2000), "agent starts", [this, index] { start_agent(index); });
  people.start();
}

World::~World() = default;

void World::make_machine(std::size_t index, const Hardware& hardware) {
  auto made = std::make_unique<Machine>(settings_.seed * 131 + index);
  made->index = index;
  made->name = *NodeName::parse(hardware.name);
  SeededIds ids(settings_.seed, "node " + hardware.name);
  made->id = NodeId{ids.next()};
  made->gpus = hardware.gpus;
  made->facts.version = "1";
  made->facts.os = hardware.laptop && index % 4 == 3 ? "macos" : "linux";
  made->facts.cpu_arch = "x86_64";
  made->facts.cpus = 16;
  made->facts.memory = gibibytes(hardware.memory_gib);
  made->facts.pool = "tank";
  made->facts.data_address = fmt::format("10.0.0.{}:4373", index + 1);
  made->facts.dialable = !hardware.laptop;
  made->clock_offset_ms = chance.between(1000, 10'000'000);
  made->schedule = &schedule;
  machines_.push_back(std::move(made));
}

std::optional<std::size_t> World::machine_named(const NodeName& name) const {
  for (const auto& machine : machines_)
    if (machine->name == name) return machine->index;
  return std::nullopt;
}

// ---- agents -------------------------------------------------------------------------------------

void World::start_agent(std::size_t index) {
  Machine& m = machine(index);
  if (!m.up || m.agent) return;
  m.agent = std::make_shared<SimAgent>(*this, index, next_run());
  m.agent->start();
}

void World::crash_agent(std::size_t index) {
  Machine& m = machine(index);
  if (!m.agent) return;
  schedule.note(fmt::format("{}: agent dies", m.name.str()));
  const std::shared_ptr<SimAgent> agent = std::exchange(m.agent, nullptr);
  for (const auto& job : m.live_jobs())
    job->agent_gone();
  transfers.agent_died(agent->run());
  agent->die();
  m.disk.store.crash();
  network.agent_died(agent->run());
  touch(index);
}

void World::crash_machine(std::size_t index) {
  Machine& m = machine(index);
  if (!m.up) return;
  schedule.note(fmt::format("{}: power off", m.name.str()));
  if (auto controller = controller_on(index)) crash_controller(controller->run());
  crash_agent(index);
  m.up = false;
  for (auto& [key, record] : m.disk.attempts) {
    if (record.process) record.process->vanish();
    record.process.reset();
  }
}

void World::boot_machine(std::size_t index) {
  Machine& m = machine(index);
  if (m.up || m.disk_lost) return;
  schedule.note(fmt::format("{}: power on", m.name.str()));
  m.up = true;
  m.clock_offset_ms = chance.between(1000, 10'000'000) - schedule.now().ms;
  schedule.after(chance.millis(100, 3000), "agent starts", [this, index] { start_agent(index); });
  // Whoever runs a controller has it start with the machine.
  if (m.disk.journal.last_seq > 0 && !machine_was_left_by_controller(index))
    schedule.after(chance.millis(100, 3000), "controller starts",
                   [this, index] { start_controller(index); });
}

bool World::is_elsewhere(std::size_t index, const CheckpointId& snapshot) {
  return std::any_of(machines_.begin(), machines_.end(), [&](const auto& m) {
    if (m->index == index || m->disk_lost) return false;
    const std::vector<Dataset> all = m->disk.look_at_all();
    return std::any_of(all.begin(), all.end(),
                       [&](const Dataset& dataset) { return dataset.find(snapshot) != nullptr; });
  });
}

void World::lose_disk(std::size_t index) {
  Machine& m = machine(index);
  crash_machine(index);
  for (const Dataset& dataset : m.disk.look_at_all())
    for (const Snapshot& snapshot : dataset.snapshots)
      if (!is_elsewhere(index, snapshot.id)) history.may_be_gone.insert(snapshot.id);
  m.disk_lost = true;
  history.lost_disks.push_back(index);
  touch(index);
  schedule.note(fmt::format("{}: lost for good", m.name.str()));
}

bool World::agent_runs(std::size_t index, std::uint64_t run) const {
  const auto& agent = machine(index).agent;
  return agent && agent->run() == run;
}

void World::tell_agent(std::size_t index, std::uint64_t run, const agent::Event& event) {
  if (!agent_runs(index, run)) return;
  // Held, because the event may end the run.
  const std::shared_ptr<SimAgent> agent = machine(index).agent;
  agent->hear(event);
}

void World::tell_current_agent(std::size_t index, const agent::Event& event) {
  if (const auto& agent = machine(index).agent) tell_agent(index, agent->run(), event);
}

void World::attempt_ended(std::size_t index, const env::LaunchRequest& launch, ExitRecord exit,
                          bool work_remains) {
  Machine& m = machine(index);
  const Attempt& attempt = launch.attempt;
  auto found = m.disk.attempts.find({attempt.job, attempt.generation});
  if (!m.up || found == m.disk.attempts.end() || found->second.exit) return;
  found->second.exit = exit;
  found->second.process.reset();
  history.ended.push_back({attempt.job, attempt.generation, attempt.timeline, index, exit,
                           work_remains, schedule.now()});
  tell_current_agent(index, agent::AttemptExited{attempt.job, attempt.generation, exit});
}

// ---- stores -------------------------------------------------------------------------------------

Result<env::StoreReply> World::call_store(std::size_t index, const env::StoreRequest& request) {
  Machine& m = machine(index);
  m.disk.store.set_wall_time(m.wall());
  if (planted() == Planted::torn_checkpoint) tear(m, request);
  auto reply = env::perform(m.disk.store, request);
  // An error may come after the effect: the observer looks in any case.
  touch(index);
  if (reply)
    note_store_change(index, request, *reply);
  else
    note_unheard_snapshot(index, request);
  if (planted() == Planted::last_copy) destroy_last_copy(index, request);
  return reply;
}

void World::tear(Machine& m, const env::StoreRequest& request) {
  const auto* commit = std::get_if<env::CommitCheckpoint>(&request);
  if (commit == nullptr) return;
  auto epoch = commit->request.snapshot_properties.find(property::epoch);
  if (epoch != commit->request.snapshot_properties.end())
    m.disk.remove_live(commit->request.dataset, "weights-" + epoch->second);
}

void World::destroy_last_copy(std::size_t index, const env::StoreRequest& request) {
  const auto* commit = std::get_if<env::CommitCheckpoint>(&request);
  if (commit == nullptr) return;
  auto dataset = machine(index).disk.look_at(commit->request.dataset);
  if (!dataset || dataset->snapshots.size() < 3) return;
  auto name = SnapshotName::of(dataset->name, dataset->snapshots.front().name);
  for (const auto& m : machines_)
    (void)m->disk.store.destroy_snapshot(*name);
}

void World::note_store_change(std::size_t index, const env::StoreRequest& request,
                              const env::StoreReply& reply) {
  touch(index);
  if (const auto* snapshot = std::get_if<Snapshot>(&reply)) {
    if (const auto* commit = std::get_if<env::CommitCheckpoint>(&request))
      note_snapshot(index, commit->request.dataset, *snapshot);
    else if (const auto* take = std::get_if<env::TakeSnapshot>(&request))
      note_snapshot(index, take->snapshot.dataset, *snapshot);
  }
}

void World::note_unheard_snapshot(std::size_t index, const env::StoreRequest& request) {
  const auto* commit = std::get_if<env::CommitCheckpoint>(&request);
  const auto* take = std::get_if<env::TakeSnapshot>(&request);
  if (commit == nullptr && take == nullptr) return;
  const DatasetName& name = commit ? commit->request.dataset : take->snapshot.dataset;
  const std::string& word = commit ? commit->request.snapshot : take->snapshot.snapshot;
  const auto dataset = machine(index).disk.look_at(name);
  const Snapshot* made = dataset ? dataset->find(word) : nullptr;
  if (made != nullptr && !history.snapshots.contains(made->id)) note_snapshot(index, name, *made);
}

void World::note_snapshot(std::size_t index, const DatasetName& dataset, const Snapshot& snapshot) {
  if (!dataset.is_under("jobs")) return;
  Committed committed;
  committed.snapshot = snapshot;
  committed.dataset = dataset;
  committed.machine = index;
  committed.at = schedule.now();
  if (auto job = snapshot.properties.find(property::job); job != snapshot.properties.end())
    committed.job = JobId::parse(job->second).value_or(JobId{});
  if (committed.job.is_nil()) {
    auto whole = machine(index).disk.look_at(dataset);
    if (whole) committed.job = JobId{whole->uuid.bytes};
  }
  auto name = SnapshotName::of(dataset, snapshot.name);
  committed.files = machine(index).disk.snapshot_files(*name);
  if (snapshot.seq()) history.committed.emplace(snapshot.id, committed);
  history.snapshots.emplace(snapshot.id, std::move(committed));
}

}  // namespace zed::sim
