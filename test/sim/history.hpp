#pragma once
// What really happened in a simulated fleet, as an observer sees who stands outside of it: it
// outlives crashes and lost disks and is never read by agents or controllers. Invariants compare
// the fleet with it.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/replies.hpp"
#include "core/plan.hpp"

namespace zed::sim {

/// A snapshot that a store really made, with the files that it had at that moment.
struct Committed {
  Snapshot snapshot;
  JobId job;
  DatasetName dataset;
  std::size_t machine = 0;
  std::map<std::string, std::string> files;
  Instant at;
};

/// A fork that a controller told an agent to apply.
struct KnownFork {
  Fork fork;
  ControllerTerm term;  ///< of the controller that told it first
  Instant at;
};

/// A start that a controller ordered, when it did so first.
struct OrderedStart {
  JobId job;
  Generation generation;
  Timeline timeline;
  ControllerTerm term;
  std::size_t machine = 0;
  Instant at;
};

/// The processes of an attempt that really began.
struct LaunchedAttempt {
  JobId job;
  Generation generation;
  Timeline timeline;
  std::size_t machine = 0;
  Instant at;
};

/// How they really ended.
struct EndedAttempt {
  JobId job;
  Generation generation;
  Timeline timeline;
  std::size_t machine = 0;
  ExitRecord exit;            ///< as its supervisor recorded it
  bool work_remains = false;  ///< it stopped because it was asked to, whatever its exit code
  Instant at;
};

/// Snapshots that a controller told an agent to destroy.
struct Pruned {
  DatasetId dataset;
  std::size_t machine = 0;
  std::vector<CheckpointId> snapshots;
  std::optional<CheckpointId> newest;  ///< must be that when it is carried out
};

/// What a client was promised.
struct Promise {
  enum class Kind { submit, fork, stop, cancel };
  Kind kind = Kind::submit;
  JobId job;
  std::string job_name;
  bool safe = false;  ///< durable on two machines
  std::size_t machine =
      0;             ///< of the controller that answered: an accepted promise goes with its disk
  std::string from;  ///< forks: the checkpoint
  Instant at;
};

/// What is on two disks at least.
struct SafeRecords {
  std::set<JobId> submits;
  std::set<std::pair<JobId, Timeline>> forks;
  std::map<JobId, JobState> ends;
};

/// A terminal state that became durable somewhere.
struct SeenEnd {
  JobState state = JobState::succeeded;
  Generation generation;
  std::size_t machine = 0;
  Instant at;
};

struct SeenState {
  api::JobRow row;
  Instant at;
  std::size_t controller = 0;
};

struct History {
  std::map<CheckpointId, Committed> committed;  ///< checkpoints of jobs (they have a seq)
  std::map<CheckpointId, Committed> snapshots;  ///< all snapshots of jobs, checkpoints among them
  std::set<CheckpointId> may_be_gone;           ///< what someone named for destruction
  std::map<JobId, std::vector<KnownFork>> forks;
  std::vector<OrderedStart> ordered;
  std::vector<LaunchedAttempt> launched;
  std::vector<EndedAttempt> ended;
  std::vector<Promise> promises;
  std::vector<Pruned> pruned;
  SafeRecords safe;
  std::map<JobId, SeenEnd> terminal;  ///< the first one of each job
  std::map<JobId, SeenState> latest;  ///< what the operator's controller showed last
  std::vector<std::size_t> lost_disks;
};

}  // namespace zed::sim
