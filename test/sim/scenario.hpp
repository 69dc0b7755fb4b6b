#pragma once
// A simulated fleet for stories that are written by hand. Every invariant is checked after every
// event here too.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/invariants.hpp"
#include "sim/world.hpp"

namespace zed::sim {

/// A job that makes ten epochs, two seconds each, commits each one and does nothing odd.
JobBehaviour steady_job();

/// The controller is on the last machine; jobs prefer machine 0, the server with two A100.
class Scenario {
public:
  explicit Scenario(std::size_t machines = 4, std::size_t jobs = 1,
                    JobBehaviour behaviour = steady_job(), std::string cluster = {});

  World& world() { return world_; }
  void run_for(Millis duration);
  /// False if it did not come true within the time, or an invariant broke.
  bool run_until(const std::function<bool()>& true_now, Millis within = minutes(5));
  /// What broke, or "".
  const std::string& broken() const { return broken_; }

  /// Submits job0 and waits until it has committed that epoch.
  bool dispatch_and_reach(std::int64_t epoch);
  bool reach(std::int64_t epoch);
  /// The state that the controller shows, "" if it does not know the job.
  std::string state_of(const std::string& job);
  /// Machine on which the job's processes are; none if they are nowhere.
  std::optional<std::size_t> runs_on(const std::string& job);
  std::string node(std::size_t machine) { return world_.machine(machine).name.str(); }
  std::vector<std::size_t> holders(const std::string& dataset);
  /// Machines with this snapshot in the job's own dataset.
  std::vector<std::size_t> machines_with(const std::string& job, const std::string& snapshot);
  /// Branches of the job on a machine.
  std::vector<Dataset> branches(std::size_t machine, const std::string& job);
  /// Lines of `state` in the job's folder there.
  std::vector<EpochLine> epochs(std::size_t machine, const std::string& job);
  void roll_back(const std::string& job, const std::string& checkpoint, bool discard = false);
  bool finishes(const std::string& job, Millis within = minutes(10));

private:
  const controller::DesiredJob* find(const std::string& job);

  World world_;
  Invariants invariants_;
  std::string broken_;
};

}  // namespace zed::sim
