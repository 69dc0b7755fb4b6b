#pragma once
// What the matters of an agent offer one another. Each block is one file.

#include "agent/machine.hpp"

namespace zed::agent {

// ---- links.cpp ----
void connected(Machine& m, LinkId link);
void disconnected(Machine& m, LinkId link);
void heard(Machine& m, LinkId link, const ControllerMessage& message);
/// Greets every controller that waits for it.
void greet(Machine& m);
/// Heartbeats, and links of an older term to be closed.
void tick_links(Machine& m);

// ---- steps.cpp ----
void order(Machine& m, const StepOrder& order);
void cancel(Machine& m, const CancelStep& cancel);
/// Whether the agent may write or destroy this dataset: it has an identity of its own or lies under
/// a declared root.
Status may_write(const Machine& m, const Dataset& dataset);
/// Whether a dataset of this name may be made here.
Status may_make(const Machine& m, const DatasetName& name);
/// Whether the node's copy is what the step expects; `dataset` is null where there is none.
Status check_expectation(const Expect& expect, const DatasetName& name, const Dataset* dataset);
/// Inspects the dataset of a step, checks what it expects, and goes on with the copy (none if there
/// is none); an error answers the step.
void with_checked(Machine& m, const Step& step, const DatasetName& name,
                  std::function<void(Turn, std::optional<Dataset>)> then);

// ---- inventory.cpp ----
void begin_inventory(Machine& m);
void tick_inventory(Machine& m);
/// Sends everything, in pages.
void send_inventory(Machine& m);
/// Takes in what the store says of a dataset now and reports the difference. `by_hand`: found by
/// looking, so what we did not do ourselves was done by a person.
void learn(Machine& m, Dataset seen, bool by_hand = false);
void forget(Machine& m, const DatasetName& dataset, bool by_hand = false);
/// Looks again at a dataset after an effect of our own, then goes on. The error of a failed look is
/// left to the next scan.
void refresh(Machine& m, const DatasetName& dataset, std::function<void()> then = {});

// ---- attempts.cpp ----
void adopt_attempts(Machine& m, const std::vector<env::FoundAttempt>& found);
/// After the store's content is known: closes what ended while no agent ran.
void close_found_attempts(Machine& m);
void start_attempt(Machine& m, const Step& step, const StartAttempt& action);
void stop_attempt(Machine& m, const Step& step, const StopAttempt& action);
/// What the snapshots of an attempt tell of its code and data.
void add_origins(Properties& properties, const env::LaunchRequest& launch);
/// Begins or hardens a stop.
void stop_live(Machine& m, LiveAttempt& live, StopMode mode, const std::string& reason);
/// Asks a job that is being stopped to do so itself, once it is durable that it was asked: it may
/// answer by exiting with 0 while no agent listens.
void ask_to_stop(Machine& m, const LiveAttempt& live);
void setup_began(Machine& m, const SetupBegan& event);
void job_began(Machine& m, const JobBegan& event);
void attempt_exited(Machine& m, const AttemptExited& event);
void supervisor_lost(Machine& m, const SupervisorLost& event);
void job_stopped(Machine& m, JobConnection connection);
void acknowledge(Machine& m, const AckExit& ack);
void tick_attempts(Machine& m);
void report(Machine& m, const LiveAttempt& live);
void set_phase(Machine& m, LiveAttempt& live, AttemptPhase phase);
/// A GPU that fell off the bus or wants a reset ends what runs on it: the job goes on elsewhere
/// from its newest checkpoint, and nothing of it counts as a failure.
void leave_broken_gpus(Machine& m);
/// Which of these GPUs cannot be given to a new attempt, and why.
Status check_gpus(const Machine& m, const StartAttempt& action);

// ---- checkpoints.cpp ----
void job_connected(Machine& m, const JobConnected& event);
void job_disconnected(Machine& m, JobConnection connection);
void checkpoint_asked(Machine& m, const CheckpointAsked& event);
void ask_checkpoint(Machine& m, const Step& step, const AskCheckpoint& action);
void tick_checkpoints(Machine& m);
/// The attempt ended: everything that waits for a checkpoint of it hears so.
void end_checkpoints(Machine& m, LiveAttempt& live);
/// Whether it is the home of a job here and a person rolled it back (core/hand_rollback.hpp).
bool was_rolled_back(const Machine& m, const Dataset& dataset);
void stop_outrun(Machine& m, const Dataset& dataset);
/// "10 minutes", "1 epoch": ZED_CHECKPOINT_EVERY, and how an adopted attempt's policy is known.
std::string text_of(const CheckpointPolicy& policy);
std::optional<Millis> period_of(const std::string& text);

// ---- forks.cpp ----
void apply_fork(Machine& m, const Step& step, const ApplyFork& action);
void follow_home(Machine& m, const Step& step, const FollowHome& action);
/// Finishes what an earlier run began; hello waits for it.
void resume_intents(Machine& m);
/// Starts forks whose transfers and processes have ended.
void advance_forks(Machine& m);

// ---- transfers.cpp ----
void send_snapshot(Machine& m, const Step& step, const SendSnapshot& action);
void receive_snapshot(Machine& m, const Step& step, const ReceiveSnapshot& action);
void send_to_host(Machine& m, const Step& step, const SendToHost& action);
void transfer_progressed(Machine& m, const TransferProgressed& event);
void transfer_ended(Machine& m, const TransferEnded& event);
/// Ends every transfer of a dataset; false while one still runs.
bool end_transfers(Machine& m, const DatasetName& dataset, const std::string& why);
void cancel_transfer(Machine& m, Transfer& transfer, const std::string& why);
void import_files(Machine& m, const Step& step, const ImportFiles& action);
void import_ended(Machine& m, const ImportEnded& event);
/// Releases what an earlier run of the agent held.
void release_left_holds(Machine& m);
/// Keeps a snapshot from being destroyed, by whoever has the turn of its dataset. The property
/// `held` names it first, so that a later run of the agent can release it.
void hold(Machine& m, const Turn& turn, const std::string& snapshot, const std::string& tag,
          std::function<void(Status)> then);
/// Takes a turn of its own.
void release(Machine& m, const DatasetName& dataset, const std::string& snapshot,
             const std::string& tag);
inline constexpr char held_property[] = "held";

// ---- adoption.cpp ----
void adopt_dataset(Machine& m, const Step& step, const AdoptDataset& action);

// ---- node_state.cpp ----
/// Makes a term and second node durable, then goes on.
void save_node_state(Machine& m, const ControllerTerm& term, const NodeName& second,
                     std::function<void(Status)> then);
void copy_journal(Machine& m, const JournalRecords& records);
void read_log(Machine& m, const ReadLog& request);
void log_read(Machine& m, const LogRead& event);

// ---- questions.cpp ----
void ask(Machine& m, const AskNode& asked);
void answered(Machine& m, const QuestionAnswered& event);

}  // namespace zed::agent
