#include "agent/bench_test.hpp"

#include <gtest/gtest.h>

namespace zed::agent::test {
namespace {

bool changes_store(const env::StoreRequest& request) {
  return !std::holds_alternative<env::ListDatasets>(request) &&
         !std::holds_alternative<env::ChangedDatasets>(request) &&
         !std::holds_alternative<env::InspectDataset>(request) &&
         !std::holds_alternative<env::AskSpace>(request);
}

struct AgentDied {};

constexpr JobConnection connection = 7;

}  // namespace

ControllerTerm term(std::uint64_t number) {
  return {number, id<ControllerId>("controller")};
}
Generation gen(std::uint64_t counter, std::uint64_t term_number) {
  return {term(term_number), counter};
}
DatasetName ds(std::string_view name) {
  return DatasetName::parse(name).value();
}
NodeName node(std::string_view name) {
  return NodeName::parse(name).value();
}

struct Bench::Performer {
  Bench& b;

  void operator()(const SayToController& e) const { b.messages.emplace_back(e.link, e.message); }
  void operator()(const CloseLink& e) const { b.closed_links.push_back(e); }
  void operator()(const CallStore& e) const {
    b.store_requests.push_back(e.request);
    if (!b.answer_store) {
      b.unanswered.push_back(e);
      return;
    }
    bool dies = changes_store(e.request) && b.crash_change_ > 0 && --b.crash_change_ == 0;
    if (dies && !b.crash_happens_) throw AgentDied{};
    auto result = env::perform(b.store, e.request);
    if (dies) throw AgentDied{};
    b.events_.push_back(StoreReturned{e.id, std::move(result)});
  }
  void operator()(const LaunchAttempt& e) const {
    b.launches.push_back(e);
    if (b.launch_result)
      b.records[{e.launch.attempt.job, e.launch.attempt.generation}] = {e.launch, true, {}};
    const Attempt& attempt = e.launch.attempt;
    if (e.launch.setup && b.launch_result)
      b.events_.push_back(SetupBegan{attempt.job, attempt.generation});
    b.events_.push_back(AttemptStarted{e.id, b.launch_result});
  }
  void operator()(const StopProcesses& e) const {
    b.stops.push_back(e);
    auto record = b.records.find({e.job, e.generation});
    if (!b.processes_obey || record == b.records.end() || record->second.exit) return;
    ExitRecord exit;
    exit.kind =
        e.mode == StopMode::cancel ? ExitRecord::Kind::cancelled : ExitRecord::Kind::stopped;
    record->second.exit = exit;
    b.events_.push_back(AttemptExited{e.job, e.generation, exit});
  }
  void operator()(const ExtendLease& e) const { b.leases.push_back(e); }
  void operator()(const FreezeProcesses& e) const {
    b.freezes.push_back(e);
    if (e.id != 0 && b.freezes_work) b.events_.push_back(ProcessesFrozen{e.id, {}});
  }
  void operator()(const ForgetAttempt& e) const {
    b.forgotten.push_back(e);
    b.records.erase({e.job, e.generation});
  }
  void operator()(const AskJob& e) const { b.asks.push_back(e); }
  void operator()(const AnswerJob& e) const { b.answers.push_back(e); }
  void operator()(const StartTransfer& e) const { b.transfers.push_back(e); }
  void operator()(const CancelTransfer& e) const {
    b.cancels.push_back(e);
    if (b.transfers_obey)
      b.events_.push_back(TransferEnded{e.step, fail(ErrorCode::cancelled, "cancelled")});
  }
  void operator()(const StartHostSend& e) const { b.host_sends.push_back(e); }
  void operator()(const ImportPath& e) const { b.imports.push_back(e); }
  void operator()(const UnpackCode& e) const {
    b.unpacked.push_back(e);
    b.events_.push_back(CodeUnpacked{e.id, {}});
  }
  void operator()(const SaveNodeState& e) const {
    if (!b.save_node_state) {
      b.unsaved.push_back(e);
      return;
    }
    b.saved_term = e.highest_term;
    b.saved_second = e.journal_second;
    b.events_.push_back(NodeStateSaved{e.id, {}});
  }
  void operator()(const StoreJournalCopy& e) const {
    b.journal_copies.push_back(e);
    b.events_.push_back(JournalCopyStored{e.id, {}});
  }
  void operator()(const FetchLog& e) const { b.log_reads.push_back(e); }
  void operator()(const AnswerQuestion& e) const { b.questions.push_back(e); }
};

Bench::Bench() = default;

void Bench::perform(const Effect& effect) {
  std::visit(Performer{*this}, effect);
}

void Bench::drain() {
  try {
    while (!events_.empty() && state) {
      Event event = std::move(events_.front());
      events_.pop_front();
      for (const Effect& effect : on(*state, event, now))
        perform(effect);
    }
  } catch (const AgentDied&) {
    crash();
  }
}

void Bench::feed(const Event& event) {
  events_.push_back(event);
  drain();
}

void Bench::start_alone() {
  state = std::make_unique<State>(ids);
  Started started;
  started.node = id<NodeId>("server");
  started.name = node("server");
  started.facts = facts;
  Gpu a100;
  a100.uuid = "GPU-0";
  a100.model = "NVIDIA A100-SXM4-80GB";
  a100.vendor = GpuVendor::nvidia;
  a100.vram_reported = gibibytes(80);
  Gpu other = a100;
  other.uuid = "GPU-1";
  started.gpus = {a100, other};
  started.highest_term = saved_term;
  started.journal_second = saved_second;
  for (const auto& [key, record] : records)
    started.attempts.push_back(record);
  feed(started);
}

void Bench::start() {
  start_alone();
  connect();
}

void Bench::crash() {
  state.reset();
  events_.clear();
  unanswered.clear();
  crash_change_ = 0;
  messages.clear();
}

void Bench::crash_at(int change, bool happens) {
  crash_change_ = change;
  crash_happens_ = happens;
}

void Bench::connect(LinkId link, std::uint64_t term_number) {
  if (!state) return;
  feed(ControllerConnected{link});
  Welcome welcome;
  welcome.term = term(term_number);
  say(welcome, link);
}

void Bench::disconnect(LinkId link) {
  feed(ControllerGone{link});
}

void Bench::pass(Millis time) {
  for (std::int64_t passed = 0; passed < time.value && state; passed += 500) {
    now.monotonic = now.monotonic + Millis{500};
    now.wall.ms += 500;
    feed(Tick{});
  }
}

void Bench::say(ControllerMessage message, LinkId link) {
  feed(ControllerSaid{link, std::move(message)});
}

std::optional<StepResult> Bench::answer_to(StepId step) const {
  std::optional<StepResult> last;
  for (const auto& [link, message] : messages)
    if (const auto* result = std::get_if<StepResult>(&message); result && result->step == step)
      last = *result;
  return last;
}

std::optional<StepResult> Bench::order_as(StepId step, Action action, Expect expect) {
  last_step_ = step;
  StepOrder order;
  order.step.id = step;
  order.step.node = node("server");
  order.step.action = std::move(action);
  order.step.expect = expect;
  if (order.step.expect.term == ControllerTerm{}) order.step.expect.term = term(1);
  say(order);
  return answer_to(step);
}

std::optional<StepResult> Bench::order(Action action, Expect expect) {
  return order_as(id<StepId>("step" + std::to_string(++steps_)), std::move(action), expect);
}

Job Bench::job() const {
  Job job;
  job.id = id<JobId>("train");
  job.name = JobName("train");
  job.dataset = ds("jobs/train");
  job.argv = {"python", "train.py"};
  return job;
}

namespace {
CreateDataset job_dataset(const Job& job, std::uint64_t timeline) {
  return {job.dataset,
          {{property::uuid, job.id.str()},
           {property::type, "job"},
           {property::name, job.name.str()},
           {property::home, "server"},
           {property::timeline, gen(timeline).str()},
           {property::generation, gen(0).str()}}};
}
}  // namespace

void Bench::make_job_dataset(std::uint64_t timeline) {
  auto made = order(job_dataset(job(), timeline));
  ASSERT_TRUE(made && !made->error) << (made ? made->error->describe() : "no answer");
}

void Bench::make_job_dataset_later() {
  order(job_dataset(job(), 1));
}

StartAttempt Bench::starting(std::uint64_t generation, std::uint64_t timeline) const {
  StartAttempt start;
  start.job = job();
  start.generation = gen(generation);
  start.timeline = gen(timeline);
  start.number = static_cast<std::int64_t>(generation);
  start.gpus = {"GPU-0"};
  return start;
}

void Bench::run_job() {
  make_job_dataset();
  auto started = order(starting(1));
  ASSERT_TRUE(started && !started->error) << (started ? started->error->describe() : "no answer");
  feed(JobConnected{connection, job_id(), gen(1)});
}

void Bench::job_writes(std::string_view file, std::string_view text) {
  ASSERT_TRUE(store.write_file(dataset(), file, std::string(text)));
}

void Bench::ask_commit(std::uint64_t number, std::int64_t epoch, std::uint64_t generation,
                       Millis deadline) {
  CheckpointAsked asked;
  asked.connection = connection;
  asked.job = job_id();
  asked.request.number = number;
  asked.request.generation = gen(generation);
  asked.request.deadline = now.monotonic + deadline;
  asked.request.epoch = epoch;
  asked.request.metrics = {{"loss", 1.0 / static_cast<double>(epoch)}};
  feed(asked);
}

env::CheckpointReply Bench::job_commits(std::int64_t epoch, std::uint64_t generation) {
  job_writes("weights", "epoch " + std::to_string(epoch));
  std::size_t before = answers.size();
  ask_commit(1000 + ++requests_, epoch, generation);
  if (answers.size() == before) return {};
  return answers.back().reply;
}

void Bench::job_exits(ExitRecord::Kind kind, std::uint64_t generation) {
  ExitRecord exit;
  exit.kind = kind;
  records.at({job_id(), gen(generation)}).exit = exit;
  feed(AttemptExited{job_id(), gen(generation), exit});
}

CheckpointId Bench::checkpoint(std::string_view snapshot, std::string_view dataset) const {
  Dataset there = seen(dataset);
  const Snapshot* found = there.find(snapshot);
  return found != nullptr ? found->id : CheckpointId{};
}

ApplyFork Bench::fork_at(std::string_view snapshot, std::uint64_t timeline,
                         std::uint64_t left) const {
  ApplyFork apply;
  apply.dataset = dataset();
  apply.uuid.bytes = job_id().bytes;
  apply.fork.job = job_id();
  apply.fork.from = checkpoint(snapshot);
  apply.fork.timeline = gen(timeline);
  apply.fork.left = gen(left);
  apply.home = node("server");
  apply.branch_uuid = id<DatasetId>("branch" + std::to_string(timeline));
  return apply;
}

Dataset Bench::seen(std::string_view name) const {
  auto there = const_cast<sim::MemoryStore&>(store).inspect(ds(name));
  return there ? *there : Dataset{};
}

bool Bench::is_there(std::string_view name) const {
  return const_cast<sim::MemoryStore&>(store).inspect(ds(name)).has_value();
}

std::string Bench::pool() const {
  std::string text;
  auto all = const_cast<sim::MemoryStore&>(store).list();
  if (!all) return all.error().describe();
  for (const Dataset& dataset : *all) {
    if (dataset.snapshots.empty() && dataset.properties.empty()) continue;
    if (!text.empty()) text += "; ";
    text += dataset.name.str() + (dataset.readonly ? ":" : "!:");
    for (const Snapshot& snapshot : dataset.snapshots)
      text += " @" + snapshot.name;
  }
  return text;
}

std::vector<std::string> Bench::notices() const {
  std::vector<std::string> texts;
  for (const auto& notice : said<Notice>())
    texts.push_back(notice.subject + ": " + notice.text);
  return texts;
}

std::optional<Attempt> Bench::last_report() const {
  auto reports = said<AttemptReport>();
  if (reports.empty()) return std::nullopt;
  return reports.back().attempt;
}

std::map<DatasetName, Dataset> Bench::picture() const {
  std::map<DatasetName, Dataset> picture;
  auto merge = [&picture](const Dataset& part, bool delta) {
    auto known = picture.find(part.name);
    if (known == picture.end() || !delta) {
      picture[part.name] = part;
      return;
    }
    std::vector<Snapshot> snapshots = std::move(known->second.snapshots);
    for (const Snapshot& snapshot : part.snapshots) {
      std::erase_if(snapshots, [&](const Snapshot& s) { return s.id == snapshot.id; });
      snapshots.push_back(snapshot);
    }
    known->second = part;
    known->second.snapshots = std::move(snapshots);
  };
  for (const auto& [link, message] : messages) {
    if (const auto* page = std::get_if<InventoryPage>(&message)) {
      if (page->page == 0) picture.clear();
      for (const Dataset& part : page->datasets)
        merge(part, true);
    } else if (const auto* changed = std::get_if<DatasetChanged>(&message)) {
      merge(changed->dataset, changed->delta);
      for (const CheckpointId& gone : changed->gone)
        std::erase_if(picture[changed->dataset.name].snapshots,
                      [&](const Snapshot& s) { return s.id == gone; });
    } else if (const auto* removed = std::get_if<DatasetRemoved>(&message)) {
      picture.erase(removed->dataset);
    }
  }
  return picture;
}

}  // namespace zed::agent::test
