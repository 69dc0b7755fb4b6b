#pragma once
// What can happen to an agent, and what it can do: the border between its pure state machine and
// the world. The shell in bin/ and the simulation both perform these effects and make these events.
//
// The rule of effects: effects of one vector are unordered and any of them may be lost in a crash.
// (Messages to one link keep their order, as the connection does.)
// What must be durable first is emitted only on the event that reports it durable. An effect that
// has a result carries an id, and the event of its result carries the same one; results of ids that
// the agent no longer waits for are dropped.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/message.hpp"
#include "env/attempts.hpp"
#include "env/store.hpp"

namespace zed::agent {

using EffectId = std::uint64_t;
/// One connection to a controller; never used again after it is gone.
using LinkId = std::uint64_t;
/// One connected job process.
using JobConnection = std::uint64_t;

// ---- events -------------------------------------------------------------------------------------

/// The first event of every run of an agent.
struct Started {
  NodeId node;
  NodeName name;
  NodeFacts facts;
  std::vector<Gpu> gpus;
  ControllerTerm highest_term;  ///< as saved by SaveNodeState
  NodeName journal_second;      ///< as saved
  std::uint64_t journal_copy_seq = 0;
  ControllerTerm journal_copy_term;
  std::vector<env::FoundAttempt> attempts;
};

/// Time passes: at least every 500 ms.
struct Tick {};

struct ControllerConnected {
  LinkId link = 0;
};
struct ControllerSaid {
  LinkId link = 0;
  ControllerMessage message;
};
struct ControllerGone {
  LinkId link = 0;
};

struct StoreReturned {
  EffectId effect = 0;
  Result<env::StoreReply> result;
};

/// The supervisor runs and the job's first process, or its setup, has been started (or the start
/// failed).
struct AttemptStarted {
  EffectId effect = 0;
  Status result;
};
/// Its setup runs or waits for its turn; JobBegan follows, or the end of the attempt. Comes before
/// AttemptStarted, and again for an attempt that an earlier run of the agent left.
struct SetupBegan {
  JobId job;
  Generation generation;
};
/// The setup is done, the job's first process has been started.
struct JobBegan {
  JobId job;
  Generation generation;
};
/// All processes of the attempt are gone and its exit record is durable.
struct AttemptExited {
  JobId job;
  Generation generation;
  ExitRecord exit;
};
/// The supervisor died; its job's processes are being killed by the shell, AttemptExited follows
/// with kind supervisor_lost once none is left.
struct SupervisorLost {
  JobId job;
  Generation generation;
};

/// Submitted code is in the job's live files (or could not be put there).
struct CodeUnpacked {
  EffectId effect = 0;
  Status result;
};

/// All processes of the attempt are frozen or thawed (or could not be).
struct ProcessesFrozen {
  EffectId effect = 0;
  Status result;
};

/// A job process said hello on its socket, or went away.
struct JobConnected {
  JobConnection connection = 0;
  JobId job;
  Generation generation;
};
struct JobDisconnected {
  JobConnection connection = 0;
};
/// It asks for a checkpoint; answered by exactly one AnswerJob.
struct CheckpointAsked {
  JobConnection connection = 0;
  JobId job;
  env::CheckpointRequest request;
};
/// It has done what an Ask of stop wanted and will exit by itself.
struct JobStopped {
  JobConnection connection = 0;
};

/// Bytes so far, from either end.
struct TransferProgressed {
  StepId step;
  Bytes done;
  Bytes total;
  Bytes rate;
};
/// A receive that succeeded brings the snapshot it made; a send brings none.
struct TransferOutcome {
  Bytes moved;
  std::optional<Snapshot> snapshot;
};
/// Every StartTransfer ends with exactly one of these (cancelled ones with code `cancelled`), after
/// its processes and files are gone.
struct TransferEnded {
  StepId step;
  Result<TransferOutcome> result;
};

struct ImportEnded {
  StepId step;
  Result<Snapshot> result;
};

struct GpusProbed {
  std::vector<Gpu> gpus;
};
/// What the machine has free, what powers it, and what its GPUs do (empty: not asked).
struct MemoryMeasured {
  Bytes memory_free;
  std::vector<GpuLoad> loads = {};
  std::string power = {};  ///< as in NodeFacts
};

struct NodeStateSaved {
  EffectId effect = 0;
  Status result;
};
struct JournalCopyStored {
  EffectId effect = 0;
  Status result;
};
struct LogRead {
  EffectId effect = 0;
  Result<LogPage> result;
};

/// The answer to AnswerQuestion.
struct QuestionAnswered {
  EffectId effect = 0;
  Result<NodeReply> result;
};

using Event =
    std::variant<Started, Tick, ControllerConnected, ControllerSaid, ControllerGone, StoreReturned,
                 AttemptStarted, SetupBegan, JobBegan, AttemptExited, SupervisorLost, JobConnected,
                 JobDisconnected, CheckpointAsked, JobStopped, TransferProgressed, TransferEnded,
                 ImportEnded, GpusProbed, MemoryMeasured, NodeStateSaved, JournalCopyStored,
                 LogRead, ProcessesFrozen, CodeUnpacked, QuestionAnswered>;

// ---- effects ------------------------------------------------------------------------------------

struct SayToController {
  LinkId link = 0;
  AgentMessage message;
};
/// Drop a link (a controller of an older term, a refused hello).
struct CloseLink {
  LinkId link = 0;
};

struct CallStore {
  EffectId id = 0;
  env::StoreRequest request;
};

/// Write the launch record, then start `zed-agent supervise`. The exit record comes later.
struct LaunchAttempt {
  EffectId id = 0;
  env::LaunchRequest launch;
};
/// SIGTERM to all of its processes, SIGKILL after the grace; `mode` becomes the exit record's kind.
struct StopProcesses {
  JobId job;
  Generation generation;
  StopMode mode = StopMode::halt;
};
struct ExtendLease {
  JobId job;
  Generation generation;
  Millis lease;
};
/// Freeze or thaw all processes of an attempt (a time-based checkpoint of a job that is not
/// connected). Answered by ProcessesFrozen; a freeze unanswered for 10 s is given up and thawed.
struct FreezeProcesses {
  JobId job;
  Generation generation;
  bool frozen = true;
  EffectId id = 0;
};
/// Remove the launch and exit record of an acknowledged attempt.
struct ForgetAttempt {
  JobId job;
  Generation generation;
};

struct AskJob {
  JobConnection connection = 0;
  env::Ask ask = env::Ask::checkpoint;
  Instant deadline;
  std::string reason;
};
struct AnswerJob {
  JobConnection connection = 0;
  env::CheckpointReply reply;
};

struct StartTransfer {
  enum class Role { send, receive };
  StepId step;
  Role role = Role::send;
  Ticket ticket;
  PropertyChanges dataset_changes;           ///< receive: of the replica
  std::optional<TransferId> through = {};    ///< send: of the receive whose bytes are passed on
  std::optional<TransferId> passes_to = {};  ///< receive: of the send that waits for them
};
struct CancelTransfer {
  StepId step;
};
/// Send a snapshot by ssh to a machine without an agent. Ended by TransferEnded, told of by
/// TransferProgressed, cancelled by CancelTransfer.
struct StartHostSend {
  StepId step;
  SendToHost send;
};
struct ImportPath {
  StepId step;
  ImportFiles import;
};

/// Copy the files of a snapshot into the live files of a job's dataset. Done again after a crash:
/// the same files are written over.
struct UnpackCode {
  EffectId id = 0;
  DatasetName dataset;
  Input code;
};

/// Durable small facts of the node.
struct SaveNodeState {
  EffectId id = 0;
  ControllerTerm highest_term;
  NodeName journal_second;
};
struct StoreJournalCopy {
  EffectId id = 0;
  JournalRecords records;
};
struct FetchLog {
  EffectId id = 0;
  ReadLog request;
};

/// Look into a copy's files, or start or tend a command beside a job; answered by QuestionAnswered.
/// Commands end with their attempt.
struct AnswerQuestion {
  EffectId id = 0;
  NodeQuestion question;
};

using Effect = std::variant<SayToController, CloseLink, CallStore, LaunchAttempt, StopProcesses,
                            ExtendLease, FreezeProcesses, ForgetAttempt, AskJob, AnswerJob,
                            StartTransfer, StartHostSend, CancelTransfer, ImportPath, UnpackCode,
                            SaveNodeState, StoreJournalCopy, FetchLog, AnswerQuestion>;

}  // namespace zed::agent
