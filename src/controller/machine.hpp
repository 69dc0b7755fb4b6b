#pragma once
// The parts of one controller and the few verbs that every file of this room uses on them. Inside
// the room only.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/controller.hpp"
#include "controller/event_ring.hpp"
#include "controller/fleet.hpp"
#include "controller/journal.hpp"
#include "controller/link_rates.hpp"
#include "controller/pending.hpp"
#include "controller/records.hpp"
#include "controller/steps.hpp"
#include "sched/clear.hpp"

namespace zed::controller {

/// A request that waits: for its record to be durable, for a step, or for an agent's page.
struct WaitingRequest {
  std::uint64_t seq = 0;       ///< answered when this is durable; 0: not by that
  std::string need;            ///< answered by this need's outcome; "": not by that
  std::uint64_t log_page = 0;  ///< answered by this LogPage; 0: not by that
  std::optional<LinkId> link;  ///< fails when this connection goes, unless it persists
  Instant deadline;
  std::string what;  ///< "import /data/llama as models/llama on server"
  /// With `seq`: whether what was decided is on two machines. Waited for a moment once it is
  /// durable, so that an answer does not say of what is under way that it is not there.
  std::function<bool(const Machine&)> is_safe;
  std::optional<Instant> safe_by;  ///< the end of that moment
  /// The answer once what it waits for has come; `outcome` is set if that was a need.
  std::function<Result<Value>(Machine&, const NeedOutcome* outcome)> answer;
  /// Set instead if a node's NodeAnswer of the number `log_page` is waited for.
  std::function<void(Machine&, RequestId, const Result<NodeReply>&)> on_reply;
  std::string no_log;  ///< with `log_page`: what a person is told if there is none yet
  /// Set instead if the operation goes on from there and answers later.
  std::function<void(Machine&, RequestId, const NeedOutcome&)> proceed;
  /// It goes on after a failure that may pass, and when a node went away from the need.
  bool persists = false;
};

/// A planned move that is being prepared. Not journalled: derived again after a restart.
struct Move {
  NodeName target;
  std::string why;
};

/// A node where a job could not be started: left alone for a while.
struct Avoided {
  std::string why;
  Instant until;
};

/// What a policy with `every` brings to one target before it waits again.
struct PolicyRound {
  Instant next;  ///< when the next one may begin
  NodeName source;
  bool open = false;                         ///< not all of it is there
  std::map<DatasetId, std::uint64_t> goals;  ///< createtxg of the newest snapshot at its beginning
};

/// GPUs that are kept free for a job that waits.
struct Hold {
  sched::Clearing clearing;
  std::optional<Instant> until;  ///< they are all free then at the latest; none: unknown
  Instant made;
  bool evicts = false;  ///< others were told to make room: kept however the queue turns
  bool wanted = false;  ///< by the present pass
};

/// Jobs that could not be started on a node, one after the other without a success between.
struct NodeTrouble {
  std::set<JobId> jobs;
};

struct Machine {
  explicit Machine(IdSource& source) : ids(source) {}

  IdSource& ids;
  Now now;
  std::vector<Effect> out;

  bool started = false;
  bool over = false;          ///< stepped down
  bool copy_is_seen = false;  ///< the second node's, since the start
  ControllerTerm term;
  NodeName home_machine;
  Millis lost_after = seconds(30);
  Millis lease = minutes(15);  ///< of exclusive jobs
  Instant started_at;

  /// How long after the last grant an exclusive job may still run: what is late on the way, and the
  /// grace between SIGTERM and SIGKILL, count as well.
  Millis lease_and_margin(const DesiredJob& job) const {
    return lease + std::max(seconds(10), Millis{lease.value / 15}) + job.job.grace;
  }

  DesiredState desired;
  Journal journal;
  Fleet fleet;
  Steps steps;
  EventRing events;
  PendingQueue pending;

  std::set<JobId> dirty;
  bool place_due = false;
  bool policies_due = false;
  bool models_due = false;
  bool inputs_due = false;        ///< what a placed job waits for may be there by now
  std::uint64_t applied_seq = 0;  ///< of the last Applied
  std::uint64_t duty_seq = 0;     ///< of the last DutySet
  bool applied_is_known = true;   ///< its durability was acted on
  std::map<JobId, Move> moves;
  std::map<JobId, Hold> holds;  ///< capacity held for jobs that wait (queueing.hpp)
  std::optional<JobId> head;    ///< the first of the present pass that only capacity keeps waiting
  std::map<JobId, Instant> asked_for_room;  ///< in vain, and not again before that
  /// Waits for a node that has the data: thought over after that.
  std::map<JobId, std::pair<Instant, std::string>> data_waits;
  LinkRates rates;
  /// Pairs of nodes between which a transfer broke: until then the first neither passes anything on
  /// to the second nor stands in for another sender.
  std::map<std::pair<NodeName, NodeName>, Instant> broken_hops;
  std::map<NodeName, NodeTrouble> troubles;
  std::map<DatasetId, Instant> unneeded_code;  ///< since when no job names it
  Instant next_look_at_code;
  std::map<DatasetId, Instant> announced;  ///< branches: since when this run knows that they go
  std::map<NodeName, Instant> no_second;   ///< nodes that could not store the journal, until then
  std::map<NodeName, std::set<JobId>> placed_on;
  std::map<JobId, NodeName> placed_jobs;
  std::map<JobId, JobState> shown;                       ///< last published state
  std::map<JobId, std::string> waits_for;                ///< why a job does not go on, for people
  std::map<JobId, std::map<NodeName, Avoided>> avoided;  ///< nodes where it would not start
  std::map<JobId, Instant> not_before;                   ///< back-off after failures
  std::map<JobId, Instant> granted;                      ///< last lease of an exclusive job
  std::set<std::pair<Instant, JobId>> timers;
  std::multimap<std::uint64_t, JobId> until_durable;
  /// Whose transfers wait until that node takes part in fewer; the nil id: a policy's.
  std::map<NodeName, std::set<JobId>> until_slot;
  std::set<JobId> until_safe;
  std::map<std::string, std::string> excluded;  ///< "dataset node" -> why a policy leaves it out
  std::set<std::string> told;                   ///< notices given once
  std::map<std::string, PolicyRound> rounds;    ///< by policy, source and target

  std::map<RequestId, WaitingRequest> waiting;
  std::uint64_t next_log_page = 1;

  // ---- verbs
  /// Decides: folds the record and sends it to the journal. Its number.
  std::uint64_t record(const Record& record);
  /// Whether what the record of that number decided may be acted on although it needs to be safe.
  bool is_firm(std::uint64_t seq) const;
  /// A second node that would confirm records is there, or was a moment ago.
  bool has_second() const;
  Generation next_generation();
  /// The node whose disk `file` and `code` of the cluster file name; empty if there is none.
  NodeName files_node() const;
  template <class Id> Id fresh() { return Id{ids.next()}; }
  void look_at(const JobId& job) { dirty.insert(job); }
  void wake(Instant at, const JobId& job);
  void avoid(const JobId& job, const NodeName& node, std::string why);
  bool avoids(const JobId& job, const NodeName& node) const;
  void tell(std::string kind, std::string subject, std::string text);
  /// The same, but only the first time for `key`.
  void tell_once(const std::string& key, std::string kind, std::string subject, std::string text);
  void say(const NodeName& node, ControllerMessage message);
  void answer(RequestId request, Result<Value> result);
  Expect expect(std::optional<DatasetId> uuid = {}, std::optional<Timeline> timeline = {}) const;
  void step_down(const ControllerTerm& higher, Error error, bool has_lost_journal = false);
  /// Whether it is too early to decide anything: the second node, whose copy may have records that
  /// this machine's disk has lost, has not said hello yet. Over a few seconds after the start.
  bool is_copy_awaited() const;
};

/// Silence and duties become node states, and what depends on them is looked at again.
void refresh_nodes(Machine& m);
/// A node's status is another: people hear of it, jobs that depend on it are looked at.
void note_status(Machine& m, const NodeName& node);
/// After a record about a job was folded: the indexes that depend on it.
void reindex_job(Machine& m, const JobId& id);

// ---- messages (agents.cpp)
void on_agent_said(Machine& m, LinkId link, const AgentMessage& message);
void on_agent_gone(Machine& m, LinkId link);
/// Chooses a second node if there is none or it is lost, and keeps its copy up to date.
void tend_second(Machine& m);
void welcome(Machine& m, const NodeName& node);

/// Before this controller steps down: what no second node has goes to the new one by way of the
/// agent behind `link`.
void hand_over(Machine& m, LinkId link);
/// What such a controller left.
void take_in(Machine& m, const HandedOver& message);

// ---- the end of attempts (ends.cpp)
void on_attempt_report(Machine& m, const NodeName& node, const Attempt& attempt);
/// Ends that are durable by now are acknowledged.
void acknowledge_ends(Machine& m, const JobId& job);
/// A job could not be started on that node, or took its supervisor along: several in a row, and the
/// node is drained.
void note_trouble(Machine& m, const NodeName& node, const JobId& job, const std::string& why);
/// Says whether a node takes jobs; the record's number.
std::uint64_t set_duty(Machine& m, const NodeName& node, Duty duty, const std::string& by,
                       const std::string& why);
/// The placed attempt is over, or was given up before it began.
void end_placed(Machine& m, DesiredJob& job, const ExitRecord& exit);

// ---- reconciliation
void reconcile_job(Machine& m, const JobId& id);  // reconcile_jobs.cpp
void start_placed(Machine& m, DesiredJob& job);   // reconcile_start.cpp
/// Whether the home's copy is there, on the current timeline and complete; orders what is missing.
bool prepare_home(Machine& m, DesiredJob& job);  // reconcile_start.cpp
void grant_leases(Machine& m);                   // reconcile_start.cpp
void follow_forks(Machine& m, DesiredJob& job);  // reconcile_forks.cpp
void set_homes(Machine& m, DesiredJob& job);     // reconcile_forks.cpp
void notice_hand_rollback(Machine& m, DesiredJob& job);
void keep_copies(Machine& m, DesiredJob& job);  // reconcile_copies.cpp
/// Nodes that can take part in another transfer: those who wait for one are looked at again.
void give_free_slots(Machine& m);              // reconcile_copies.cpp
void run_policies(Machine& m);                 // reconcile_policies.cpp
bool is_round_due(const Machine& m);           // reconcile_policies.cpp
void expire_branches(Machine& m);              // reconcile_expiries.cpp
void tend_models(Machine& m);                  // reconcile_models.cpp
void import_declared(Machine& m);              // reconcile_imports.cpp
void place_pending(Machine& m);                // placing.cpp
void drive_move(Machine& m, DesiredJob& job);  // placing.cpp

/// Moves the next missing snapshot of a dataset from one node to another. Whether the target is up
/// to date with that source.
bool bring(Machine& m, const DatasetId& uuid, const NodeName& source, const NodeName& target,
           const JobId& owner, const std::string& why);
/// The same for a job's own files on their way to its new home, which nothing else may write to.
void bring_home(Machine& m, const DesiredJob& job, const NodeName& source);
std::string copy_need(const DatasetId& uuid, const NodeName& target);

// ---- questions (questions.cpp)
JobState state_of(const Machine& m, const DesiredJob& job);
/// The placed attempt as its node reports it; nullptr while it is not visible.
const Attempt* visible_attempt(const Machine& m, const DesiredJob& job);
bool home_is_lost(const Machine& m, const DesiredJob& job);
/// A checkpoint of the current timeline on a reachable node.
struct FoundCheckpoint {
  NodeName node;
  const Snapshot* snapshot = nullptr;
};
std::optional<FoundCheckpoint> newest_reachable(const Machine& m, const DesiredJob& job);
/// The holder whose copy of a model or a data set is the one that others follow.
std::optional<NodeName> best_holder(const Machine& m, const DatasetId& uuid);
/// The dataset of a model by its declared name; none if it is nowhere.
std::optional<DatasetName> dataset_of_model(const Machine& m, const ModelName& model);

// ---- requests (operations/)
void on_requested(Machine& m, RequestId request, const api::Request& operation,
                  const api::Caller& caller);
void answer_durable(Machine& m);
void answer_need(Machine& m, const NeedOutcome& outcome);
/// Requests that persist, and whose need is neither under way nor pausing, look again.
void persist_requests(Machine& m);
void answer_log(Machine& m, const LogPage& page);
void answer_node(Machine& m, const NodeAnswer& answer);
void expire_requests(Machine& m);
void fail_requests_on(Machine& m, LinkId link);

}  // namespace zed::controller
