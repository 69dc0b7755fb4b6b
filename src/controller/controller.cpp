#include "controller/controller.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "controller/imports.hpp"
#include "controller/machine.hpp"

namespace zed::controller {
namespace {

// One event settles in a few rounds; a cycle of decisions would be a bug, and must not hang.
constexpr int most_rounds = 64;

Status read_journal(Machine& m, const Started& event) {
  std::uint64_t seq =
      event.last_seq - std::min<std::uint64_t>(event.last_seq, event.records.size());
  std::uint64_t compacted = 0;
  std::vector<Record> records;
  records.reserve(event.records.size());
  std::size_t last_applied = 0;  // one more than its position
  for (const std::string& text : event.records) {
    auto record = decode_record(text);
    if (!record)
      return fail(std::move(record).error().with("journal record " +
                                                 std::to_string(seq + records.size() + 1)));
    records.push_back(std::move(*record));
    if (std::holds_alternative<Applied>(records.back())) last_applied = records.size();
  }
  for (std::size_t i = 0; i < records.size(); ++i) {
    ++seq;
    if (std::holds_alternative<Compacted>(records[i])) compacted = seq;
    fold(m.desired, records[i], seq, i + 1 < last_applied ? Reading::later : Reading::now);
  }
  m.journal.start(event.records, event.last_seq, compacted);
  return {};
}

void begin_term(Machine& m, const Started& event) {
  if (!event.take_over && m.desired.term.controller == event.id && m.desired.term.number > 0) {
    m.term = m.desired.term;
    return;
  }
  std::uint64_t highest = std::max(m.desired.term.number, event.highest_term.number);
  m.term = {highest + 1, event.id};
  m.record(TermBegan{m.term, event.machine, m.now.wall});
}

void on_started(Machine& m, const Started& event) {
  if (m.started) return;
  m.started = true;
  m.started_at = m.now.monotonic;
  m.home_machine = event.machine;
  if (event.lost_after) m.lost_after = *event.lost_after;
  if (event.lease) m.lease = *event.lease;
  if (auto read = read_journal(m, event); !read) {
    m.step_down(m.desired.term, std::move(read).error());
    return;
  }
  begin_term(m, event);
  for (const auto& [name, id] : m.desired.members)
    m.fleet.expect(name, id, m.now.monotonic);
  m.fleet.declare(m.desired.applied);
  m.fleet.stamp(m.desired.revision, m.now.wall);
  for (const auto& [id, job] : m.desired.jobs) {
    m.shown[id] = state_of(m, job);
    if (job.is_terminal()) continue;  // looked at when a copy of it shows
    reindex_job(m, id);
  }
  m.tell("notice", "controller",
         fmt::format("term {} began: {} jobs, {} nodes known", m.term.number, m.desired.jobs.size(),
                     m.desired.members.size()));
}

void look_at_node(Machine& m, const NodeName& node) {
  for (const JobId& id : m.placed_on[node])
    m.look_at(id);
  // A copy there counts no more, or again.
  auto held = m.fleet.view().datasets.find(node);
  if (held != m.fleet.view().datasets.end())
    for (const auto& entry : held->second)
      m.look_at(JobId{entry.second.uuid.bytes});
  m.place_due = true;
  m.policies_due = true;
}

}  // namespace

void note_status(Machine& m, const NodeName& name) {
  m.tell("node", "node " + name.str(), "is " + std::string(to_string(m.fleet.node(name)->status)));
  std::vector<JobId> ids(m.placed_on[name].begin(), m.placed_on[name].end());
  for (const JobId& id : ids)
    reindex_job(m, id);
  look_at_node(m, name);
  for (const JobId& id : m.until_safe)
    m.look_at(id);
}

void refresh_nodes(Machine& m) {
  for (const NodeName& name : m.fleet.refresh(m.now.monotonic, m.lost_after, m.desired.duties))
    note_status(m, name);
}

namespace {

void compact_if_large(Machine& m) {
  std::size_t live = m.desired.jobs.size() + m.desired.members.size() + 8;
  if (!m.journal.wants_compaction(live)) return;
  std::vector<std::string> texts;
  for (const Record& record : compaction_of(m.desired))
    texts.push_back(encode_record(record));
  m.journal.compact(std::move(texts), m.out);
}

/// A model that was imported, or whose copying failed for another job, is an input of any number of
/// jobs on any nodes. Once a tick, because a fleet of models changes more often than jobs wait.
void look_at_waiting(Machine& m) {
  m.inputs_due = false;
  for (const auto& entry : m.placed_jobs)
    if (m.waits_for.contains(entry.first)) m.look_at(entry.first);
}

void on_tick(Machine& m) {
  Instant now = m.now.monotonic;
  refresh_nodes(m);
  for (const JobId& id : m.steps.woken(now)) {
    m.look_at(id);
    m.policies_due = m.inputs_due = true;
  }
  persist_requests(m);
  if (m.inputs_due) look_at_waiting(m);
  give_free_slots(m);
  while (!m.timers.empty() && m.timers.begin()->first <= now) {
    m.look_at(m.timers.begin()->second);
    m.place_due = true;
    m.timers.erase(m.timers.begin());
  }
  m.steps.sweep(now);
  m.journal.retry(now, m.out);
  m.journal.repeat(now);
  expire_requests(m);
  grant_leases(m);
  if (m.is_copy_awaited()) return;
  tend_second(m);
  tend_models(m);
  import_declared(m);
  collect_code(m);
  if (!m.desired.expiries.empty()) expire_branches(m);
  if (m.policies_due || is_round_due(m)) run_policies(m);
  compact_if_large(m);
}

/// The declared fleet is durable: everyone learns of it.
void on_applied(Machine& m) {
  m.applied_is_known = true;
  m.rounds.clear();
  m.fleet.declare(m.desired.applied);
  for (const NodeName& node : m.fleet.connected_nodes())
    welcome(m, node);
  m.policies_due = m.place_due = true;
}

void on_journal_written(Machine& m, const JournalWritten& event) {
  if (!event.result) {
    if (!m.journal.broken())
      m.tell("notice", "journal", "cannot be written: " + event.result.error().describe());
    m.journal.failed(event.result.error(), m.now.monotonic);
    return;
  }
  m.journal.written(event.seq);
  while (!m.until_durable.empty() && m.journal.is_durable(m.until_durable.begin()->first)) {
    m.look_at(m.until_durable.begin()->second);
    m.place_due = true;
    m.until_durable.erase(m.until_durable.begin());
  }
  if (!m.applied_is_known && m.journal.is_durable(m.applied_seq)) on_applied(m);
}

struct Handler {
  Machine& m;
  void operator()(const Started& e) const { on_started(m, e); }
  void operator()(const Tick&) const { on_tick(m); }
  void operator()(const AgentConnected& e) const { m.fleet.connected(e.link); }
  void operator()(const AgentSaid& e) const { on_agent_said(m, e.link, e.message); }
  void operator()(const AgentGone& e) const { on_agent_gone(m, e.link); }
  void operator()(const Requested& e) const { on_requested(m, e.request, e.operation, e.caller); }
  void operator()(const RequestGone& e) const { m.waiting.erase(e.request); }
  void operator()(const JournalWritten& e) const { on_journal_written(m, e); }
};

/// Decides until nothing more follows.
void settle(Machine& m) {
  const bool decides = !m.is_copy_awaited();
  for (int round = 0; decides && round < most_rounds && !m.over; ++round) {
    std::set<JobId> jobs = std::move(m.dirty);
    m.dirty.clear();
    for (const JobId& id : jobs)
      reconcile_job(m, id);
    if (m.place_due) place_pending(m);
    if (m.dirty.empty()) break;
  }
  if (m.over) return;
  m.journal.send(m.term, m.out);
  answer_durable(m);
}

}  // namespace

State::State(IdSource& ids) : machine_(std::make_unique<Machine>(ids)) {}
State::State(State&&) noexcept = default;
State& State::operator=(State&&) noexcept = default;
State::~State() = default;

const DesiredState& State::desired() const {
  return machine_->desired;
}
const FleetView& State::view() const {
  return machine_->fleet.view();
}
ControllerTerm State::term() const {
  return machine_->term;
}
JobState State::state_of(const JobId& job) const {
  const DesiredJob* known = machine_->desired.find(job);
  return known == nullptr ? JobState::pending : controller::state_of(*machine_, *known);
}
std::uint64_t State::durable_seq() const {
  return machine_->journal.durable_seq();
}
std::uint64_t State::safe_seq() const {
  return machine_->journal.stored_seq();
}
std::vector<PlanStep> State::live_steps() const {
  std::vector<PlanStep> steps;
  for (const auto& entry : machine_->steps.all())
    steps.push_back(entry.second.step);
  return steps;
}
bool State::has_stepped_down() const {
  return machine_->over;
}

std::vector<Effect> on(State& state, const Event& event, Now now) {
  Machine& m = state.machine();
  m.now = now;
  m.out.clear();
  if (m.over || (!m.started && !std::holds_alternative<Started>(event))) return {};
  std::visit(Handler{m}, event);
  settle(m);
  return std::move(m.out);
}

}  // namespace zed::controller
