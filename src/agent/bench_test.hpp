#pragma once
// A workbench for the agent's tests: a real State over a simulated store, its effects carried out
// at once and in order, its crash at any change of the store, time that is ticked by hand.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/agent.hpp"
#include "sim/memory_store.hpp"

namespace zed::agent::test {

class CountingIds final : public IdSource {
public:
  std::array<std::uint8_t, 16> next() override {
    std::array<std::uint8_t, 16> bytes{};
    ++count_;
    for (std::size_t i = 0; i < 8; ++i)
      bytes[15 - i] = static_cast<std::uint8_t>(count_ >> (8 * i));
    bytes[0] = 0xa9;
    return bytes;
  }

private:
  std::uint64_t count_ = 0;
};

/// 128 bits that a test's text names: id<JobId>("train").
template <class Id> Id id(std::string_view text) {
  Id made;
  for (std::size_t i = 0; i < text.size() && i < 16; ++i)
    made.bytes[i] = static_cast<std::uint8_t>(text[i]);
  return made;
}
ControllerTerm term(std::uint64_t number);
Generation gen(std::uint64_t counter, std::uint64_t term_number = 1);
DatasetName ds(std::string_view name);
NodeName node(std::string_view name);

/// What a test does itself must work.
template <class T> void must(const Result<T>& result) {
  ZED_ASSERT(result);
}

class Bench {
public:
  Bench();

  // ---- the machine ----
  void start();        ///< runs the agent on what is durable, and connects a controller
  void start_alone();  ///< without a controller
  void crash();        ///< ends it; the store and the attempts' records stay
  void connect(LinkId link = 1, std::uint64_t term_number = 1);
  void disconnect(LinkId link = 1);
  void pass(Millis time);  ///< in ticks of 500 ms
  void feed(const Event& event);
  /// The agent dies at the n-th change of the store from now on (1: the next), which happens or
  /// not.
  void crash_at(int change, bool happens);
  bool crashed() const { return state == nullptr; }

  // ---- orders ----
  /// The step's answer, or none yet.
  std::optional<StepResult> order(Action action, Expect expect = {});
  std::optional<StepResult> order_as(StepId step, Action action, Expect expect = {});
  std::optional<StepResult> answer_to(StepId step) const;
  StepId last_step() const { return last_step_; }
  void say(ControllerMessage message, LinkId link = 1);

  // ---- a job named "train" on jobs/train ----
  Job job() const;
  JobId job_id() const { return job().id; }
  DatasetName dataset() const { return ds("jobs/train"); }
  void make_job_dataset(std::uint64_t timeline = 1);
  void make_job_dataset_later();  ///< orders it, and waits for nothing
  StartAttempt starting(std::uint64_t generation, std::uint64_t timeline = 1) const;
  /// Makes the dataset, starts generation 1, connects the job's socket as connection 7.
  void run_job();
  void job_writes(std::string_view file, std::string_view text);
  env::CheckpointReply job_commits(std::int64_t epoch, std::uint64_t generation = 1);
  void ask_commit(std::uint64_t number, std::int64_t epoch, std::uint64_t generation = 1,
                  Millis deadline = seconds(30));
  void job_exits(ExitRecord::Kind kind = ExitRecord::Kind::success, std::uint64_t generation = 1);
  ApplyFork fork_at(std::string_view snapshot, std::uint64_t timeline,
                    std::uint64_t left = 1) const;
  CheckpointId checkpoint(std::string_view snapshot, std::string_view dataset = "jobs/train") const;

  // ---- what can be seen ----
  Dataset seen(std::string_view name) const;
  bool is_there(std::string_view name) const;
  /// "jobs/train: @epoch-1 @epoch-2; …": every dataset and its snapshots, and '!' for writable.
  std::string pool() const;
  std::vector<std::string> notices() const;
  template <class Message> std::vector<Message> said(LinkId link = 1) const {
    std::vector<Message> found;
    for (const auto& [to, message] : messages)
      if (const auto* one = std::get_if<Message>(&message); one != nullptr && to == link)
        found.push_back(*one);
    return found;
  }
  std::optional<Attempt> last_report() const;
  /// The controller's picture of this node, built from pages and deltas alone.
  std::map<DatasetName, Dataset> picture() const;

  sim::MemoryStore store{1};
  CountingIds ids;
  std::unique_ptr<State> state;
  Now now{Instant{1'000'000}, WallTime{1'700'000'000'000}};

  // What the agent did, in order.
  std::vector<std::pair<LinkId, AgentMessage>> messages;
  std::vector<env::StoreRequest> store_requests;
  std::vector<LaunchAttempt> launches;
  std::vector<StopProcesses> stops;
  std::vector<AskJob> asks;
  std::vector<AnswerJob> answers;
  std::vector<StartTransfer> transfers;
  std::vector<CancelTransfer> cancels;
  std::vector<FreezeProcesses> freezes;
  std::vector<ForgetAttempt> forgotten;
  std::vector<StoreJournalCopy> journal_copies;
  std::vector<CloseLink> closed_links;
  std::vector<ImportPath> imports;
  std::vector<StartHostSend> host_sends;
  std::vector<UnpackCode> unpacked;
  std::vector<ExtendLease> leases;
  std::vector<FetchLog> log_reads;
  std::vector<AnswerQuestion> questions;

  // How the world behaves.
  bool processes_obey = true;  ///< StopProcesses is followed by AttemptExited at once
  bool transfers_obey = true;  ///< CancelTransfer is followed by TransferEnded at once
  bool freezes_work = true;
  bool save_node_state = true;  ///< NodeStateSaved comes at once
  bool answer_store = true;     ///< false: store calls wait in `unanswered`
  Status launch_result;
  NodeFacts facts;  ///< of the machine, at its next start
  std::vector<CallStore> unanswered;
  std::vector<SaveNodeState> unsaved;

  // Durable.
  ControllerTerm saved_term;
  NodeName saved_second;
  std::map<std::pair<JobId, Generation>, env::FoundAttempt> records;

private:
  struct Performer;
  void perform(const Effect& effect);
  void drain();
  std::deque<Event> events_;
  int crash_change_ = 0;
  bool crash_happens_ = false;
  StepId last_step_;
  std::uint64_t steps_ = 0;
  std::uint64_t requests_ = 0;
};

}  // namespace zed::agent::test
