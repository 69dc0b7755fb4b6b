#pragma once
// Desired state: what people and the controller itself have decided. A pure fold over the journal
// (records.hpp). What is, is in the fleet view; what is to be done follows from the two.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/cluster.hpp"
#include "core/identity.hpp"
#include "core/job.hpp"

namespace zed::controller {

enum class Wanted { run, stop, cancel };
constexpr auto enum_names(Wanted) {
  return std::array<std::string_view, 3>{"run", "stop", "cancel"};
}

/// A word on a node, a person's or the controller's own.
enum class Duty { none, cordoned, draining };
constexpr auto enum_names(Duty) {
  return std::array<std::string_view, 3>{"none", "cordoned", "draining"};
}
struct NodeDuty {
  Duty duty = Duty::none;
  std::string by;
  std::string why;
  friend bool operator==(const NodeDuty&, const NodeDuty&) = default;
};

/// The journal holds the text; what it means is read from it whenever it is folded in.
struct AppliedFile {
  std::string text;
  std::string folder;  ///< absolute; `file` and `code` are relative to it
  Cluster cluster;     ///< the text's meaning, paths absolute; not in the record
  std::string fault;   ///< why this version cannot read the text; then the cluster is empty
  std::string upload;  ///< names the parts that came before, if the text is too long for a record
  NodeName from_node;  ///< whose disk `file` names
  std::string by;
  WallTime at;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("text", self.text);
    visit("folder", self.folder);
    visit("upload", self.upload);
    visit("from_node", self.from_node);
    visit("by", self.by);
    visit("at", self.at);
  }
  friend bool operator==(const AppliedFile&, const AppliedFile&) = default;
};

/// A fork and what it takes to judge snapshots by it when no node that has them is there.
struct KnownFork {
  Fork fork;
  std::uint64_t from_seq = 0;  ///< seq of fork.from; 0 if it has none
  std::string from_name;       ///< "epoch-20"
  DatasetId branch_uuid;       ///< identity that the branch gets, equal on every holder
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("fork", self.fork);
    visit("from_seq", self.from_seq);
    visit("from_name", self.from_name);
    visit("branch_uuid", self.branch_uuid);
  }
  friend bool operator==(const KnownFork&, const KnownFork&) = default;
};

struct PlacedAttempt {
  Generation generation;
  NodeName node;
  std::vector<std::string> gpus;  ///< UUIDs
  std::int64_t number = 1;
  WallTime at;
  std::string why;      ///< the placement's
  JobId evicted_for;    ///< it makes room for that job; nil: for none
  std::string evicted;  ///< "makes room for job urgent (priority 10)"
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("generation", self.generation);
    visit("node", self.node);
    visit("gpus", self.gpus);
    visit("number", self.number);
    visit("at", self.at);
    visit("why", self.why);
    visit("evicted_for", self.evicted_for);
    visit("evicted", self.evicted);
  }
  friend bool operator==(const PlacedAttempt&, const PlacedAttempt&) = default;
};

struct Outcome {
  JobState state = JobState::stopped;  ///< stopped, succeeded, failed or cancelled
  std::string reason;
  Generation generation;  ///< of the attempt whose end it was; none if none ran
  WallTime at;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("state", self.state);
    visit("reason", self.reason);
    visit("generation", self.generation);
    visit("at", self.at);
  }
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

/// The checkpoint of another job that a job begins with: its files are unpacked before the first
/// attempt.
struct Beginning {
  JobId job;
  std::string job_name;
  CheckpointId checkpoint;
  std::string name;  ///< "epoch-15"
  std::string epoch;
  std::string step;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("job", self.job);
    visit("job_name", self.job_name);
    visit("checkpoint", self.checkpoint);
    visit("name", self.name);
    visit("epoch", self.epoch);
    visit("step", self.step);
  }
  friend bool operator==(const Beginning&, const Beginning&) = default;
};

struct DesiredJob {
  Job job;
  std::string by;
  WallTime submitted;
  std::uint64_t submitted_seq = 0;  ///< place in the journal: the submit order
  Wanted wanted = Wanted::run;
  std::string wanted_why;
  NodeName only;                           ///< a person's `--on`; empty: anywhere
  NodeName home;                           ///< whose copy may be written; empty: never placed
  Timeline timeline;                       ///< the current one; none: never placed
  Generation last_generation;              ///< the highest that was ever given out
  std::vector<KnownFork> forks;            ///< oldest first, the last most_forks of them
  std::optional<PlacedAttempt> placed;     ///< live, or about to be
  std::optional<CheckpointId> moved_with;  ///< closing snapshot of the last planned move
  WallTime placed_at;                      ///< the last time; none: never
  std::int64_t attempts = 0;               ///< placements so far
  std::int64_t failures = 0;               ///< counted against `retries`
  std::int64_t crashes = 0;                ///< in a row: ends that took supervisor or node along
  std::int64_t evictions = 0;              ///< times that it made room for a job of higher priority
  /// Where an attempt was given up that nobody has seen end: an exclusive job waits for its lease.
  NodeName unconfirmed;
  std::optional<Beginning> begins;
  Millis ran;             ///< running time over all ended attempts
  std::string last_exit;  ///< words of the last attempt's end
  WallTime last_exit_at;
  bool had_checkpoint = false;
  std::optional<Outcome> outcome;
  std::uint64_t changed_seq = 0;  ///< last record about this job
  std::uint64_t safe_seq = 0;     ///< last fork or move: acted on only when it is safe

  bool is_over() const { return outcome.has_value(); }
  bool is_terminal() const { return outcome && zed::is_terminal(outcome->state); }
  /// The identity of the job's dataset is the job's own.
  DatasetId dataset_uuid() const { return DatasetId{job.id.bytes}; }

  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("job", self.job);
    visit("by", self.by);
    visit("submitted", self.submitted);
    visit("submitted_seq", self.submitted_seq);
    visit("wanted", self.wanted);
    visit("wanted_why", self.wanted_why);
    visit("only", self.only);
    visit("home", self.home);
    visit("timeline", self.timeline);
    visit("last_generation", self.last_generation);
    visit("forks", self.forks);
    visit("placed", self.placed);
    visit("moved_with", self.moved_with);
    visit("placed_at", self.placed_at);
    visit("attempts", self.attempts);
    visit("failures", self.failures);
    visit("crashes", self.crashes);
    visit("evictions", self.evictions);
    visit("unconfirmed", self.unconfirmed);
    visit("begins", self.begins);
    visit("ran", self.ran);
    visit("last_exit", self.last_exit);
    visit("last_exit_at", self.last_exit_at);
    visit("had_checkpoint", self.had_checkpoint);
    visit("outcome", self.outcome);
  }
  friend bool operator==(const DesiredJob&, const DesiredJob&) = default;
};

/// Forks remembered for one job. Snapshots of timelines further back are never chosen by
/// themselves.
inline constexpr std::size_t most_forks = 200;
inline constexpr std::size_t most_proposals = 100;

/// When a branch may go: a person's word.
struct Expiry {
  DatasetId branch;
  DatasetName name;  ///< as it was then
  WallTime at;
  std::string by;
  std::optional<WallTime> announced;  ///< a day before it may go
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("branch", self.branch);
    visit("name", self.name);
    visit("at", self.at);
    visit("by", self.by);
    visit("announced", self.announced);
  }
  friend bool operator==(const Expiry&, const Expiry&) = default;
};

/// A fork that a controller decided whose term was over: a person says whether it is to be.
struct Proposal {
  KnownFork fork;
  ControllerTerm term;  ///< of that controller
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("fork", self.fork);
    visit("term", self.term);
  }
  friend bool operator==(const Proposal&, const Proposal&) = default;
};

struct DesiredState {
  ControllerTerm term;
  NodeName machine;
  std::optional<AppliedFile> applied;
  std::map<JobId, DesiredJob> jobs;
  /// What a job's name means now: the last one submitted under it.
  std::map<JobName, JobId> by_name;
  std::map<NodeName, NodeId> members;
  std::map<NodeName, NodeDuty> duties;  ///< none of them Duty::none
  std::map<DatasetId, Expiry> expiries;
  std::vector<Proposal> proposals;  ///< the last most_proposals
  std::string upload;    ///< names a large cluster file that is on its way into the journal
  std::string uploaded;  ///< what is there of its text
  std::uint64_t upload_parts = 0;  ///< in how many pieces
  NodeName second;                 ///< who holds the journal's copy; empty: nobody
  std::uint64_t counter = 0;       ///< the highest generation counter given out in this term
  std::uint64_t revision = 0;      ///< changes of desired state and membership so far

  const DesiredJob* find(const JobId& id) const;
  DesiredJob* find(const JobId& id);
};

}  // namespace zed::controller
