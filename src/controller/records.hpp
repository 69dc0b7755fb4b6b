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

/// A person's word on whether a node takes jobs.
struct DutySet {
  static constexpr std::string_view tag = "duty-set";
  NodeName node;
  Duty duty = Duty::none;
  std::string by;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("node", self.node);
    visit("duty", self.duty);
    visit("by", self.by);
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
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("job", self.job);
    visit("by", self.by);
    visit("at", self.at);
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

/// The placed attempt of that generation is over (or never started) and the job goes on.
struct AttemptOver {
  static constexpr std::string_view tag = "attempt-over";
  JobId job;
  Generation generation;
  ExitRecord exit;
  bool counted = false;  ///< against the job's retries
  WallTime at;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("job", self.job);
    visit("generation", self.generation);
    visit("exit", self.exit);
    visit("counted", self.counted);
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
    std::variant<TermBegan, Joined, DutySet, SecondChosen, Applied, Submitted, Placed, Forked,
                 Moved, WantedSet, AttemptOver, Finished, FirstCheckpoint, JobKept, Compacted>;

/// A record travels to the second node in one message, so it must stay below this.
inline constexpr std::size_t largest_record = 200 * 1024;

std::string encode_record(const Record& record);
/// Errors: `unsupported` for a type that only a newer version knows; `corrupt` for what does not
/// read.
Result<Record> decode_record(std::string_view text);

/// Applies one record. Total: a record that makes no sense where it stands (a placement of a job
/// that is not there, a second end of one attempt, anything that would change a terminal state)
/// changes nothing. `seq` is the record's number in the journal.
void fold(DesiredState& state, const Record& record, std::uint64_t seq);

/// The records that fold to `state` from nothing.
std::vector<Record> compaction_of(const DesiredState& state);

}  // namespace zed::controller
