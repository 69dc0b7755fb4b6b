#pragma once
// The agent of one node as a pure state machine: events in, effects out (agent/effects.hpp). It
// reads no clock, rolls no dice and touches nothing: time is an argument, identities come from an
// IdSource.

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "agent/effects.hpp"
#include "base/id.hpp"
#include "base/units.hpp"
#include "core/dataset.hpp"
#include "core/job.hpp"

namespace zed::agent {

struct Machine;

/// Everything that an agent knows between two events. Nothing in it must survive a crash: what
/// matters is in the store's properties and in the attempts' records, and Started brings it back.
class State {
public:
  /// `ids` gives checkpoint ids and must outlive the state.
  explicit State(IdSource& ids);
  State(State&&) noexcept;
  State& operator=(State&&) noexcept;
  ~State();

  /// What the agent believes to be in its store, for tests and invariants.
  const std::map<DatasetName, Dataset>& datasets() const;
  /// Attempts that are live, or ended and not yet acknowledged.
  std::vector<Attempt> attempts() const;
  /// UUIDs of the GPUs that a live attempt holds: from the order to start until all of its
  /// processes are gone.
  std::multiset<std::string> held_gpus() const;
  /// The highest controller term that is durable here.
  ControllerTerm highest_term() const;
  /// Whether unfinished forks of an earlier run are finished and controllers are greeted.
  bool is_ready() const;

private:
  friend std::vector<Effect> on(State& state, const Event& event, Now now);
  std::unique_ptr<Machine> machine_;
};

/// Takes one event in. `now` never goes back on the monotonic clock; the wall clock may jump and
/// decides nothing. Started must be the first event. Of the effects returned, SayToController to
/// one link keep their order; all others are unordered.
std::vector<Effect> on(State& state, const Event& event, Now now);

}  // namespace zed::agent
