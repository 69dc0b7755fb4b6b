#include "controller/testing.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/text.hpp"

namespace zed::controller::testing {

std::array<std::uint8_t, 16> CountingIds::next() {
  std::array<std::uint8_t, 16> bytes{};
  bytes[0] = series_;
  ++count_;
  for (std::size_t i = 0; i < 8; ++i)
    bytes[15 - i] = static_cast<std::uint8_t>(count_ >> (8 * i));
  return bytes;
}

NodeName node(const std::string& name) {
  return NodeName::parse(name).value();
}
DatasetName dataset(const std::string& name) {
  return DatasetName::parse(name).value();
}

namespace {

/// "A100/80 x2" as GPUs of node `name`.
std::vector<Gpu> gpus_of(const std::string& name, std::string text) {
  std::vector<Gpu> gpus;
  if (trim(text).empty()) return gpus;
  int count = 1;
  if (std::size_t times = text.find(" x"); times != std::string::npos) {
    count = std::stoi(text.substr(times + 2));
    text = text.substr(0, times);
  }
  std::size_t slash = text.find('/');
  std::int64_t gb = std::stoi(text.substr(slash + 1));
  for (int i = 0; i < count; ++i) {
    Gpu gpu;
    gpu.uuid = "GPU-" + name + "-" + std::to_string(i);
    gpu.vendor = GpuVendor::nvidia;
    gpu.model = "NVIDIA " + std::string(trim(text.substr(0, slash)));
    gpu.vram_reported = gibibytes(gb);
    gpu.vram_nominal_gb = gb;
    gpu.arch = "8.0";
    gpus.push_back(gpu);
  }
  return gpus;
}

constexpr Millis quantum{500};
constexpr int most_deliveries = 100'000;

}  // namespace

World::World(const std::string& nodes, NodeName machine) : machine_(std::move(machine)) {
  controller_ = ControllerId{CountingIds(0xC0).next()};
  CountingIds node_ids(0xA0);
  for (const std::string& text : split(nodes, ';')) {
    std::size_t colon = text.find(':');
    FakeAgent agent;
    agent.name = testing::node(std::string(trim(text.substr(0, colon))));
    agent.id = NodeId{node_ids.next()};
    agent.gpus = gpus_of(agent.name.str(), std::string(trim(text.substr(colon + 1))));
    agent.facts.os = "linux";
    agent.facts.cpu_arch = "x86_64";
    agent.facts.cpus = 16;
    agent.facts.memory = gibibytes(256);
    agent.facts.pool = "tank";
    agent.facts.data_address = "127.0.0.1:4373";
    agents_.emplace(agent.name, agent);
  }
  begin(false);
}

void World::begin(bool take_over) {
  state_.emplace(ids_);
  coming_.clear();
  unwritten_.clear();
  Started started{controller_, machine_, journal, last_seq_, {}, {}, take_over, {}};
  deliver(started);
  for (auto& entry : agents_)
    if (!entry.second.silent) connect(entry.second);
  settle();
}

void World::restart(std::size_t lost_records) {
  journal.resize(journal.size() - lost_records);
  last_seq_ -= lost_records;
  for (auto& entry : agents_)
    entry.second.link.reset();
  begin(false);
}

void World::take_over_on(const std::string& name) {
  FakeAgent& second = agent(name);
  journal = second.copy;
  last_seq_ = second.copy_seq;
  controller_.bytes[1]++;
  machine_ = second.name;
  for (auto& entry : agents_)
    entry.second.link.reset();
  begin(true);
}

void World::connect(FakeAgent& agent) {
  agent.link = next_link_++;
  coming_.push_back(AgentConnected{*agent.link});
  Hello hello;
  hello.node = agent.id;
  hello.name = agent.name;
  hello.highest_term = agent.term;
  hello.journal_copy_seq = agent.copy_seq;
  hello.journal_copy_term = agent.copy_term;
  hello.facts = agent.facts;
  hello.gpus = agent.gpus;
  hello.attempts = agent.attempts;
  say(agent, hello);
  InventoryPage page;
  page.last = true;
  for (const auto& entry : agent.datasets)
    page.datasets.push_back(entry.second);
  if (!agent.has_no_inventory) say(agent, page);
  say(agent, Heartbeat{gibibytes(1000), gibibytes(200)});
  for (const Attempt& attempt : agent.attempts)
    if (attempt.phase == AttemptPhase::ended) say(agent, AttemptReport{attempt});
}

void World::disconnect(FakeAgent& agent) {
  if (!agent.link) return;
  coming_.push_back(AgentGone{*agent.link});
  agent.link.reset();
}

void World::goes_silent(const std::string& name) {
  agent(name).silent = true;
  disconnect(agent(name));
  settle();
}

void World::returns(const std::string& name) {
  agent(name).silent = false;
  connect(agent(name));
  settle();
}

void World::pass(Millis time) {
  for (Instant end = now_.monotonic + time; now_.monotonic < end;) {
    now_.monotonic = now_.monotonic + quantum;
    now_.wall.ms += quantum.value;
    if (now_.monotonic.ms % 2000 == 0)
      for (auto& entry : agents_)
        if (entry.second.link) say(entry.second, Heartbeat{gibibytes(1000), gibibytes(200)});
    coming_.push_back(Tick{});
    settle();
  }
}

void World::leap(Millis time) {
  now_.monotonic = now_.monotonic + time;
  now_.wall.ms += time.value;
  for (auto& entry : agents_)
    if (entry.second.link) say(entry.second, Heartbeat{gibibytes(1000), gibibytes(200)});
  settle();
  coming_.push_back(Tick{});
  settle();
}

void World::settle() {
  for (int i = 0; i < most_deliveries; ++i) {
    if (!hold_journal && !break_journal && !unwritten_.empty()) {
      std::uint64_t seq = unwritten_.front();
      unwritten_.pop_front();
      coming_.push_back(JournalWritten{seq, {}});
    }
    if (coming_.empty()) return;
    Event event = coming_.front();
    coming_.pop_front();
    deliver(event);
  }
  ADD_FAILURE() << "the fleet does not settle";
}

void World::deliver(const Event& event) {
  for (const Effect& effect : on(*state_, event, now_))
    perform(effect);
}

void World::say(FakeAgent& agent, AgentMessage message) {
  if (agent.link) coming_.push_back(AgentSaid{*agent.link, std::move(message)});
}

void World::perform(const Effect& effect) {
  if (auto* said = std::get_if<SayToAgent>(&effect)) {
    for (auto& entry : agents_)
      if (entry.second.link == said->link) return hear(entry.second, said->message);
  } else if (auto* write = std::get_if<WriteJournal>(&effect)) {
    if (break_journal) {
      coming_.push_back(JournalWritten{write->seq, fail(ErrorCode::no_space, "disk full")});
      return;
    }
    if (write->seq <= last_seq_) return unwritten_.push_back(write->seq);
    EXPECT_EQ(write->seq, last_seq_ + 1) << "a gap in the journal";
    last_seq_ = write->seq;
    journal.push_back(write->record);
    unwritten_.push_back(write->seq);
  } else if (auto* compact = std::get_if<CompactJournal>(&effect)) {
    EXPECT_EQ(compact->seq, last_seq_);
    journal = compact->records;
  } else if (auto* answer = std::get_if<Answer>(&effect)) {
    EXPECT_TRUE(answers_.emplace(answer->request, answer->result).second) << "answered twice";
  } else if (auto* publish = std::get_if<Publish>(&effect)) {
    events.push_back(publish->event);
  } else if (auto* down = std::get_if<StepDown>(&effect)) {
    stepped_down = *down;
  } else if (auto* close = std::get_if<CloseLink>(&effect)) {
    for (auto& entry : agents_)
      if (entry.second.link == close->link) disconnect(entry.second);
  }
}

// ---- people -------------------------------------------------------------------------------------

Result<Value> World::ask_as(const std::string& who, const api::Request& request) {
  RequestId id = next_request_++;
  coming_.push_back(Requested{id, request, {who, "test"}});
  settle();
  for (int i = 0; i < 400 && !answers_.contains(id); ++i)
    pass(quantum);
  auto found = answers_.find(id);
  if (found == answers_.end()) return fail(ErrorCode::internal, "never answered");
  return found->second;
}

Value World::must(const api::Request& request) {
  auto result = ask(request);
  EXPECT_TRUE(result) << result.error().describe();
  return result ? *result : Value();
}

Result<Value> World::apply(const std::string& text) {
  api::Apply apply;
  apply.text = text;
  return ask(apply);
}

Result<Value> World::dispatch(const std::string& name) {
  api::Dispatch dispatch;
  dispatch.job = name;
  return ask(dispatch);
}

// ---- jobs ---------------------------------------------------------------------------------------

const DesiredJob& World::job(const std::string& name) const {
  const DesiredState& desired = state_->desired();
  auto named = desired.by_name.find(JobName(name));
  static const DesiredJob none;
  if (named == desired.by_name.end()) {
    ADD_FAILURE() << "no job " << name;
    return none;
  }
  return *desired.find(named->second);
}

void World::commits(const std::string& name, const std::string& checkpoint) {
  const DesiredJob& wanted = job(name);
  ASSERT_TRUE(wanted.placed) << name << " does not run";
  FakeAgent& where = agents_.at(wanted.placed->node);
  Dataset& here = where.datasets.at(wanted.job.dataset);
  const Snapshot* parent = here.newest_checkpoint();
  std::uint64_t seq = parent != nullptr ? *parent->seq() + 1 : 1;
  here.properties[property::checkpoint] = "@" + checkpoint;
  add_snapshot(where, here, checkpoint,
               {{property::seq, std::to_string(seq)},
                {property::job, wanted.job.id.str()},
                {property::timeline, wanted.timeline.str()},
                {property::generation, wanted.placed->generation.str()},
                {property::metrics, R"({"loss":0.5})"}});
  settle();
}

void World::exits(const std::string& name, ExitRecord::Kind kind, const std::string& on) {
  const DesiredJob& wanted = job(name);
  for (auto& entry : agents_) {
    if (!on.empty() && entry.first.str() != on) continue;
    for (Attempt& attempt : entry.second.attempts) {
      if (attempt.job != wanted.job.id || attempt.phase == AttemptPhase::ended) continue;
      ExitRecord exit;
      exit.kind = kind;
      exit.words = std::string(to_string(kind));
      exit.ran = seconds(5);
      end_attempt(entry.second, attempt, exit);
    }
  }
  settle();
}

void World::has_model(const std::string& name, const std::string& model, Bytes size) {
  FakeAgent& where = agent(name);
  Dataset made;
  made.name = testing::dataset("models/" + model);
  made.uuid = DatasetId{ids_.next()};
  made.properties = {{property::type, "model"},
                     {property::uuid, made.uuid.str()},
                     {property::name, model},
                     {property::home, name},
                     {"size_gb", "4"}};
  Dataset& kept = where.datasets.emplace(made.name, made).first->second;
  add_snapshot(where, kept, "v1", {});
  kept.used = kept.snapshots.back().referenced = size;
  changed(where, kept);
  settle();
}

// ---- what there is ------------------------------------------------------------------------------

std::string World::show(const std::string& name) const {
  const DesiredJob& wanted = job(name);
  JobState state = state_->state_of(wanted.job.id);
  std::string text(to_string(state));
  return wanted.placed ? text + " on " + wanted.placed->node.str() : text;
}

std::string World::holds(const std::string& node_name, const std::string& name) const {
  const FakeAgent& where = agents_.at(testing::node(node_name));
  auto found = where.datasets.find(job(name).job.dataset);
  if (found == where.datasets.end()) return "-";
  std::vector<std::string> names;
  for (const Snapshot& snapshot : found->second.snapshots)
    names.push_back(snapshot.name);
  return join(names, " ");
}

std::vector<std::string> World::branches(const std::string& node_name,
                                         const std::string& name) const {
  std::vector<std::string> found;
  for (const auto& [branch, dataset] : agents_.at(testing::node(node_name)).datasets)
    if (dataset.property(property::branch_of) == job(name).dataset_uuid().str()) {
      std::vector<std::string> names;
      for (const Snapshot& snapshot : dataset.snapshots)
        names.push_back(snapshot.name);
      found.push_back(join(names, " "));
    }
  return found;
}

std::size_t World::live_attempts() const {
  std::size_t count = 0;
  for (const auto& entry : agents_)
    for (const Attempt& attempt : entry.second.attempts)
      count += attempt.phase != AttemptPhase::ended;
  return count;
}

bool World::was_told(const std::string& node_name, const std::string& tag) const {
  const auto& orders = agents_.at(testing::node(node_name)).orders;
  return std::any_of(orders.begin(), orders.end(),
                     [&](const PlanStep& step) { return tag_of(step.action) == tag; });
}

}  // namespace zed::controller::testing
