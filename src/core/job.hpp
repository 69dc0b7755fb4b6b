#pragma once
// A job as desired, its attempts as they happen, and the one table of its states.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "core/dataset.hpp"
#include "core/identity.hpp"
#include "core/names.hpp"
#include "core/requirement.hpp"

namespace zed {

enum class JobState {
  pending,    ///< waits for a place
  preparing,  ///< its model and data are on their way to the node
  running,
  checkpointing,  ///< a checkpoint is being committed
  stopping,
  stopped,    ///< resumable by a person
  succeeded,  ///< terminal
  failed,     ///< out of retries; resumable by a person
  cancelled,  ///< terminal
  lost,       ///< its node is lost
  waiting,    ///< lost, with a checkpoint but no reachable copy of it
};
constexpr auto enum_names(JobState) {
  return std::array<std::string_view, 11>{"pending",   "preparing", "running",   "checkpointing",
                                          "stopping",  "stopped",   "succeeded", "failed",
                                          "cancelled", "lost",      "waiting"};
}
constexpr bool is_terminal(JobState state) {
  return state == JobState::succeeded || state == JobState::cancelled;
}
/// The one table of legal transitions. `by_person` adds stopped -> pending, failed -> pending and
/// waiting -> pending.
bool may_become(JobState from, JobState to, bool by_person);

/// A snapshot that an attempt gets to read, of a model, a data set or submitted code.
struct Input {
  DatasetName dataset;
  CheckpointId snapshot;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("dataset", self.dataset);
    visit("snapshot", self.snapshot);
  }
  friend bool operator==(const Input&, const Input&) = default;
};

/// What a job is to be: written by a person, changed only by a new submit. Never what it is.
struct Job {
  JobId id;
  JobName name;
  std::optional<ModelName> model;
  DatasetName dataset;            ///< jobs/finetune-001
  std::vector<std::string> argv;  ///< ["sh", "-c", …] if the file says `shell`
  std::map<std::string, std::string> env;
  std::optional<std::string> code;  ///< folder with the code, absolute, on the submitting machine
  /// What its code is (code_dataset()), as packed at submit. Of a job that begins with another's
  /// checkpoint: that one's code, or, if it had none, the checkpoint. None: no code, or not packed
  /// yet.
  std::optional<CheckpointId> content;
  std::optional<std::string> setup;     ///< shell command, once a node and content
  std::optional<Millis> setup_timeout;  ///< none: an hour
  std::vector<DatasetName> data;
  /// Of `data`, the snapshots that were the newest at submit; one that had none then is not here
  /// before it has.
  std::vector<Input> inputs;
  Requirement requirement;  ///< the model's, overridden by the job's own
  Preference prefer;
  Preference fallback;
  CheckpointPolicy checkpoint_policy;
  Retention retention;
  std::vector<JobName> after;
  std::int64_t priority = 0;      ///< -100 to 100, higher first
  std::int64_t retries = 3;       ///< the job's own failures only
  std::optional<Millis> timeout;  ///< running time over all attempts
  std::int64_t copies = 1;        ///< replicas of each checkpoint on other nodes, 0 to 8
  bool exclusive = false;
  Millis grace = seconds(10);  ///< from SIGTERM to SIGKILL

  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("id", self.id);
    visit("name", self.name);
    visit("model", self.model);
    visit("dataset", self.dataset);
    visit("argv", self.argv);
    visit("env", self.env);
    visit("code", self.code);
    visit("content", self.content);
    visit("setup", self.setup);
    visit("setup_timeout", self.setup_timeout);
    visit("data", self.data);
    visit("inputs", self.inputs);
    visit("requirement", self.requirement);
    visit("prefer", self.prefer);
    visit("fallback", self.fallback);
    visit("checkpoint_policy", self.checkpoint_policy);
    visit("retention", self.retention);
    visit("after", self.after);
    visit("priority", self.priority);
    visit("retries", self.retries);
    visit("timeout", self.timeout);
    visit("copies", self.copies);
    visit("exclusive", self.exclusive);
    visit("grace", self.grace);
  }
  friend bool operator==(const Job&, const Job&) = default;
};

/// How the processes of an attempt ended. Durable on the node before anyone hears of it.
struct ExitRecord {
  enum class Kind {
    success,    ///< exit code 0
    exit_code,  ///< any other
    signal,     ///< killed by a signal that we did not send
    out_of_memory,
    stopped,    ///< at our word, resumable
    cancelled,  ///< at our word, for good
    timed_out,
    start_failed,     ///< exec did not happen
    supervisor_lost,  ///< the supervisor was killed; not counted as a retry
  };
  Kind kind = Kind::success;
  std::int64_t code = 0;  ///< exit code or signal number
  bool core_dumped = false;
  std::string words;  ///< "killed by signal 11 (segmentation fault), core dumped"
  WallTime ended;
  Millis ran;  ///< running time of this attempt
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("kind", self.kind);
    visit("code", self.code);
    visit("core_dumped", self.core_dumped);
    visit("words", self.words);
    visit("ended", self.ended);
    visit("ran", self.ran);
  }
  friend bool operator==(const ExitRecord&, const ExitRecord&) = default;
};
constexpr auto enum_names(ExitRecord::Kind) {
  return std::array<std::string_view, 9>{"success",       "exit-code",    "signal",
                                         "out-of-memory", "stopped",      "cancelled",
                                         "timed-out",     "start-failed", "supervisor-lost"};
}

enum class AttemptPhase {
  starting,  ///< the supervisor is being started
  running,
  checkpointing,
  stopping,
  closing,  ///< processes gone, closing snapshot under way
  ended,    ///< exit record and closing snapshot are durable
};
constexpr auto enum_names(AttemptPhase) {
  return std::array<std::string_view, 6>{"starting", "running", "checkpointing",
                                         "stopping", "closing", "ended"};
}

/// One start of a job's processes, as its agent reports it.
struct Attempt {
  JobId job;
  Generation generation;
  Timeline timeline;
  std::int64_t number = 1;  ///< 1, 2, 3…: ZED_ATTEMPT
  DatasetName dataset;
  std::vector<std::string> gpus;  ///< UUIDs held until all processes are gone
  bool share = false;             ///< the GPUs may be held by several attempts, by declared vram
  Bytes vram;                     ///< reserved on each GPU when shared
  AttemptPhase phase = AttemptPhase::starting;
  WallTime since;
  std::optional<CheckpointId> last_checkpoint;
  std::optional<ExitRecord> exit;                ///< once ended
  std::optional<CheckpointId> closing_snapshot;  ///< once ended
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("job", self.job);
    visit("generation", self.generation);
    visit("timeline", self.timeline);
    visit("number", self.number);
    visit("dataset", self.dataset);
    visit("gpus", self.gpus);
    visit("share", self.share);
    visit("vram", self.vram);
    visit("phase", self.phase);
    visit("since", self.since);
    visit("last_checkpoint", self.last_checkpoint);
    visit("exit", self.exit);
    visit("closing_snapshot", self.closing_snapshot);
  }
  friend bool operator==(const Attempt&, const Attempt&) = default;
};

/// The start of a new timeline.
struct Fork {
  enum class Why { rollback, resume_from, node_lost, hand_rollback, restart };
  JobId job;
  std::optional<CheckpointId> from;  ///< none: from the job's input, it never had a checkpoint
  Timeline timeline;                 ///< the one that begins
  Timeline left;                     ///< the one that was current
  Why why = Why::rollback;
  std::string by;        ///< who asked
  bool discard = false;  ///< destroy what is left instead of keeping it as a branch
  WallTime at;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("job", self.job);
    visit("from", self.from);
    visit("timeline", self.timeline);
    visit("left", self.left);
    visit("why", self.why);
    visit("by", self.by);
    visit("discard", self.discard);
    visit("at", self.at);
  }
  friend bool operator==(const Fork&, const Fork&) = default;
};
constexpr auto enum_names(Fork::Why) {
  return std::array<std::string_view, 5>{"rollback", "resume-from", "node-lost", "hand-rollback",
                                         "restart"};
}

}  // namespace zed
