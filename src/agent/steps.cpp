// Orders: refused if stale, carried out once, answered once.

#include <algorithm>

#include "agent/matters.hpp"
#include "core/roots.hpp"

namespace zed::agent {
namespace {

constexpr std::size_t most_steps = 4096;  // under way at once

std::string uuid_of(const Properties& properties) {
  auto found = properties.find(property::uuid);
  return found == properties.end() ? std::string() : found->second;
}

Error taken(const DatasetName& name) {
  return Error{ErrorCode::exists,
               name.str() + " is there already, as another dataset",
               {},
               "destroy or rename it, or choose another name"};
}

void create_dataset(Machine& m, const Step& step, const CreateDataset& action) {
  DatasetName name = action.dataset;
  if (auto allowed = may_make(m, name); !allowed) return step->fail(allowed.error());
  with_checked(m, step, name, [&m, step, action, name](Turn turn, std::optional<Dataset> there) {
    if (there) {
      if (there->uuid.str() != uuid_of(action.properties)) return step->fail(taken(name));
      return step->succeed();
    }
    m.call(env::MakeDataset{name, action.properties}, [&m, step, turn, name](StoreResult made) {
      // `exists`: somebody was faster; whether it is ours shows when the order comes again.
      if (!made) return step->fail(made.error());
      refresh(m, name, [step, turn] { step->succeed(); });
    });
  });
}

void set_properties(Machine& m, const Step& step, const SetProperties& action) {
  DatasetName name = action.dataset;
  with_checked(m, step, name, [&m, step, action, name](Turn turn, std::optional<Dataset> there) {
    if (!there) return step->fail(ErrorCode::not_found, "no dataset " + name.str());
    if (there->uuid != action.uuid) return step->fail(taken(name));
    m.call(env::SetDatasetProperties{name, action.changes},
           [&m, step, turn, name](StoreResult set) {
             if (!set) return step->fail(set.error());
             refresh(m, name, [step, turn] { step->succeed(); });
           });
  });
}

/// The move is safe with the controller: this copy becomes the home, or learns who is.
void set_home(Machine& m, const Step& step, const SetHome& action) {
  DatasetName name = action.dataset;
  with_checked(m, step, name, [&m, step, action, name](Turn turn, std::optional<Dataset> there) {
    auto refuse = [&](ErrorCode code, const std::string& why) {
      step->fail(code, why, plans_again);
    };
    if (!there) return refuse(ErrorCode::not_found, "no dataset " + name.str());
    if (there->uuid != action.uuid) return step->fail(taken(name));
    if (m.is_written(name))
      return refuse(ErrorCode::busy, "an attempt of " + name.str() + " has not ended");
    if (there->timeline().value_or(Timeline{}) != action.timeline)
      return refuse(ErrorCode::stale, name.str() + " is on another timeline");
    if (there->generation().value_or(Generation{}) > action.generation)
      return refuse(ErrorCode::stale, name.str() + " has a newer generation");
    const Snapshot* newest = there->newest();
    if (newest == nullptr || newest->id != action.closing_snapshot)
      return refuse(ErrorCode::stale,
                    "the closing snapshot is not the newest of " + name.str() + " here");
    PropertyChanges changes{{property::home, action.home.str()},
                            {property::generation, action.generation.str()},
                            {property::checkpoint, std::nullopt},
                            {property::reverted, std::nullopt}};
    if (const Snapshot* checkpoint = there->newest_checkpoint())
      changes[property::checkpoint] = "@" + checkpoint->name;
    m.call(env::SetDatasetProperties{name, changes}, [&m, step, turn, name](StoreResult set) {
      if (!set) return step->fail(set.error());
      refresh(m, name, [step, turn] { step->succeed(); });
    });
  });
}

bool is_in_transfer(const Machine& m, const DatasetName& dataset, const CheckpointId* snapshot) {
  return std::any_of(m.transfers.begin(), m.transfers.end(), [&](const auto& entry) {
    const Transfer& transfer = entry.second;
    if (transfer.dataset != dataset) return false;
    return snapshot == nullptr || transfer.ticket.snapshot == *snapshot ||
           transfer.ticket.base == *snapshot;
  });
}

bool is_input(const Machine& m, const DatasetName& dataset, const CheckpointId* snapshot) {
  auto is_it = [&](const Input& input) {
    return input.dataset == dataset && (snapshot == nullptr || input.snapshot == *snapshot);
  };
  return std::any_of(m.attempts.begin(), m.attempts.end(), [&](const auto& entry) {
    const LiveAttempt& live = entry.second;
    return live.has_processes() &&
           ((live.launch.model && is_it(*live.launch.model)) ||
            std::any_of(live.launch.data.begin(), live.launch.data.end(), is_it));
  });
}

/// Destroys what is left of a list of snapshots, one by one, so that a crash leaves a shorter list.
void destroy_next(Machine& m, const Step& step, Turn turn, std::vector<SnapshotName> left) {
  DatasetName name = turn->dataset();
  if (left.empty()) return refresh(m, name, [step, turn] { step->succeed(); });
  SnapshotName next = left.back();
  left.pop_back();
  m.call(env::DestroySnapshot{next}, [&m, step, turn, left, name](StoreResult gone) {
    if (!gone && gone.error().code != ErrorCode::not_found) {
      Error error = gone.error();
      return refresh(m, name, [step, turn, error] { step->fail(error); });
    }
    destroy_next(m, step, turn, left);
  });
}

void destroy_whole(Machine& m, const Step& step, Turn turn) {
  DatasetName name = turn->dataset();
  m.call(env::DestroyDataset{name}, [&m, step, turn, name](StoreResult gone) {
    if (!gone && gone.error().code != ErrorCode::not_found) return step->fail(gone.error());
    forget(m, name);
    step->succeed();
  });
}

Status may_destroy(const Machine& m, const Destroy& action, const Dataset& there) {
  if (there.uuid != action.uuid) return fail(taken(there.name));
  ZED_CHECK(may_write(m, there));
  auto in_use = [&](const CheckpointId* snapshot) {
    return is_in_transfer(m, there.name, snapshot) || is_input(m, there.name, snapshot);
  };
  if (action.snapshots.empty() && in_use(nullptr))
    return fail(ErrorCode::busy, there.name.str() + " is in use", "try again later");
  for (const CheckpointId& id : action.snapshots)
    if (in_use(&id))
      return fail(ErrorCode::busy, "a snapshot of " + there.name.str() + " is in use",
                  "try again later");
  return {};
}

void destroy(Machine& m, const Step& step, const Destroy& action) {
  DatasetName name = action.dataset;
  with_checked(m, step, name, [&m, step, action, name](Turn turn, std::optional<Dataset> there) {
    if (!there) return step->succeed();
    if (auto allowed = may_destroy(m, action, *there); !allowed) return step->fail(allowed.error());
    if (action.snapshots.empty()) {
      if (m.is_written(name))
        return step->fail(ErrorCode::busy, "an attempt of " + name.str() + " has not ended",
                          "stop it");
      return destroy_whole(m, step, turn);
    }
    std::vector<SnapshotName> names;
    for (const CheckpointId& id : action.snapshots)
      if (const Snapshot* snapshot = there->find(id))
        names.push_back(SnapshotName{name, snapshot->name});
    destroy_next(m, step, turn, std::move(names));
  });
}

struct Performer {
  Machine& m;
  const Step& step;
  void operator()(const CreateDataset& a) const { create_dataset(m, step, a); }
  void operator()(const ImportFiles& a) const { import_files(m, step, a); }
  void operator()(const SendSnapshot& a) const { send_snapshot(m, step, a); }
  void operator()(const ReceiveSnapshot& a) const { receive_snapshot(m, step, a); }
  void operator()(const StartAttempt& a) const { start_attempt(m, step, a); }
  void operator()(const StopAttempt& a) const { stop_attempt(m, step, a); }
  void operator()(const AskCheckpoint& a) const { ask_checkpoint(m, step, a); }
  void operator()(const ApplyFork& a) const { apply_fork(m, step, a); }
  void operator()(const SetHome& a) const { set_home(m, step, a); }
  void operator()(const FollowHome& a) const { follow_home(m, step, a); }
  void operator()(const SetProperties& a) const { set_properties(m, step, a); }
  void operator()(const Destroy& a) const { destroy(m, step, a); }
  void operator()(const AdoptDataset& a) const { adopt_dataset(m, step, a); }
  void operator()(const SendToHost& a) const { send_to_host(m, step, a); }
};

Status check_order(const Machine& m, const PlanStep& step) {
  if (step.expect.term != m.highest_term)
    return fail(ErrorCode::stale, "the step is of controller term " + step.expect.term.str() +
                                      ", this node obeys " + m.highest_term.str());
  if (step.node != m.name)
    return fail(ErrorCode::invalid,
                "the step is for node " + step.node.str() + ", this is " + m.name.str());
  if (m.steps.size() >= most_steps)
    return fail(ErrorCode::busy, "too many steps are under way on " + m.name.str());
  return {};
}

}  // namespace

void order(Machine& m, const StepOrder& order) {
  const PlanStep& wanted = order.step;
  if (m.steps.count(wanted.id) > 0) return;  // under way
  if (auto done = m.results.find(wanted.id); done != m.results.end()) return m.say(done->second);
  Status acceptable = check_order(m, wanted);
  auto step = std::make_shared<StepRun>(m, wanted);
  if (!acceptable) return step->fail(acceptable.error());
  std::visit(Performer{m, step}, step->step().action);
}

void cancel(Machine& m, const CancelStep& cancel) {
  auto transfer = m.transfers.find(cancel.step);
  if (transfer != m.transfers.end())
    return cancel_transfer(m, transfer->second, "cancelled by the controller");
  for (auto& [key, live] : m.attempts) {
    auto& askers = live.askers;
    for (auto it = askers.begin(); it != askers.end(); ++it) {
      if (it->step->step().id != cancel.step) continue;
      Step step = it->step;
      askers.erase(it);
      return step->fail(ErrorCode::cancelled, "cancelled by the controller");
    }
  }
  // Every other step is short, or must not be left half done: it goes on and answers.
}

Status may_write(const Machine& m, const Dataset& dataset) {
  if (!dataset.uuid.is_nil() || may_be_made(dataset.name, m.roots)) return {};
  return fail(ErrorCode::refused, dataset.name.str() + " is not Zed's",
              "adopt it first: zedctl adopt " + dataset.name.str());
}

Status may_make(const Machine& m, const DatasetName& name) {
  if (may_be_made(name, m.roots)) return {};
  return fail(ErrorCode::refused, name.str() + " is under no declared root of node " + m.name.str(),
              "declare it in the cluster file: dataset \"" + name.str() + "\"");
}

Status check_expectation(const Expect& expect, const DatasetName& name, const Dataset* dataset) {
  auto stale = [&](const std::string& what) {
    return fail(ErrorCode::stale, name.str() + " " + what, plans_again);
  };
  if (expect.uuid && (dataset == nullptr || dataset->uuid != *expect.uuid))
    return stale(dataset == nullptr ? "is not there" : "is another dataset than expected");
  if (expect.timeline &&
      (dataset == nullptr || dataset->timeline().value_or(Timeline{}) != *expect.timeline))
    return stale("is on another timeline");
  if (expect.newest) {
    const Snapshot* newest = dataset != nullptr ? dataset->newest() : nullptr;
    if (newest == nullptr || newest->id != *expect.newest)
      return stale("has another newest snapshot than expected");
  }
  return {};
}

void with_checked(Machine& m, const Step& step, const DatasetName& name,
                  std::function<void(Turn, std::optional<Dataset>)> then) {
  bool queued = m.take_turn(name, [&m, step, name, then = std::move(then)](Turn turn) {
    m.call(env::InspectDataset{name}, [step, turn, name, then](StoreResult reply) {
      auto seen = reply_as<Dataset>(std::move(reply));
      if (!seen && seen.error().code != ErrorCode::not_found) return step->fail(seen.error());
      std::optional<Dataset> there;
      if (seen) there = std::move(*seen);
      if (auto met = check_expectation(step->step().expect, name, there ? &*there : nullptr); !met)
        return step->fail(met.error());
      if (there && !there->property(property::intent).empty())
        return step->fail(ErrorCode::busy, "a fork of " + name.str() + " is unfinished",
                          "the agent finishes it");
      then(turn, std::move(there));
    });
  });
  if (!queued) step->fail(ErrorCode::busy, "too many steps wait for " + name.str(), "try again");
}

}  // namespace zed::agent
