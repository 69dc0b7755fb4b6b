#pragma once
// The shell around a real controller: its journal with fsyncs that take time, its links, and the
// clients that ask. One object is one run of the controller; a crash ends it.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "controller/controller.hpp"
#include "controller/effects.hpp"
#include "controller/records.hpp"
#include "sim/random.hpp"

namespace zed::sim {

class World;
struct Machine;

class SimController : public std::enable_shared_from_this<SimController> {
public:
  using Answered = std::function<void(const Result<Value>&)>;

  SimController(World& world, std::size_t machine, std::uint64_t run);

  std::uint64_t run() const { return run_; }
  std::size_t machine_index() const { return machine_; }
  bool alive() const { return !dead_; }
  const controller::State& state() const { return *state_; }
  /// The fold of what is durable on its disk: kept by the observer, not by the controller.
  const controller::DesiredState& durable() const { return durable_; }
  /// The highest record of this run that is durable here.
  std::uint64_t durable_seq() const { return durable_seq_; }

  void start();
  void hear(const controller::Event& event);
  /// A client asks over its own connection to this machine; the answer may never come.
  void ask(api::Request operation, Answered answered);
  /// The program is killed. Records under way are on the disk up to any point.
  void die();
  void crash_after_effects(std::int64_t count) { crash_in_ = count; }

private:
  Machine& machine();
  void tick();
  void perform_all(std::vector<controller::Effect> effects);
  void in_a_moment(std::function<void()> perform);
  void say_next();
  void keep_nothing(PlanStep& step);
  void note_order(const PlanStep& step);
  void write(controller::WriteJournal&& effect);
  void sync();
  void append(std::uint64_t seq, std::string record);
  void compact(controller::CompactJournal&& effect);
  void fold_one(const std::string& record, std::uint64_t seq);

  World& world_;
  std::size_t machine_;
  std::uint64_t run_;
  Random random_;
  std::unique_ptr<IdSource> ids_;
  std::unique_ptr<controller::State> state_;
  bool dead_ = false;
  std::int64_t crash_in_ = -1;
  std::deque<controller::SayToAgent> outbox_;
  std::map<std::uint64_t, std::string> unwritten_;  ///< by seq; not fsynced yet
  bool syncing_ = false;
  std::map<std::uint64_t, Answered> asked_;
  std::uint64_t next_request_ = 1;
  controller::DesiredState durable_;
  std::uint64_t durable_seq_ = 0;
  std::set<std::pair<JobId, Generation>> ordered_;
};

}  // namespace zed::sim
