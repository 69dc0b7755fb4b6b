#pragma once
// The inside of agent::State: what it holds and the few services that all matters share. Each
// matter (links, steps, attempts, checkpoints, forks, transfers, inventory) is a file of functions
// over this struct.
//
// Two tokens make the procedures safe to write:
// - Turn: the right to change one dataset. Whoever holds the shared pointer (usually the closure
//   that waits for a store's reply) is alone; when the last holder is gone the next one runs.
// - Step: an order under way. It answers its controller exactly once; one that is dropped without
//   an answer answers `internal`, so that a forgotten branch is seen instead of hanging a job.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/effects.hpp"
#include "base/id.hpp"

namespace zed::agent {

struct Machine;
using StoreResult = Result<env::StoreReply>;

class TurnToken {
public:
  TurnToken(Machine& machine, DatasetName dataset);
  ~TurnToken();
  TurnToken(const TurnToken&) = delete;
  TurnToken& operator=(const TurnToken&) = delete;
  const DatasetName& dataset() const { return dataset_; }

private:
  Machine& machine_;
  DatasetName dataset_;
};
using Turn = std::shared_ptr<TurnToken>;

/// The hint of a step that is refused because the fleet is not as it was planned for.
inline constexpr char plans_again[] = "the controller plans again";

class StepRun {
public:
  StepRun(Machine& machine, PlanStep step);
  ~StepRun();
  StepRun(const StepRun&) = delete;
  StepRun& operator=(const StepRun&) = delete;

  const PlanStep& step() const { return step_; }
  bool answered() const { return answered_; }
  void succeed(std::optional<CheckpointId> snapshot = std::nullopt, Bytes moved = {});
  void fail(Error error);
  void fail(ErrorCode code, std::string message, std::string hint = {}) {
    fail(Error{code, std::move(message), {}, std::move(hint)});
  }

private:
  void answer(StepResult result);
  Machine& machine_;
  PlanStep step_;
  bool answered_ = false;
};
using Step = std::shared_ptr<StepRun>;

struct Link {
  enum class Phase {
    connected,  ///< not greeted yet: unfinished forks come first
    greeted,    ///< hello sent
    saving,     ///< its higher term is being made durable; orders wait
    active,     ///< the one that is obeyed and reported to
    stale,      ///< of an older term: told so, closed at the next tick
  };
  Phase phase = Phase::connected;
  ControllerTerm term;
  Instant since;
  std::vector<ControllerMessage> held;  ///< arrived while saving
};

struct AttemptKey {
  JobId job;
  Generation generation;
  friend auto operator<=>(const AttemptKey&, const AttemptKey&) = default;
};

/// What a stop has come to.
struct Stopping {
  StopMode mode = StopMode::stop;
  std::string reason;
  bool signalled = false;  ///< StopProcesses was emitted
  Instant next;            ///< ask: when patience ends; signalled: when to repeat
};

struct LiveAttempt {
  Attempt attempt;
  env::LaunchRequest launch;
  std::optional<JobConnection> connection;
  std::optional<Stopping> stopping;
  std::vector<Step> enders;   ///< StopAttempt steps that wait for the end
  bool launched = false;      ///< LaunchAttempt was emitted: an exit will be reported
  bool adopted = false;       ///< started by an earlier run of the agent
  bool said_stopped = false;  ///< the job ends with work remaining: exit 0 is no success
  bool setting_up = false;    ///< the supervisor runs its setup; `starting` until the job begins
  bool orphaned = false;      ///< its supervisor was lost
  std::string gpu_trouble;    ///< a GPU that it held broke: why it ends
  bool outrun = false;        ///< a person rolled its dataset back by hand: commits no more
  std::int64_t closing_tries = 0;

  struct Asker {
    Step step;
    Instant deadline;
  };
  std::vector<Asker> askers;
  std::map<std::uint64_t, std::vector<JobConnection>> asking;  ///< requests under way
  std::map<std::uint64_t, env::CheckpointReply> answers;       ///< of this run of the agent
  std::deque<std::uint64_t> answer_order;
  std::optional<Millis> every;  ///< checkpoint_every "N minutes"
  Instant next_timed;
  bool timed_under_way = false;

  AttemptKey key() const { return {attempt.job, attempt.generation}; }
  /// Its supervisor does not take orders yet.
  bool is_launching() const { return attempt.phase == AttemptPhase::starting && !setting_up; }
  bool has_processes() const { return attempt.phase < AttemptPhase::closing; }
  bool has_ended() const { return attempt.phase == AttemptPhase::ended; }
};

struct Transfer {
  Step step;
  StartTransfer::Role role = StartTransfer::Role::send;
  Ticket ticket;
  DatasetName dataset;   ///< the one on this node
  bool to_host = false;  ///< by ssh, to a machine without an agent: we are the end that tells
  bool started = false;
  bool cancelled = false;
  std::string why_cancelled;
  std::optional<Instant> last_progress;
};

/// An import under way. Code is imported in turn: which dataset it becomes is known at its end.
struct Importing {
  Step step;
  ImportFiles action;
  Turn turn;
};

/// A fork, or a replica's return to its home's history, that waits for transfers and processes to
/// end.
struct WaitingFork {
  Step step;
  DatasetName dataset;
  Instant since;
};

struct Lane {
  bool busy = false;
  std::deque<std::function<void(Turn)>> queue;
};

struct Machine {
  explicit Machine(IdSource& source) : ids(source) {}
  ~Machine() { closing_down = true; }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // ---- services ----
  /// One call of the store; `then` runs with its reply.
  void call(env::StoreRequest request, std::function<void(StoreResult)> then);
  /// An effect other than a store call whose result is a Status.
  EffectId expect_status(std::function<void(Status)> then);
  void after(Millis delay, std::function<void()> then);
  /// Runs `work` when it is alone on the dataset; false if too many wait already.
  bool take_turn(const DatasetName& dataset, std::function<void(Turn)> work);
  void emit(Effect effect) { effects.push_back(std::move(effect)); }
  /// To the controller that is obeyed; dropped while there is none (hello and the inventory tell
  /// it all again).
  void say(AgentMessage message);
  void notice(const std::string& subject, const std::string& text);
  CheckpointId new_checkpoint_id() { return CheckpointId{ids.next()}; }
  EffectId next_effect() { return ++last_effect; }
  /// Runs what has become possible: freed lanes, due timers, forks whose hindrances are gone.
  void pump();
  void free_lane(const DatasetName& dataset);
  /// Whether what was read at that turn clock still tells how the dataset is.
  bool is_current(const DatasetName& dataset, std::uint64_t read_at) const;

  LiveAttempt* find_attempt(const AttemptKey& key);
  /// The job's attempt that has not ended, or nullptr.
  LiveAttempt* live_attempt(const JobId& job);
  LiveAttempt* live_attempt_on(const DatasetName& dataset);
  bool is_written(const DatasetName& dataset) const;  ///< by an attempt that has not ended
  bool is_forking(const DatasetName& dataset) const;

  // ---- identity ----
  bool closing_down = false;  ///< tokens are dropped because the agent itself goes
  IdSource& ids;
  Now now;
  NodeId node;
  NodeName name;
  NodeFacts facts;
  std::vector<Gpu> gpus;
  Bytes memory_free;
  std::vector<GpuLoad> loads;  ///< not told yet
  bool power_changed = false;  ///< and not told yet
  Bytes pool_free;
  std::vector<DatasetName> roots;

  // ---- controllers ----
  ControllerTerm highest_term;
  NodeName journal_second;
  std::map<LinkId, Link> links;
  std::optional<LinkId> active;
  std::vector<HandOver> tails;  ///< of controllers whose term is over, until one can have them
  Instant last_heartbeat;
  Instant last_space;

  // ---- the journal's copy ----
  std::uint64_t copy_seq = 0;
  ControllerTerm copy_term;
  std::deque<JournalRecords> copy_queue;
  bool copy_under_way = false;

  // ---- the store's content ----
  std::map<DatasetName, Dataset> datasets;
  std::string cursor;
  bool scanning = false;
  Instant last_scan;
  std::set<DatasetName> to_inspect;
  std::set<DatasetName> inspecting;
  bool ready = false;
  bool listed = false;
  std::size_t unfinished_forks = 0;  ///< of an earlier run; hello waits for them

  std::map<AttemptKey, LiveAttempt> attempts;
  std::map<StepId, Transfer> transfers;
  std::map<StepId, Importing> imports;
  std::vector<WaitingFork> waiting_forks;
  std::set<DatasetName> forking;  ///< their fork procedure holds the turn or waits for it
  /// Where a fork puts what it leaves: half done until the fork is, and nobody's hand.
  std::multiset<DatasetName> branches_to_be;

  /// Our holds, as the property `held` of each dataset says: "<snapshot>=<tag>".
  std::map<DatasetName, std::set<std::string>> held;
  std::set<DatasetName> told_rolled_back;

  std::map<StepId, StepRun*> steps;      ///< under way
  std::map<StepId, StepResult> results;  ///< of the last steps, for repeated orders
  std::deque<StepId> result_order;

  // ---- machinery; destroyed first, so that tokens in closures find the rest alive ----
  std::vector<Effect> effects;
  EffectId last_effect = 0;
  std::map<DatasetName, Lane> lanes;
  /// When a dataset was last ours to change, in turns: a look at the store that began before that
  /// says nothing.
  std::uint64_t turn_clock = 0;
  std::map<DatasetName, std::uint64_t> touched;
  std::set<DatasetName> runnable;  ///< lanes that may have become free
  std::map<EffectId, std::function<void(StoreResult)>> store_calls;
  std::map<EffectId, std::function<void(Status)>> status_calls;
  std::map<EffectId, std::uint64_t> log_reads;  ///< effect -> the controller's request number
  std::map<EffectId, std::uint64_t> questions;  ///< whose answer the shell prepares
  std::multimap<Instant, std::function<void()>> timers;
};

/// What a store's reply holds. A store that answers with another kind broke its contract: that is
/// an error, not a crash.
template <class T> Result<T> reply_as(StoreResult reply) {
  if (!reply) return fail(std::move(reply).error());
  if (T* value = std::get_if<T>(&*reply)) return std::move(*value);
  return fail(ErrorCode::internal, "the store answered with another kind of value");
}
inline Status reply_status(StoreResult reply) {
  if (!reply) return fail(std::move(reply).error());
  return {};
}

}  // namespace zed::agent
