#pragma once
// What agents and the controller say to one another. Encoded as Erlang terms by way of Value;
// decode is total (base/describe.hpp), an unknown tag is refused with an error, unknown fields are
// ignored.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/describe.hpp"
#include "core/dataset.hpp"
#include "core/fleet.hpp"
#include "core/gpu.hpp"
#include "core/job.hpp"
#include "core/plan.hpp"
#include "core/question.hpp"

namespace zed {

/// Raised when a message's meaning changes; a peer of another number is refused with an error.
inline constexpr std::int64_t protocol_version = 1;
/// An encoded message, and so an inventory page, stays below this.
inline constexpr std::size_t message_limit = 256 * 1024;

// ---- agent -> controller ------------------------------------------------------------------------

/// The first message of every connection.
struct Hello {
  static constexpr std::string_view tag = "hello";
  std::int64_t protocol = protocol_version;
  NodeId node;
  NodeName name;
  ControllerTerm highest_term;         ///< the highest that this agent has seen
  NodeName journal_second;             ///< the second node that its controller named; may be empty
  std::uint64_t journal_copy_seq = 0;  ///< last record of the journal copy here; 0: no copy
  ControllerTerm journal_copy_term;    ///< the term that the copy is of
  NodeFacts facts;
  std::vector<Gpu> gpus;
  std::vector<Attempt> attempts;  ///< live, or ended and not yet acknowledged
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("protocol", self.protocol);
    visit("node", self.node);
    visit("name", self.name);
    visit("highest_term", self.highest_term);
    visit("journal_second", self.journal_second);
    visit("journal_copy_seq", self.journal_copy_seq);
    visit("journal_copy_term", self.journal_copy_term);
    visit("facts", self.facts);
    visit("gpus", self.gpus);
    visit("attempts", self.attempts);
  }
  friend bool operator==(const Hello&, const Hello&) = default;
};

/// Part of the full inventory, sent after hello; the controller forgets what it knew of the node's
/// datasets at the first page and knows all after the last.
struct InventoryPage {
  static constexpr std::string_view tag = "inventory-page";
  std::int64_t page = 0;
  bool last = false;
  std::vector<Dataset> datasets;  ///< a dataset with many snapshots may go on in the next page
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("page", self.page);
    visit("last", self.last);
    visit("datasets", self.datasets);
  }
  friend bool operator==(const InventoryPage&, const InventoryPage&) = default;
};

/// A dataset is new or different. With `delta`, `dataset.snapshots` holds only new or changed ones
/// and `gone` names those that disappeared; else it is the whole state.
struct DatasetChanged {
  static constexpr std::string_view tag = "dataset-changed";
  Dataset dataset;
  bool delta = false;
  std::vector<CheckpointId> gone;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("dataset", self.dataset);
    visit("delta", self.delta);
    visit("gone", self.gone);
  }
  friend bool operator==(const DatasetChanged&, const DatasetChanged&) = default;
};

struct DatasetRemoved {
  static constexpr std::string_view tag = "dataset-removed";
  DatasetName dataset;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("dataset", self.dataset);
  }
  friend bool operator==(const DatasetRemoved&, const DatasetRemoved&) = default;
};

/// Every 2 s.
struct Heartbeat {
  static constexpr std::string_view tag = "heartbeat";
  Bytes pool_free;
  Bytes memory_free;
  std::vector<GpuLoad> loads = {};     ///< since the last heartbeat; mostly empty
  std::optional<std::string> power{};  ///< as in NodeFacts, if it is another one now
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("pool_free", self.pool_free);
    visit("memory_free", self.memory_free);
    visit("loads", self.loads);
    visit("power", self.power);
  }
  friend bool operator==(const Heartbeat&, const Heartbeat&) = default;
};

struct GpusChanged {
  static constexpr std::string_view tag = "gpus-changed";
  std::vector<Gpu> gpus;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("gpus", self.gpus);
  }
  friend bool operator==(const GpusChanged&, const GpusChanged&) = default;
};

/// An attempt changed phase. One that ended is repeated after every hello until AckExit.
struct AttemptReport {
  static constexpr std::string_view tag = "attempt-report";
  Attempt attempt;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("attempt", self.attempt);
  }
  friend bool operator==(const AttemptReport&, const AttemptReport&) = default;
};

/// The outcome of a plan step. Sent once; a controller that missed it sends the step again.
struct StepResult {
  static constexpr std::string_view tag = "step-result";
  StepId step;
  std::optional<Error> error;            ///< none: done
  std::optional<CheckpointId> snapshot;  ///< what it made, if it made one
  Bytes moved;                           ///< bytes on the wire, for transfers
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("step", self.step);
    visit("error", self.error);
    visit("snapshot", self.snapshot);
    visit("moved", self.moved);
  }
  friend bool operator==(const StepResult&, const StepResult&) = default;
};

/// At most once a second a transfer, from the receiving end.
struct TransferProgress {
  static constexpr std::string_view tag = "transfer-progress";
  StepId step;
  Bytes done;
  Bytes total;
  Bytes rate;  ///< per second
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("step", self.step);
    visit("done", self.done);
    visit("total", self.total);
    visit("rate", self.rate);
  }
  friend bool operator==(const TransferProgress&, const TransferProgress&) = default;
};

/// The second node has these journal records on its disk.
struct JournalStored {
  static constexpr std::string_view tag = "journal-stored";
  ControllerTerm term;
  std::uint64_t seq = 0;  ///< all up to and including this
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("term", self.term);
    visit("seq", self.seq);
  }
  friend bool operator==(const JournalStored&, const JournalStored&) = default;
};

/// One line that a job wrote.
struct LogLine {
  WallTime at;
  bool error_stream = false;  ///< standard error
  std::string text;           ///< without the line break; valid UTF-8, at most 16 KiB
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("at", self.at);
    visit("error_stream", self.error_stream);
    visit("text", self.text);
  }
  friend bool operator==(const LogLine&, const LogLine&) = default;
};

/// Something worth an entry in `zedctl events`: adopted by hand, repaired, refused.
struct Notice {
  static constexpr std::string_view tag = "notice";
  std::string subject;  ///< "jobs/train-001"
  std::string text;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("subject", self.subject);
    visit("text", self.text);
  }
  friend bool operator==(const Notice&, const Notice&) = default;
};

/// The answer to ReadLog.
struct LogPage {
  static constexpr std::string_view tag = "log-page";
  std::uint64_t request = 0;
  std::optional<Error> error;
  std::int64_t offset = 0;  ///< of the first byte of `text` in the whole log
  std::int64_t end = 0;     ///< length of the log now; offset of the next page
  std::vector<LogLine> lines;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("request", self.request);
    visit("error", self.error);
    visit("offset", self.offset);
    visit("end", self.end);
    visit("lines", self.lines);
  }
  friend bool operator==(const LogPage&, const LogPage&) = default;
};

/// What a controller left whose term is over, passed on to the one of the higher term.
struct HandedOver {
  static constexpr std::string_view tag = "handed-over";
  ControllerTerm term;               ///< of the one that left it
  std::vector<std::string> records;  ///< as in its journal (JSON text)
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("term", self.term);
    visit("records", self.records);
  }
  friend bool operator==(const HandedOver&, const HandedOver&) = default;
};

using AgentMessage = std::variant<Hello, InventoryPage, DatasetChanged, DatasetRemoved, Heartbeat,
                                  GpusChanged, AttemptReport, StepResult, TransferProgress,
                                  JournalStored, Notice, LogPage, NodeAnswer, HandedOver>;

// ---- controller -> agent ------------------------------------------------------------------------

/// The answer to hello.
struct Welcome {
  static constexpr std::string_view tag = "welcome";
  ControllerTerm term;
  NodeName journal_second;  ///< who holds the copy of the journal; may be empty
  std::optional<DeclaredNode> declared;
  std::vector<DatasetName> roots;  ///< declared roots, besides models, jobs and zed
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("term", self.term);
    visit("journal_second", self.journal_second);
    visit("declared", self.declared);
    visit("roots", self.roots);
  }
  friend bool operator==(const Welcome&, const Welcome&) = default;
};

/// Hello refused: another protocol, a name that is taken, a term that is over.
struct Refused {
  static constexpr std::string_view tag = "refused";
  Error error;
  ControllerTerm term;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("error", self.error);
    visit("term", self.term);
  }
  friend bool operator==(const Refused&, const Refused&) = default;
};

/// Carry out this step. A step that is under way is not started twice.
struct StepOrder {
  static constexpr std::string_view tag = "step-order";
  PlanStep step;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("step", self.step);
  }
  friend bool operator==(const StepOrder&, const StepOrder&) = default;
};

struct CancelStep {
  static constexpr std::string_view tag = "cancel-step";
  StepId step;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("step", self.step);
  }
  friend bool operator==(const CancelStep&, const CancelStep&) = default;
};

/// The end of this attempt is safe with the controller; the agent may forget its exit record.
struct AckExit {
  static constexpr std::string_view tag = "ack-exit";
  JobId job;
  Generation generation;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("job", self.job);
    visit("generation", self.generation);
  }
  friend bool operator==(const AckExit&, const AckExit&) = default;
};

/// For the second node: append and fsync, then say JournalStored. `reset` begins the copy anew.
struct JournalRecords {
  static constexpr std::string_view tag = "journal-records";
  ControllerTerm term;
  std::uint64_t first_seq = 0;
  bool reset = false;
  std::vector<std::string> records;  ///< as in the controller's own journal (JSON text)
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("term", self.term);
    visit("first_seq", self.first_seq);
    visit("reset", self.reset);
    visit("records", self.records);
  }
  friend bool operator==(const JournalRecords&, const JournalRecords&) = default;
};

/// Extends the lease of an exclusive job from the moment of arrival.
struct GrantLease {
  static constexpr std::string_view tag = "grant-lease";
  JobId job;
  Generation generation;
  Millis lease;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("job", self.job);
    visit("generation", self.generation);
    visit("lease", self.lease);
  }
  friend bool operator==(const GrantLease&, const GrantLease&) = default;
};

/// Asks for part of a job's log; answered by one LogPage of at most 64 KiB. A page travels as a
/// message, so that a reader needs nothing but the controller; whole logs travel with the dataset.
struct ReadLog {
  static constexpr std::string_view tag = "read-log";
  std::uint64_t request = 0;
  DatasetName dataset;
  std::int64_t offset = 0;  ///< negative: that many lines from the end
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("request", self.request);
    visit("dataset", self.dataset);
    visit("offset", self.offset);
  }
  friend bool operator==(const ReadLog&, const ReadLog&) = default;
};

/// The last word of a controller that heard of a higher term: records that no second node has. The
/// agent passes them on to the controller that it obeys, now or when it next reaches one.
struct HandOver {
  static constexpr std::string_view tag = "hand-over";
  ControllerTerm term;  ///< the sender's
  std::vector<std::string> records;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("term", self.term);
    visit("records", self.records);
  }
  friend bool operator==(const HandOver&, const HandOver&) = default;
};

using ControllerMessage = std::variant<Welcome, Refused, StepOrder, CancelStep, AckExit,
                                       JournalRecords, GrantLease, ReadLog, AskNode, HandOver>;

}  // namespace zed
