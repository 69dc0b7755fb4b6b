#pragma once
// A small fleet for this room's tests: one real controller, agents that do at once what they are
// told, a journal that writes at once, and a clock that only moves when told. The whole simulation
// with real agents is test/sim; this one is for reading.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controller/controller.hpp"

namespace zed::controller::testing {

/// Identities in order: 1, 2, 3…
class CountingIds : public IdSource {
public:
  explicit CountingIds(std::uint8_t series = 1) : series_(series) {}
  std::array<std::uint8_t, 16> next() override;

private:
  std::uint8_t series_;
  std::uint64_t count_ = 0;
};

NodeName node(const std::string& name);
DatasetName dataset(const std::string& name);

/// An agent as the controller sees it.
struct FakeAgent {
  NodeName name;
  NodeId id;
  NodeFacts facts;
  std::vector<Gpu> gpus;
  std::map<DatasetName, Dataset> datasets;
  std::vector<Attempt> attempts;
  std::optional<LinkId> link;
  ControllerTerm term;
  std::uint64_t copy_seq = 0;
  ControllerTerm copy_term;
  std::vector<std::string> copy;
  bool silent = false;             ///< neither hears nor speaks
  bool has_no_inventory = false;   ///< it is still looking at its pool
  std::set<std::string> refuses;   ///< tags of actions that it answers with `io`
  std::set<std::string> swallows;  ///< tags of actions that it never answers
  std::vector<PlanStep> orders;    ///< all that it was told, oldest first
  std::vector<HandOver> tails;     ///< last words of controllers
  /// Answers questions; without one they are `unsupported`.
  std::function<Result<NodeReply>(const NodeQuestion&)> answers;
};

class World {
public:
  /// "server: A100/80 x2; workstation: RTX 4090/24; cpu:".
  explicit World(const std::string& nodes, NodeName machine = {});

  // ---- the world moves
  void pass(Millis time);
  /// A long time in which nothing happens, at once: both clocks move, and nobody falls silent.
  void leap(Millis time);
  /// Only the wall clock moves.
  void wall_jumps(Millis by) { now_.wall.ms += by.value; }
  /// Delivers all that is under way.
  void settle();
  /// The controller begins again; its disk has lost so many of the newest records.
  void restart(std::size_t lost_records = 0);
  /// The controller's machine burns down: another begins a new term from the copy on `node`.
  void take_over_on(const std::string& node);
  void goes_silent(const std::string& node);
  void returns(const std::string& node);

  // ---- people
  Result<Value> ask(const api::Request& request) { return ask_as("tester", request); }
  Result<Value> ask_as(const std::string& who, const api::Request& request);
  Result<Value> apply(const std::string& text);
  Result<Value> dispatch(const std::string& job);
  /// The answer to what was delivered as Requested{id, …}; nullptr: none yet.
  const Result<Value>* answer_of(RequestId id) const {
    auto found = answers_.find(id);
    return found == answers_.end() ? nullptr : &found->second;
  }
  /// The reply, or the test fails.
  Value must(const api::Request& request);

  // ---- jobs, as their node sees them
  void commits(const std::string& job, const std::string& checkpoint);
  void exits(const std::string& job, ExitRecord::Kind kind, const std::string& on = "");
  void has_model(const std::string& node, const std::string& name, Bytes size = mebibytes(100));

  // ---- what there is
  FakeAgent& agent(const std::string& name) { return agents_.at(testing::node(name)); }
  const DesiredJob& job(const std::string& name) const;
  /// "running on server", "pending", "waiting".
  std::string show(const std::string& job) const;
  /// "epoch-1 epoch-2 | closing": snapshots of the job's dataset on a node; "-" if there is none.
  std::string holds(const std::string& node, const std::string& job) const;
  /// Names of branches of the job on a node.
  std::vector<std::string> branches(const std::string& node, const std::string& job) const;
  std::size_t live_attempts() const;
  bool was_told(const std::string& node, const std::string& tag) const;
  std::vector<std::string> journal;
  std::vector<api::FleetEvent> events;
  std::map<std::string, std::uint8_t> contents;  ///< of folders of code: equal numbers, equal code
  std::optional<StepDown> stepped_down;
  bool hold_journal = false;   ///< writes wait until it is false
  bool break_journal = false;  ///< writes fail
  State& state() { return *state_; }
  Now now() const { return now_; }
  void deliver(const Event& event);
  void say(FakeAgent& agent, AgentMessage message);

private:
  void perform(const Effect& effect);
  void hear(FakeAgent& agent, const ControllerMessage& message);
  void carry_out(FakeAgent& agent, const PlanStep& step);
  void pack(FakeAgent& agent, const PlanStep& step, Dataset made);
  void connect(FakeAgent& agent);
  void disconnect(FakeAgent& agent);
  void done(FakeAgent& agent, const PlanStep& step, std::optional<Error> error = {},
            std::optional<CheckpointId> snapshot = {});
  void changed(FakeAgent& agent, const Dataset& dataset);
  Snapshot& add_snapshot(FakeAgent& agent, Dataset& dataset, const std::string& name,
                         Properties properties);
  void end_attempt(FakeAgent& agent, Attempt& attempt, ExitRecord exit);
  void begin(bool take_over);

  // One each action, as an agent carries it out where nothing goes wrong.
  void carry_out(FakeAgent& agent, const PlanStep& step, const CreateDataset& action);
  void carry_out(FakeAgent& agent, const PlanStep& step, const ImportFiles& action);
  void carry_out(FakeAgent& agent, const PlanStep& step, const SendSnapshot& action);
  void carry_out(FakeAgent& agent, const PlanStep& step, const ReceiveSnapshot& action);
  void carry_out(FakeAgent& agent, const PlanStep& step, const StartAttempt& action);
  void carry_out(FakeAgent& agent, const PlanStep& step, const StopAttempt& action);
  void carry_out(FakeAgent& agent, const PlanStep& step, const AskCheckpoint& action);
  void carry_out(FakeAgent& agent, const PlanStep& step, const ApplyFork& action);
  void carry_out(FakeAgent& agent, const PlanStep& step, const SetHome& action);
  void carry_out(FakeAgent& agent, const PlanStep& step, const FollowHome& action);
  void carry_out(FakeAgent& agent, const PlanStep& step, const SetProperties& action);
  void carry_out(FakeAgent& agent, const PlanStep& step, const Destroy& action);
  void carry_out(FakeAgent& agent, const PlanStep& step, const AdoptDataset& action);
  void carry_out(FakeAgent& agent, const PlanStep& step, const SendToHost& action);

  CountingIds ids_;
  std::optional<State> state_;
  ControllerId controller_;
  NodeName machine_;
  Now now_{{1'000'000}, {1'700'000'000'000}};
  std::map<NodeName, FakeAgent> agents_;
  std::deque<Event> coming_;
  std::deque<std::uint64_t> unwritten_;
  std::map<RequestId, Result<Value>> answers_;
  LinkId next_link_ = 1;
  RequestId next_request_ = 1;
  std::uint64_t next_txg_ = 1;
  std::uint64_t last_seq_ = 0;
};

}  // namespace zed::controller::testing
