#pragma once
// A whole fleet in one process, under a virtual clock: machines, their agents and jobs, controllers
// with their journals, the network between them, and the people who use it.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/effects.hpp"
#include "controller/effects.hpp"
#include "core/cluster.hpp"
#include "sim/history.hpp"
#include "sim/machine.hpp"
#include "sim/network.hpp"
#include "sim/operator.hpp"
#include "sim/planted.hpp"
#include "sim/schedule.hpp"
#include "sim/sim_agent.hpp"
#include "sim/sim_controller.hpp"
#include "sim/sim_job.hpp"
#include "sim/transfers.hpp"

namespace zed::sim {

struct WorldSettings {
  std::uint64_t seed = 1;
  std::size_t machines = 4;
  std::size_t jobs = 2;
  Planted planted = Planted::none;
  std::size_t controller_machine = 0;
  /// Of all jobs, which then also prefer the A100 of machine 0; none: drawn for each.
  std::optional<JobBehaviour> behaviour;
  std::string cluster;  ///< its file; empty: a plain one with a behaviour, else drawn
};

class World {
public:
  explicit World(WorldSettings settings);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  std::uint64_t seed() const { return settings_.seed; }
  Planted planted() const { return settings_.planted; }
  /// True once: for planted bugs that strike a single time.
  bool strike_once() { return !std::exchange(struck_, true); }
  std::size_t job_count() const { return settings_.jobs; }
  /// What the fleet was declared to be.
  const Cluster& cluster() const { return cluster_; }
  JobBehaviour behaviour_of(std::string_view job) const {
    return settings_.behaviour ? *settings_.behaviour : draw_behaviour(settings_.seed, job);
  }

  // ---- machines ---------------------------------------------------------------------------------
  Machine& machine(std::size_t index) { return *machines_[index]; }
  const Machine& machine(std::size_t index) const { return *machines_[index]; }
  std::size_t machine_count() const { return machines_.size(); }
  bool machine_is_up(std::size_t index) const { return machines_[index]->up; }
  std::optional<std::size_t> machine_named(const NodeName& name) const;

  void start_agent(std::size_t index);
  void crash_agent(std::size_t index);
  /// Power off: agent, controller and every process there end; the disk stays.
  void crash_machine(std::size_t index);
  void boot_machine(std::size_t index);
  /// The machine never comes back, nor does its disk, nor what was on no other one.
  void lose_disk(std::size_t index);

  bool agent_runs(std::size_t machine, std::uint64_t run) const;
  /// Drops the event if that run is over.
  void tell_agent(std::size_t machine, std::uint64_t run, const agent::Event& event);
  void tell_current_agent(std::size_t machine, const agent::Event& event);
  /// All processes of an attempt are gone: the exit record becomes durable and the agent hears it.
  void attempt_ended(std::size_t machine, const env::LaunchRequest& launch, ExitRecord exit,
                     bool work_remains = false);
  /// A store's content may have changed: invariants look at it again.
  void touch(std::size_t machine) { touched_.insert(machine); }
  std::set<std::size_t> take_touched() { return std::exchange(touched_, {}); }
  /// Carries out a store request as an agent's or a person's child would, and takes note.
  Result<env::StoreReply> call_store(std::size_t machine, const env::StoreRequest& request);

  // ---- controllers ------------------------------------------------------------------------------
  /// Starts one on that machine from its own journal.
  void start_controller(std::size_t machine);
  /// A person's takeover: starts one from the journal copy there.
  void take_over(std::size_t machine);
  /// Somebody who finds the controller's machine silent takes over where the agents say that the
  /// journal's copy is; nothing happens if there is no such place.
  void people_take_over();
  /// What a takeover there asks every agent that it reaches (design: the number is 1 + the
  /// highest).
  ControllerTerm highest_term_seen_from(std::size_t machine) const;
  /// From now on somebody looks every 10 s whether a controller runs, and starts one if none does:
  /// again, or by a takeover.
  void revive_a_controller();
  /// Records became durable on that machine.
  void journal_grew(std::size_t machine, const controller::DesiredState& durable);
  /// The copy of a journal on that machine has more records.
  void copy_grew(std::size_t machine);
  void crash_controller(std::uint64_t run);
  bool controller_runs(std::uint64_t run) const;
  void tell_controller(std::uint64_t run, const controller::Event& event);
  const std::vector<std::shared_ptr<SimController>>& controllers() const { return controllers_; }
  std::shared_ptr<SimController> controller_on(std::size_t machine) const;
  /// The one of the highest term that runs; nullptr if none does.
  std::shared_ptr<SimController> newest_controller() const;
  std::shared_ptr<SimController> controller_of_run(std::uint64_t run) const;

  std::uint64_t next_run() { return ++last_run_; }
  std::uint64_t next_connection() { return ++last_connection_; }
  std::uint64_t next_attempt() { return ++last_attempt_; }

private:
  bool is_elsewhere(std::size_t machine, const CheckpointId& snapshot);
  void make_machine(std::size_t index, const struct Hardware& hardware);
  void note_store_change(std::size_t machine, const env::StoreRequest& request,
                         const env::StoreReply& reply);
  void note_unheard_snapshot(std::size_t machine, const env::StoreRequest& request);
  void note_snapshot(std::size_t machine, const DatasetName& dataset, const Snapshot& snapshot);
  void tear(Machine& m, const env::StoreRequest& request);
  void destroy_last_copy(std::size_t machine, const env::StoreRequest& request);
  /// Somebody took over from the controller there: it is not started again.
  bool machine_was_left_by_controller(std::size_t machine) const;
  std::optional<std::size_t> second_by_agents() const;
  void forge_journal(std::size_t machine);

  // Declared first: all of the rest is made from it, and streams die before their stores.
  WorldSettings settings_;
  Cluster cluster_;
  std::vector<std::unique_ptr<Machine>> machines_;
  std::vector<std::shared_ptr<SimController>> controllers_;
  std::set<std::size_t> touched_;
  std::set<std::size_t> left_by_controller_;
  std::uint64_t last_run_ = 0;
  std::uint64_t last_connection_ = 0;
  std::uint64_t last_attempt_ = 0;
  bool struck_ = false;

public:
  Schedule schedule;
  Network network;
  Transfers transfers;
  Operator people;
  History history;
  Random chance;  ///< what has no stream of its own
  /// Set by the first invariant that does not hold, or by a shell that saw the impossible.
  std::optional<std::string> broken;
};

}  // namespace zed::sim
