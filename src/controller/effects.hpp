#pragma once
// What can happen to a controller, and what it can do. See agent/effects.hpp for the rule of
// effects; it binds here as well.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "api/operations.hpp"
#include "core/message.hpp"

namespace zed::controller {

using EffectId = std::uint64_t;
/// One connection of an agent; never used again after it is gone.
using LinkId = std::uint64_t;
/// One request of a client, until it is answered.
using RequestId = std::uint64_t;

// ---- events -------------------------------------------------------------------------------------

/// The first event of every run: the journal's records, torn tail dropped, oldest first.
struct Started {
  ControllerId id;
  NodeName machine;  ///< the node that this controller runs beside, if it has an agent
  std::vector<std::string> records;
  std::uint64_t last_seq = 0;
  std::optional<Millis> lost_after;  ///< configured; default 30 s
  std::optional<Millis> lease;       ///< of exclusive jobs; default 15 min
  /// A person's takeover: begin a new term, above this and above the journal's.
  bool take_over = false;
  ControllerTerm highest_term;  ///< the highest that reachable agents have seen
};

/// Time passes: at least every 500 ms.
struct Tick {};

struct AgentConnected {
  LinkId link = 0;
};
struct AgentSaid {
  LinkId link = 0;
  AgentMessage message;
};
struct AgentGone {
  LinkId link = 0;
};

/// A client asks. Answered by exactly one Answer.
struct Requested {
  RequestId request = 0;
  api::Request operation;
  api::Caller caller;
};
/// The client went away; no answer is wanted any more.
struct RequestGone {
  RequestId request = 0;
};

/// Records up to and including `seq` are durable on this machine, or could not be written.
struct JournalWritten {
  std::uint64_t seq = 0;
  Status result;
};

using Event = std::variant<Started, Tick, AgentConnected, AgentSaid, AgentGone, Requested,
                           RequestGone, JournalWritten>;

// ---- effects ------------------------------------------------------------------------------------

struct SayToAgent {
  LinkId link = 0;
  ControllerMessage message;
};
struct CloseLink {
  LinkId link = 0;
};
/// Append and fsync (grouped with its neighbours); answered by JournalWritten. `seq` counts from 1
/// without gaps. After a failure the same records come again: one that is there already is only
/// reported written.
struct WriteJournal {
  std::uint64_t seq = 0;
  std::string record;
};
/// Replace the journal by these records (a compaction), atomically; `seq` is that of the last one.
struct CompactJournal {
  std::uint64_t seq = 0;
  std::vector<std::string> records;
};
struct Answer {
  RequestId request = 0;
  Result<Value> result;
};
/// To everyone who follows events.
struct Publish {
  api::FleetEvent event;
};
/// This controller must decide nothing more: say why, answer nothing, exit.
struct StepDown {
  ControllerTerm higher;
  Error error;
  /// The second node has more of the journal than this disk: no later start may go on from here.
  bool has_lost_journal = false;
};

using Effect =
    std::variant<SayToAgent, CloseLink, WriteJournal, CompactJournal, Answer, Publish, StepDown>;

}  // namespace zed::controller
