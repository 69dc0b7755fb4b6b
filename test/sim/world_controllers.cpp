// The controllers of a simulated fleet: how they start, end and are taken over from.

#include <algorithm>

#include <fmt/format.h>

#include "controller/records.hpp"
#include "sim/world.hpp"

namespace zed::sim {

void World::start_controller(std::size_t index) {
  Machine& m = machine(index);
  if (!m.up || controller_on(index) || machine_was_left_by_controller(index)) return;
  auto controller = std::make_shared<SimController>(*this, index, next_run());
  controllers_.push_back(controller);
  schedule.note(fmt::format("controller starts on {}", m.name.str()));
  forge_journal(index);
  controller->start();
}

void World::take_over(std::size_t index) {
  Machine& m = machine(index);
  if (!m.up || controller_on(index) || m.disk.copy.records.empty()) return;
  schedule.note(fmt::format("takeover on {}", m.name.str()));
  m.disk.journal = m.disk.copy;
  left_by_controller_.erase(index);
  start_controller(index);
}

std::optional<std::size_t> World::second_by_agents() const {
  std::map<NodeName, int> named;
  for (const auto& m : machines_)
    if (m->up && !m->disk.journal_second.empty()) ++named[m->disk.journal_second];
  auto best = std::max_element(named.begin(), named.end(),
                               [](const auto& a, const auto& b) { return a.second < b.second; });
  return best == named.end() ? std::nullopt : machine_named(best->first);
}

void World::people_take_over() {
  auto current = newest_controller();
  const auto second = second_by_agents();
  if (!current || !second || *second == current->machine_index()) return;
  if (!machine(*second).up || machine(*second).disk.copy.records.empty()) return;
  // The old controller is thought dead and is, or is only cut off: both happen.
  left_by_controller_.insert(current->machine_index());
  if (chance.chance(600)) crash_controller(current->run());
  take_over(*second);
}

ControllerTerm World::highest_term_seen_from(std::size_t index) const {
  ControllerTerm highest;
  for (const auto& m : machines_)
    if (m->agent && network.reachable(index, m->index))
      highest = std::max(highest, m->disk.highest_term);
  return highest;
}

void World::revive_a_controller() {
  schedule.after(seconds(10), "somebody looks after the controller", [this] {
    revive_a_controller();
    if (!controllers_.empty()) return;
    for (const auto& m : machines_)
      if (m->up && m->disk.journal.last_seq > 0) start_controller(m->index);
    if (!controllers_.empty()) return;
    if (auto second = second_by_agents()) take_over(*second);
  });
}

void World::forge_journal(std::size_t index) {
  // Two planted bugs: a record is lost from the journal and from its copies.
  const bool submit = planted() == Planted::forgotten_submit;
  if (!submit && planted() != Planted::terminal_changes) return;
  const std::string nothing = controller::encode_record(controller::DutySet{});
  auto forge = [&](std::vector<std::string>& records) {
    for (std::string& text : records) {
      auto record = controller::decode_record(text);
      if (!record) continue;
      const bool hit = submit ? std::holds_alternative<controller::Submitted>(*record)
                              : std::holds_alternative<controller::Finished>(*record);
      if (hit) text = nothing;
    }
  };
  forge(machine(index).disk.journal.records);
  for (const auto& m : machines_)
    forge(m->disk.copy.records);
}

bool World::machine_was_left_by_controller(std::size_t index) const {
  return left_by_controller_.contains(index);
}

void World::crash_controller(std::uint64_t run) {
  auto controller = controller_of_run(run);
  if (!controller) return;
  schedule.note(
      fmt::format("controller on {} dies", machine(controller->machine_index()).name.str()));
  controller->die();
  network.controller_died(run);
  std::erase(controllers_, controller);
}

std::shared_ptr<SimController> World::controller_of_run(std::uint64_t run) const {
  for (const auto& controller : controllers_)
    if (controller->run() == run) return controller;
  return nullptr;
}

bool World::controller_runs(std::uint64_t run) const {
  return controller_of_run(run) != nullptr;
}

void World::tell_controller(std::uint64_t run, const controller::Event& event) {
  if (auto controller = controller_of_run(run)) controller->hear(event);
}

std::shared_ptr<SimController> World::controller_on(std::size_t index) const {
  for (const auto& controller : controllers_)
    if (controller->machine_index() == index) return controller;
  return nullptr;
}

std::shared_ptr<SimController> World::newest_controller() const {
  std::shared_ptr<SimController> newest;
  for (const auto& controller : controllers_)
    if (!newest || newest->durable().term < controller->durable().term) newest = controller;
  return newest;
}

void World::copy_grew(std::size_t index) {
  // What is in a copy was durable in the journal before it was sent: it is on two disks now.
  const JournalDisk& copy = machine(index).disk.copy;
  controller::DesiredState state;
  std::uint64_t seq = copy.last_seq - copy.records.size();
  for (const std::string& text : copy.records) {
    auto record = controller::decode_record(text);
    if (!record) {
      broken = "a record of the journal's copy does not read: " + record.error().describe();
      return;
    }
    controller::fold(state, *record, ++seq);
  }
  for (const auto& [id, job] : state.jobs) {
    history.safe.submits.insert(id);
    for (const controller::KnownFork& fork : job.forks)
      history.safe.forks.emplace(id, fork.fork.timeline);
    if (job.outcome && is_terminal(job.outcome->state))
      history.safe.ends.emplace(id, job.outcome->state);
  }
}

void World::journal_grew(std::size_t index, const controller::DesiredState& durable) {
  for (const auto& [id, job] : durable.jobs)
    if (job.is_terminal())
      history.terminal.emplace(
          id, SeenEnd{job.outcome->state, job.outcome->generation, index, schedule.now()});
}

}  // namespace zed::sim
