#include "sim/hand.hpp"

#include <fmt/format.h>

#include "sim/world.hpp"

namespace zed::sim {
namespace {

std::optional<Dataset> copy_of(World& world, std::size_t machine, std::size_t job) {
  Machine& m = world.machine(machine);
  if (!m.up) return std::nullopt;
  auto name = DatasetName::parse("jobs/" + job_name(job));
  auto dataset = m.disk.look_at(*name);
  if (!dataset) return std::nullopt;
  return std::move(*dataset);
}

}  // namespace

bool hand_snapshot(World& world, std::size_t machine, std::size_t job) {
  auto dataset = copy_of(world, machine, job);
  if (!dataset) return false;
  auto name = SnapshotName::of(dataset->name, fmt::format("by-hand-{}", world.next_run()));
  return world.call_store(machine, env::TakeSnapshot{*name, {}}).has_value();
}

bool hand_destroy(World& world, std::size_t machine, std::size_t job, std::uint64_t which) {
  auto dataset = copy_of(world, machine, job);
  if (!dataset || dataset->snapshots.empty()) return false;
  const Snapshot& victim = dataset->snapshots[which % dataset->snapshots.size()];
  auto name = SnapshotName::of(dataset->name, victim.name);
  world.history.may_be_gone.insert(victim.id);
  return world.call_store(machine, env::DestroySnapshot{*name}).has_value();
}

bool hand_rollback(World& world, std::size_t machine, std::size_t job, std::uint64_t which) {
  auto dataset = copy_of(world, machine, job);
  if (!dataset || dataset->snapshots.size() < 2) return false;
  const std::size_t target = which % (dataset->snapshots.size() - 1);
  for (std::size_t i = dataset->snapshots.size() - 1; i > target; --i) {
    const Snapshot& victim = dataset->snapshots[i];
    auto name = SnapshotName::of(dataset->name, victim.name);
    world.history.may_be_gone.insert(victim.id);
    if (!world.call_store(machine, env::DestroySnapshot{*name})) return false;
  }
  return world.call_store(machine, env::RevertLive{dataset->name}).has_value();
}

bool hand_set(World& world, std::size_t machine, std::size_t job) {
  auto dataset = copy_of(world, machine, job);
  if (!dataset) return false;
  return world
      .call_store(machine, env::SetDatasetProperties{dataset->name, {{"note", "seen by me"}}})
      .has_value();
}

}  // namespace zed::sim
