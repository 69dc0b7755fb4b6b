#pragma once
// The shell around a real agent: performs its effects on the simulated machine and turns what comes
// of them into events. One object is one run of the agent; a crash ends it.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "agent/agent.hpp"
#include "agent/effects.hpp"
#include "sim/random.hpp"

namespace zed::sim {

class World;
struct Machine;

/// Kills the agent around one of the effects to come.
struct CrashPoint {
  std::int64_t effects_left = -1;   ///< -1: none is set
  bool only_store_changes = false;  ///< counts only effects that change the store (a fork's steps)
  bool only_in_fork = false;        ///< counts only once an order to fork has been heard
  bool before = false;              ///< the effect at which it dies does not happen any more
};

class SimAgent : public std::enable_shared_from_this<SimAgent> {
public:
  SimAgent(World& world, std::size_t machine, std::uint64_t run);

  std::uint64_t run() const { return run_; }
  void start();
  void hear(const agent::Event& event);
  /// The program is killed: each store call under way happens wholly or not at all.
  void die();
  void set_crash_point(CrashPoint point) {
    crash_ = point;
    told_to_fork_ = false;
  }
  const agent::State& state() const { return *state_; }

private:
  using Perform = std::function<void()>;
  Machine& machine();
  void tick();
  void redial();
  void perform_all(std::vector<agent::Effect> effects);
  void in_a_moment(bool changes_store, Perform perform);
  bool dies_here(bool changes_store, bool before);
  void reply(Millis delay, agent::Event event);
  void say_next();

  void perform(agent::SayToController&& effect);
  void perform(agent::CloseLink&& effect);
  void perform(agent::CallStore&& effect);
  void perform(agent::LaunchAttempt&& effect);
  void perform(agent::StopProcesses&& effect);
  void perform(agent::ExtendLease&& effect);
  void perform(agent::FreezeProcesses&& effect);
  void perform(agent::ForgetAttempt&& effect);
  void perform(agent::AskJob&& effect);
  void perform(agent::AnswerJob&& effect);
  void perform(agent::StartTransfer&& effect);
  void perform(agent::CancelTransfer&& effect);
  void perform(agent::ImportPath&& effect);
  void perform(agent::StartHostSend&& effect);
  void perform(agent::UnpackCode&& effect);
  void perform(agent::SaveNodeState&& effect);
  void perform(agent::StoreJournalCopy&& effect);
  void perform(agent::FetchLog&& effect);
  void perform(agent::AnswerQuestion&& effect);

  void launch(const agent::LaunchAttempt& effect);
  Status store_journal_copy(const JournalRecords& records);
  std::shared_ptr<class SimJob> job_of(std::uint64_t connection);

  World& world_;
  std::size_t machine_;
  std::uint64_t run_;
  Random random_;
  std::unique_ptr<IdSource> ids_;
  std::unique_ptr<agent::State> state_;
  bool dead_ = false;
  CrashPoint crash_;
  bool told_to_fork_ = false;
  std::deque<agent::SayToController> outbox_;
  std::map<std::uint64_t, agent::CallStore> store_calls_;  ///< under way
  std::uint64_t next_call_ = 1;
};

}  // namespace zed::sim
