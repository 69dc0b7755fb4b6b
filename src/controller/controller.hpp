#pragma once
// The controller: desired state from its journal, the fleet view from its agents, and what follows
// from the two, as one pure state machine.
//
//   State state(ids);
//   for (event : events) perform(on(state, event, now));
//
// The rule of effects (agent/effects.hpp) binds: effects of one vector are unordered and any may be
// lost in a crash. Nothing is acted on before JournalWritten reports it durable; forks and moves
// wait until they are safe. docs/controller.md is the page about this room.

#include <cstdint>
#include <memory>
#include <vector>

#include "base/id.hpp"
#include "base/units.hpp"
#include "controller/desired.hpp"
#include "controller/effects.hpp"
#include "core/fleet.hpp"

namespace zed::controller {

struct Machine;

/// One run of a controller. Owned and driven by one thread; the first event is Started.
class State {
public:
  /// `ids` outlives this; it makes step, dataset and checkpoint identities.
  explicit State(IdSource& ids);
  State(State&&) noexcept;
  State& operator=(State&&) noexcept;
  ~State();

  // For the simulation's invariants, metrics and the shell; changes nothing.
  const DesiredState& desired() const;
  const FleetView& view() const;
  ControllerTerm term() const;
  /// What the job is now, derived from what is desired and what is known. pending for one that
  /// does not exist.
  JobState state_of(const JobId& job) const;
  /// Journal records durable here and on the second node.
  std::uint64_t durable_seq() const;
  std::uint64_t safe_seq() const;
  /// Plan steps that agents were told to carry out and have not answered.
  std::vector<PlanStep> live_steps() const;
  bool has_stepped_down() const;

  Machine& machine() { return *machine_; }

private:
  std::unique_ptr<Machine> machine_;
};

/// Takes one event in: what to do about it. Total: no event of any content trips it.
std::vector<Effect> on(State& state, const Event& event, Now now);

}  // namespace zed::controller
