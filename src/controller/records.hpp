#pragma once
// What the controller's journal holds: every change of desired state, one record each, as one line
// of JSON. docs/controller.md draws them. A record states a decision, never a wish to act: what
// follows from it is derived again and again by the reconcilers.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/describe.hpp"
#include "controller/desired.hpp"

namespace zed::controller {

/// A reign begins; all later records are its own.
struct TermBegan {
  static constexpr std::string_view tag = "term-began";
  ControllerTerm term;
  NodeName machine;
  WallTime at;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("term", self.term);
    visit("machine", self.machine);
    visit("at", self.at);
  }
};

/// A node said hello for the first time. Its name belongs to that identity from now on.
struct Joined {
  static constexpr std::string_view tag = "joined";
  NodeName node;
  NodeId id;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("node", self.node);
    visit("id", self.id);
  }
};

/// A node's name is free again, and what was said of it is forgotten.
struct Forgotten {
  static constexpr std::string_view tag = "forgotten";
  NodeName node;
  std::string by;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("node", self.node);
    visit("by", self.by);
  }
};

/// Whether a node takes jobs: a person's word, or ours on one that fails them.
struct DutySet {
  static constexpr std::string_view tag = "duty-set";
  NodeName node;
  Duty duty = Duty::none;
  std::string by;
  std::string why;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("node", self.node);
    visit("duty", self.duty);
    visit("by", self.by);
    visit("why", self.why);
  }
};

/// Who holds the second copy of the journal.
struct SecondChosen {
  static constexpr std::string_view tag = "second-chosen";
  NodeName node;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("node", self.node);
  }
};

/// A piece of a cluster file that is too long for one record. The next one of the same upload
/// follows it; `applied` names the upload. Without that it means nothing.
struct Uploaded {
  static constexpr std::string_view tag = "uploaded";
  std::string upload;
  std::uint64_t part = 0;  ///< from 0 on; the first begins the upload anew
  std::string text;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("upload", self.upload);
    visit("part", self.part);
    visit("text", self.text);
  }
};

/// A cluster file became the declared fleet.
struct Applied {
  static constexpr std::string_view tag = "applied";
  AppliedFile file;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("file", self.file);
  }
};

/// A job exists from here on. A second one of the same id is the same submit.
struct Submitted {
  static constexpr std::string_view tag = "submitted";
  Job job;
  std::string by;
  WallTime at;
  std::optional<Beginning> begins;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("job", self.job);
    visit("by", self.by);
    visit("at", self.at);
    visit("begins", self.begins);
  }
};

/// One start of a job's processes is decided: generation, node and GPUs. The first one of a job
/// makes that node its home and that generation its first timeline.
struct Placed {
  static constexpr std::string_view tag = "placed";
  JobId job;
  PlacedAttempt attempt;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("job", self.job);
    visit("attempt", self.attempt);
  }
};

/// A new timeline begins; what was placed on the old one is given up. Acted on only when safe.
struct Forked {
  static constexpr std::string_view tag = "forked";
  KnownFork fork;
  NodeName home;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("fork", self.fork);
    visit("home", self.home);
  }
};

/// A planned move: the new home has the old one's closing snapshot. Acted on only when safe.
struct Moved {
  static constexpr std::string_view tag = "moved";
  JobId job;
  NodeName home;
  CheckpointId closing_snapshot;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("job", self.job);
    visit("home", self.home);
    visit("closing_snapshot", self.closing_snapshot);
  }
};

/// A person's word: run, stop or cancel.
struct WantedSet {
  static constexpr std::string_view tag = "wanted-set";
  JobId job;
  Wanted wanted = Wanted::run;
  std::string by;
  std::string why;
  NodeName only;  ///< run: on this node and no other; empty: anywhere
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("job", self.job);
    visit("wanted", self.wanted);
    visit("by", self.by);
    visit("why", self.why);
    visit("only", self.only);
  }
};

/// The placed attempt of that generation makes room for another job: it stops, and the job waits
/// for a place again.
struct Evicted {
  static constexpr std::string_view tag = "evicted";
  JobId job;
  Generation generation;
  JobId for_job;
  std::string why;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("job", self.job);
    visit("generation", self.generation);
    visit("for_job", self.for_job);
    visit("why", self.why);
  }
};

/// The placed attempt of that generation is over (or never started) and the job goes on.
struct AttemptOver {
  static constexpr std::string_view tag = "attempt-over";
  JobId job;
  Generation generation;
  ExitRecord exit;
  bool counted = false;  ///< against the job's retries
  bool crashed = false;  ///< it took its supervisor along
  WallTime at;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("job", self.job);
    visit("generation", self.generation);
    visit("exit", self.exit);
    visit("counted", self.counted);
    visit("crashed", self.crashed);
    visit("at", self.at);
  }
};

/// The job is over: stopped, succeeded, failed or cancelled. A success may come from a timeline
/// that only losses had left; that one is current again.
struct Finished {
  static constexpr std::string_view tag = "finished";
  JobId job;
  Outcome outcome;
  std::optional<KnownFork> back;  ///< the return to the timeline that succeeded
  NodeName home;                  ///< empty: unchanged
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("job", self.job);
    visit("outcome", self.outcome);
    visit("back", self.back);
    visit("home", self.home);
  }
};

/// The job has a checkpoint: from now on it never starts again from its input by itself.
struct FirstCheckpoint {
  static constexpr std::string_view tag = "first-checkpoint";
  JobId job;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("job", self.job);
  }
};

/// A branch may be destroyed from then on; or a person thought better of it.
struct ExpirySet {
  static constexpr std::string_view tag = "expiry-set";
  Expiry expiry;
  bool withdrawn = false;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("expiry", self.expiry);
    visit("withdrawn", self.withdrawn);
  }
};

/// People were told that the branch goes in a day.
struct ExpiryAnnounced {
  static constexpr std::string_view tag = "expiry-announced";
  DatasetId branch;
  WallTime at;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("branch", self.branch);
    visit("at", self.at);
  }
};

/// A fork that a controller decided whose term was over. Nothing follows from it.
struct Proposed {
  static constexpr std::string_view tag = "proposed";
  Proposal proposal;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("proposal", self.proposal);
  }
};

/// What was not known at its submit of what a job is made of: its code's content, snapshots of its
/// data. What is known already stays as it is.
struct InputsPinned {
  static constexpr std::string_view tag = "inputs-pinned";
  JobId job;
  std::optional<CheckpointId> content;
  std::vector<Input> inputs;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("job", self.job);
    visit("content", self.content);
    visit("inputs", self.inputs);
  }
};

/// Compaction: one job whole.
struct JobKept {
  static constexpr std::string_view tag = "job-kept";
  DesiredJob job;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("job", self.job);
  }
};

/// The last record of a compaction: the counters that no other record brings back.
struct Compacted {
  static constexpr std::string_view tag = "compacted";
  std::uint64_t revision = 0;
  std::uint64_t counter = 0;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("revision", self.revision);
    visit("counter", self.counter);
  }
};

using Record =
    std::variant<TermBegan, Joined, Forgotten, DutySet, SecondChosen, Uploaded, Applied, Submitted,
                 Placed, Forked, Moved, WantedSet, Evicted, AttemptOver, Finished, FirstCheckpoint,
                 ExpirySet, ExpiryAnnounced, Proposed, InputsPinned, JobKept, Compacted>;

/// A record travels to the second node in one message, so it must stay below this.
inline constexpr std::size_t largest_record = 200 * 1024;

std::string encode_record(const Record& record);
/// Errors: `unsupported` for a type that only a newer version knows; `corrupt` for what does not
/// read.
Result<Record> decode_record(std::string_view text);

/// Paths of a cluster file are relative to its folder, which only the person's machine knows.
void resolve_paths(Cluster& cluster, const std::string& folder);

/// A cluster file as the records that keep it: one, or its pieces and then one.
std::vector<Record> records_of(AppliedFile file);

/// Whether an applied file's text is read for what it means. One that a later file replaces need
/// not be.
enum class Reading { now, later };

/// Applies one record. Total: a record that makes no sense where it stands (a placement of a job
/// that is not there, a second end of one attempt, anything that would change a terminal state)
/// changes nothing. `seq` is the record's number in the journal.
void fold(DesiredState& state, const Record& record, std::uint64_t seq,
          Reading reading = Reading::now);

/// The records that fold to `state` from nothing.
std::vector<Record> compaction_of(const DesiredState& state);

}  // namespace zed::controller
