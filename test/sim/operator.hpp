#pragma once
// The people of a simulated fleet: they submit jobs, roll back, stop, drain and take over, through
// the operations that everyone uses, and look at the jobs now and then.

#include <cstdint>
#include <functional>
#include <string>

#include "api/operations.hpp"
#include "sim/random.hpp"

namespace zed::sim {

class World;

/// The name of the job of that number: "job0".
std::string job_name(std::size_t number);

class Operator {
public:
  explicit Operator(World& world);

  /// Begins to look at the jobs every few seconds.
  void start();

  void dispatch(std::size_t job);
  /// Rolls back to a checkpoint of the current timeline; `which` chooses among them.
  void rollback(std::size_t job, std::uint64_t which, bool discard, bool hold, bool force);
  /// `node` empty: anywhere.
  void resume(std::size_t job, std::uint64_t which, const std::string& node, bool force);
  void resume_newest(std::size_t job);
  /// A planned move, if it runs; else it goes on there.
  void resume_on(std::size_t job, const std::string& node);
  void stop(std::size_t job);
  void cancel(std::size_t job);
  void checkpoint(std::size_t job);
  void node_duty(std::size_t machine, api::NodeDuty duty);

  /// Jobs that somebody submitted and got a positive answer for.
  const std::set<std::size_t>& submitted() const { return submitted_; }

private:
  using Then = std::function<void(const Result<Value>&)>;
  /// Of the newest controller; nothing happens if none runs.
  void ask(api::Request operation, Then then);
  void look();
  void
  pick_checkpoint(std::size_t job, std::uint64_t which,
                  std::function<void(const api::CheckpointRow&, const api::CheckpointsReply&)>);
  void promise(api::JobRow row, int kind, bool safe, std::string from);

  World& world_;
  Random random_;
  SeededIds ids_;
  std::map<std::size_t, std::string> uuids_;  ///< of submits: a repeated one is one job
  std::set<std::size_t> submitted_;
};

}  // namespace zed::sim
