// Questions that several files ask of the whole machine. None changes anything.

#include "controller/machine.hpp"
#include "controller/operations/models.hpp"
#include "controller/timelines.hpp"

namespace zed::controller {
namespace {

JobState state_of_phase(AttemptPhase phase) {
  switch (phase) {
  case AttemptPhase::starting: return JobState::preparing;
  case AttemptPhase::running: return JobState::running;
  case AttemptPhase::checkpointing: return JobState::checkpointing;
  case AttemptPhase::stopping:
  case AttemptPhase::closing:
  case AttemptPhase::ended: return JobState::stopping;
  }
  return JobState::preparing;
}

}  // namespace

const Attempt* visible_attempt(const Machine& m, const DesiredJob& job) {
  if (!job.placed) return nullptr;
  const Attempt* attempt = m.fleet.attempt(job.placed->node, job.job.id);
  return attempt != nullptr && attempt->generation == job.placed->generation ? attempt : nullptr;
}

bool home_is_lost(const Machine& m, const DesiredJob& job) {
  return !job.home.empty() && m.fleet.is_lost(job.home);
}

JobState state_of(const Machine& m, const DesiredJob& job) {
  if (job.outcome) return job.outcome->state;
  bool away = home_is_lost(m, job);
  if (away && job.had_checkpoint && !newest_reachable(m, job)) return JobState::waiting;
  if (!job.placed) return job.wanted == Wanted::run ? JobState::pending : JobState::stopping;
  if (m.fleet.is_lost(job.placed->node)) return JobState::lost;
  const Attempt* attempt = visible_attempt(m, job);
  if (job.wanted != Wanted::run) return JobState::stopping;
  return attempt == nullptr ? JobState::preparing : state_of_phase(attempt->phase);
}

std::optional<FoundCheckpoint> newest_reachable(const Machine& m, const DesiredJob& job) {
  std::optional<FoundCheckpoint> best;
  for (const NodeName& node : m.fleet.ready_holders(job.dataset_uuid())) {
    const Snapshot* found = newest_current_checkpoint(job, *m.fleet.copy(node, job.dataset_uuid()));
    if (found == nullptr) continue;
    const bool newer = !best || *best->snapshot->seq() < *found->seq();
    const bool same_at_home = !newer && *best->snapshot->seq() == *found->seq() && node == job.home;
    if (newer || same_at_home) best = FoundCheckpoint{node, found};
  }
  return best;
}

std::optional<NodeName> best_holder(const Machine& m, const DatasetId& uuid) {
  std::optional<NodeName> best;
  std::size_t most = 0;
  for (const NodeName& node : m.fleet.ready_holders(uuid)) {
    const Dataset& copy = *m.fleet.copy(node, uuid);
    if (copy.snapshots.empty()) continue;
    if (copy.property(property::home) == node.str()) return node;
    if (best && copy.snapshots.size() <= most) continue;
    best = node;
    most = copy.snapshots.size();
  }
  return best;
}

std::optional<DatasetName> dataset_of_model(const Machine& m, const ModelName& model) {
  // "llama@2", "llama@production"; without one the declared dataset, or the first of that name.
  if (model.str().find('@') != std::string::npos) {
    auto row = find_model(m, model.str());
    auto dataset = row ? DatasetName::parse(row->dataset) : fail(row.error());
    return dataset ? std::optional<DatasetName>(*dataset) : std::nullopt;
  }
  if (m.desired.applied)
    if (const DeclaredModel* declared = m.desired.applied->cluster.find_model(model))
      return declared->dataset;
  auto by_name = DatasetName::parse("models/" + model.str());
  if (by_name && m.fleet.uuid_of(*by_name)) return *by_name;
  for (const auto& held : m.fleet.view().datasets)
    for (const auto& [name, dataset] : held.second)
      if (dataset.property(property::type) == "model" &&
          dataset.property(property::name) == model.str())
        return name;
  return std::nullopt;
}

}  // namespace zed::controller
