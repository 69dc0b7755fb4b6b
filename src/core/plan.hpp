#pragma once
// Changes as data: what `zedctl plan` shows and what agents are told to do.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/units.hpp"
#include "core/dataset.hpp"
#include "core/identity.hpp"
#include "core/job.hpp"
#include "core/names.hpp"

namespace zed {

enum class StreamKind { files, zfs };
constexpr auto enum_names(StreamKind) {
  return std::array<std::string_view, 2>{"files", "zfs"};
}

/// The right to move one snapshot of one dataset once. Both ends get it from the controller; a
/// stream that shows no ticket, or another one, is refused before a byte is stored. A replica many
/// snapshots behind is brought up by as many tickets, one after the other, oldest first.
struct Ticket {
  TransferId id;               ///< 128 random bits: knowing it is the right
  DatasetName dataset;         ///< at the source
  DatasetName target_dataset;  ///< where it goes; usually the same
  DatasetId uuid;              ///< identity of the dataset
  NodeName source;
  NodeName target;
  std::string source_address;  ///< data address "127.0.0.1:4373"
  std::string target_address;
  bool source_dials = true;          ///< who dials first; the other end on failure
  std::optional<CheckpointId> base;  ///< the newest common snapshot; none: a full stream
  CheckpointId snapshot;             ///< what travels
  std::string snapshot_name;
  Generation generation;
  Timeline timeline;  ///< a receiver refuses one that is not its dataset's
  StreamKind kind = StreamKind::files;
  std::optional<Bytes> max_rate;  ///< per second
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("id", self.id);
    visit("dataset", self.dataset);
    visit("target_dataset", self.target_dataset);
    visit("uuid", self.uuid);
    visit("source", self.source);
    visit("target", self.target);
    visit("source_address", self.source_address);
    visit("target_address", self.target_address);
    visit("source_dials", self.source_dials);
    visit("base", self.base);
    visit("snapshot", self.snapshot);
    visit("snapshot_name", self.snapshot_name);
    visit("generation", self.generation);
    visit("timeline", self.timeline);
    visit("kind", self.kind);
    visit("max_rate", self.max_rate);
  }
  friend bool operator==(const Ticket&, const Ticket&) = default;
};

/// Makes a dataset with its properties (com.zed:uuid among them). Done already: succeeds.
struct CreateDataset {
  static constexpr std::string_view tag = "create-dataset";
  DatasetName dataset;
  Properties properties;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("dataset", self.dataset);
    visit("properties", self.properties);
  }
  friend bool operator==(const CreateDataset&, const CreateDataset&) = default;
};

/// Copies a file or folder of the node's own disk into a new dataset and snapshots it: `model add`,
/// `file`, submitted code. Into `zed/code` itself: the dataset, its identity and its snapshot's are
/// the content's (code_dataset()), and what is there already is not copied again.
struct ImportFiles {
  static constexpr std::string_view tag = "import-files";
  DatasetName dataset;
  std::string path;           ///< absolute, on that node
  std::string snapshot_name;  ///< "v1"
  CheckpointId snapshot;      ///< the id that the snapshot gets
  Properties properties;      ///< of the dataset, uuid and type among them
  /// Instead of a path: files of a snapshot of that node's own store, a checkpoint that becomes a
  /// model. `path` is then "" for all of them, or a file or folder in it.
  std::optional<DatasetName> source;
  CheckpointId source_snapshot;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("dataset", self.dataset);
    visit("path", self.path);
    visit("snapshot_name", self.snapshot_name);
    visit("snapshot", self.snapshot);
    visit("properties", self.properties);
    visit("source", self.source);
    visit("source_snapshot", self.source_snapshot);
  }
  friend bool operator==(const ImportFiles&, const ImportFiles&) = default;
};

/// The sender's half of a transfer. In a chain each node in the middle has one transfer's receiving
/// half and the next one's sending half, and hands the bytes over while they arrive.
struct SendSnapshot {
  static constexpr std::string_view tag = "send-snapshot";
  Ticket ticket;
  /// The ticket of the receive on this node whose bytes are passed on. None: read from the store.
  std::optional<TransferId> through = {};
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("ticket", self.ticket);
    visit("through", self.through);
  }
  friend bool operator==(const SendSnapshot&, const SendSnapshot&) = default;
};

/// The target's half. Creates the dataset as a readonly replica if it is not there.
struct ReceiveSnapshot {
  static constexpr std::string_view tag = "receive-snapshot";
  Ticket ticket;
  Properties dataset_properties;  ///< what the replica's own properties become
  /// The ticket of the send on this node that waits for these bytes. None: nobody does.
  std::optional<TransferId> passes_to = {};
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("ticket", self.ticket);
    visit("dataset_properties", self.dataset_properties);
    visit("passes_to", self.passes_to);
  }
  friend bool operator==(const ReceiveSnapshot&, const ReceiveSnapshot&) = default;
};

/// Starts the processes of one attempt. Refused if the dataset's timeline or home is another, or if
/// a GPU is held.
struct StartAttempt {
  static constexpr std::string_view tag = "start-attempt";
  Job job;
  Generation generation;
  Timeline timeline;
  std::int64_t number = 1;
  std::vector<std::string> gpus;
  Bytes vram;  ///< per GPU, when shared
  std::optional<Input> model;
  std::vector<Input> data;
  std::optional<Input> code;        ///< unpacked into the job's dataset before its first attempt
  std::optional<Millis> time_left;  ///< of the job's time-out
  std::optional<Millis> lease;      ///< exclusive jobs: stop this long after the last grant
  std::optional<std::string> run_as;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("job", self.job);
    visit("generation", self.generation);
    visit("timeline", self.timeline);
    visit("number", self.number);
    visit("gpus", self.gpus);
    visit("vram", self.vram);
    visit("model", self.model);
    visit("data", self.data);
    visit("code", self.code);
    visit("time_left", self.time_left);
    visit("lease", self.lease);
    visit("run_as", self.run_as);
  }
  friend bool operator==(const StartAttempt&, const StartAttempt&) = default;
};

/// stop: ask for a checkpoint, then SIGTERM, then SIGKILL after the grace. halt: the same without
/// asking (rollback, resume --from, a stale copy). cancel: halt, for good.
enum class StopMode { stop, halt, cancel };
constexpr auto enum_names(StopMode) {
  return std::array<std::string_view, 3>{"stop", "halt", "cancel"};
}

/// Ends an attempt. Its end arrives as an AttemptReport; the step is done when the attempt is ended
/// (or was already).
struct StopAttempt {
  static constexpr std::string_view tag = "stop-attempt";
  JobId job;
  Generation generation;  ///< this one or any older
  StopMode mode = StopMode::stop;
  std::string reason;  ///< "drain", "rolled back to @epoch-20"
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("job", self.job);
    visit("generation", self.generation);
    visit("mode", self.mode);
    visit("reason", self.reason);
  }
  friend bool operator==(const StopAttempt&, const StopAttempt&) = default;
};

/// Asks a running job to commit a checkpoint now. Done when it has; the result is its id.
struct AskCheckpoint {
  static constexpr std::string_view tag = "ask-checkpoint";
  JobId job;
  Generation generation;
  Millis within = seconds(60);
  std::string reason;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("job", self.job);
    visit("generation", self.generation);
    visit("within", self.within);
    visit("reason", self.reason);
  }
  friend bool operator==(const AskCheckpoint&, const AskCheckpoint&) = default;
};

/// Begins a timeline on one holder, home or replica: everything beyond `fork.from` moves to a
/// branch (or is destroyed if fork.discard), and timeline, generation, home and lineage are set. If
/// `fork.from` is the newest and nothing changed since, or the holder is behind it, only the
/// properties are set. Idempotent: done already when the dataset's timeline is fork.timeline.
struct ApplyFork {
  static constexpr std::string_view tag = "apply-fork";
  DatasetName dataset;
  DatasetId uuid;
  Fork fork;
  NodeName home;          ///< the home from now on: writable there, readonly elsewhere
  DatasetId branch_uuid;  ///< identity that the branch gets, if there is one
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("dataset", self.dataset);
    visit("uuid", self.uuid);
    visit("fork", self.fork);
    visit("home", self.home);
    visit("branch_uuid", self.branch_uuid);
  }
  friend bool operator==(const ApplyFork&, const ApplyFork&) = default;
};

/// A planned move's last step: this node's copy, which has the closing snapshot, becomes the home
/// (or learns who is). No fork.
struct SetHome {
  static constexpr std::string_view tag = "set-home";
  DatasetName dataset;
  DatasetId uuid;
  NodeName home;
  Timeline timeline;
  Generation generation;
  CheckpointId closing_snapshot;  ///< must be the newest here, else `stale`
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("dataset", self.dataset);
    visit("uuid", self.uuid);
    visit("home", self.home);
    visit("timeline", self.timeline);
    visit("generation", self.generation);
    visit("closing_snapshot", self.closing_snapshot);
  }
  friend bool operator==(const SetHome&, const SetHome&) = default;
};

/// A replica that has more than its home, or another history: what is beyond `common` moves to a
/// branch named by the timeline of its newest snapshot (design: a replica follows its home).
struct FollowHome {
  static constexpr std::string_view tag = "follow-home";
  DatasetName dataset;
  DatasetId uuid;
  CheckpointId common;
  DatasetId branch_uuid;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("dataset", self.dataset);
    visit("uuid", self.uuid);
    visit("common", self.common);
    visit("branch_uuid", self.branch_uuid);
  }
  friend bool operator==(const FollowHome&, const FollowHome&) = default;
};

struct SetProperties {
  static constexpr std::string_view tag = "set-properties";
  DatasetName dataset;
  DatasetId uuid;
  PropertyChanges changes;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("dataset", self.dataset);
    visit("uuid", self.uuid);
    visit("changes", self.changes);
  }
  friend bool operator==(const SetProperties&, const SetProperties&) = default;
};

/// Destroys snapshots by identity (keep, prune), or the whole dataset if `snapshots` is empty.
struct Destroy {
  static constexpr std::string_view tag = "destroy";
  DatasetName dataset;
  DatasetId uuid;
  std::vector<CheckpointId> snapshots;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("dataset", self.dataset);
    visit("uuid", self.uuid);
    visit("snapshots", self.snapshots);
  }
  friend bool operator==(const Destroy&, const Destroy&) = default;
};

/// Gives a dataset that a person made an identity, so that Zed may keep and copy it. Nothing in it
/// changes. Done already if `properties` name its uuid. `exists` if it has another identity.
struct AdoptDataset {
  static constexpr std::string_view tag = "adopt-dataset";
  DatasetName dataset;        ///< where it is
  DatasetName to;             ///< renamed to this first; the same name: it stays where it is
  Properties properties;      ///< set on it, com.zed:uuid among them
  std::string snapshot_name;  ///< taken if it has no snapshot yet; empty: none is
  CheckpointId snapshot;      ///< the id that such a snapshot gets
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("dataset", self.dataset);
    visit("to", self.to);
    visit("properties", self.properties);
    visit("snapshot_name", self.snapshot_name);
    visit("snapshot", self.snapshot);
  }
  friend bool operator==(const AdoptDataset&, const AdoptDataset&) = default;
};

/// Sends a snapshot by the system's own ssh to OpenZFS on a machine without an agent: increments
/// where it has an older one, resumed where it has a part, properties with it. Only from a `zfs`
/// store. The result's `moved` is 0 if it was there already.
struct SendToHost {
  static constexpr std::string_view tag = "send-to-host";
  DatasetName dataset;
  DatasetId uuid;  ///< nil: the dataset has none
  CheckpointId snapshot;
  std::string snapshot_name;
  std::string destination;  ///< "[user@]host", by is_ssh_destination()
  std::string target;       ///< there, with its pool: "tank/models/llama"
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("dataset", self.dataset);
    visit("uuid", self.uuid);
    visit("snapshot", self.snapshot);
    visit("snapshot_name", self.snapshot_name);
    visit("destination", self.destination);
    visit("target", self.target);
  }
  friend bool operator==(const SendToHost&, const SendToHost&) = default;
};

using Action = std::variant<CreateDataset, ImportFiles, SendSnapshot, ReceiveSnapshot, StartAttempt,
                            StopAttempt, AskCheckpoint, ApplyFork, SetHome, FollowHome,
                            SetProperties, Destroy, AdoptDataset, SendToHost>;

/// Whether a text is "[user@]host" that may stand on ssh's command line: letters, digits, '-', '.',
/// '_' and, in the host, ':', neither part empty, longer than 255 bytes or beginning with '-'.
bool is_ssh_destination(std::string_view text);

std::string_view tag_of(const Action& action);
/// "apply fork of jobs/train-001 at …": one line for people, without the node.
std::string describe(const Action& action);
/// Whether it may destroy data.
bool destroys(const Action& action);

/// What must still be true on the node when the step is carried out; else it is refused as stale.
struct Expect {
  ControllerTerm term;                 ///< of the controller that sends it
  std::optional<DatasetId> uuid;       ///< identity of the dataset, if it exists
  std::optional<Timeline> timeline;    ///< its current one
  std::optional<CheckpointId> newest;  ///< its newest snapshot
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("term", self.term);
    visit("uuid", self.uuid);
    visit("timeline", self.timeline);
    visit("newest", self.newest);
  }
  friend bool operator==(const Expect&, const Expect&) = default;
};

/// One idempotent action on one node.
struct PlanStep {
  StepId id;
  NodeName node;
  Action action;
  Expect expect;
  std::vector<StepId> after;  ///< those must have succeeded; acyclic
  std::string why;            ///< "policy models: macbook lacks llama-8b"
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("id", self.id);
    visit("node", self.node);
    visit("action", self.action);
    visit("expect", self.expect);
    visit("after", self.after);
    visit("why", self.why);
  }
  friend bool operator==(const PlanStep&, const PlanStep&) = default;
};

/// One line of `zedctl plan`: how the declared fleet differs from the applied one, or from what was
/// detected.
struct Change {
  enum class Kind { add, change, remove, note };
  Kind kind = Kind::add;
  std::string subject;  ///< "job finetune"
  std::string detail;   ///< "priority 0 -> 10"
  bool destroys = false;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("kind", self.kind);
    visit("subject", self.subject);
    visit("detail", self.detail);
    visit("destroys", self.destroys);
  }
  friend bool operator==(const Change&, const Change&) = default;
};
constexpr auto enum_names(Change::Kind) {
  return std::array<std::string_view, 4>{"add", "change", "remove", "note"};
}

struct Plan {
  std::uint64_t base_revision = 0;  ///< apply refuses if the fleet has moved on
  std::vector<Change> changes;
  std::vector<PlanStep> steps;  ///< of replication; those of jobs follow from the job's state
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("base_revision", self.base_revision);
    visit("changes", self.changes);
    visit("steps", self.steps);
  }
  friend bool operator==(const Plan&, const Plan&) = default;
};

}  // namespace zed
