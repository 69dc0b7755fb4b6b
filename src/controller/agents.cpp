// What agents say, and what is told to them about the fleet itself.

#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "controller/copies.hpp"
#include "controller/imports.hpp"
#include "controller/machine.hpp"
#include "controller/queueing.hpp"
#include "controller/timelines.hpp"
#include "core/roots.hpp"

namespace zed::controller {
namespace {

void refuse(Machine& m, LinkId link, ErrorCode code, std::string why, std::string hint) {
  m.out.push_back(
      SayToAgent{link, Refused{Error{code, std::move(why), {"hello"}, std::move(hint)}, m.term}});
  m.out.push_back(CloseLink{link});
}

/// Whether a hello is refused; it was answered then.
bool is_refused(Machine& m, LinkId link, const Hello& hello) {
  if (hello.protocol != protocol_version) {
    refuse(m, link, ErrorCode::unsupported,
           fmt::format("this controller speaks protocol {}, the agent {}", protocol_version,
                       hello.protocol),
           "install the same version of zed on both machines");
    return true;
  }
  if (hello.name.empty() || hello.node.is_nil()) {
    refuse(m, link, ErrorCode::invalid, "a hello without a name or an identity", "");
    return true;
  }
  auto member = m.desired.members.find(hello.name);
  if (member != m.desired.members.end() && member->second != hello.node) {
    m.tell_once("stranger " + hello.node.str(), "notice", "node " + hello.name.str(),
                "another machine, or this one with another identity, asks to join by this name: "
                "refused; zedctl node forget " +
                    hello.name.str() + " frees it");
    refuse(m, link, ErrorCode::exists,
           "the name " + hello.name.str() + " belongs to another machine of this fleet",
           "give the agent another name; if the machine was made anew, zedctl node forget " +
               hello.name.str() + " frees this one");
    return true;
  }
  return false;
}

/// Whether the node's copy of the journal has records that were durable here once: then what this
/// disk has is not the truth, and to go on from it would overwrite what is.
bool is_wiser(Machine& m, const Hello& hello) {
  if (hello.name == m.desired.second) m.copy_is_seen = true;
  if (!m.journal.has_lost(m.term, hello.journal_copy_term, hello.journal_copy_seq)) return false;
  m.step_down(m.term,
              Error{ErrorCode::corrupt,
                    fmt::format("this machine's journal has lost its end: node {} has record {} of "
                                "this controller, the journal here had only {}",
                                hello.name.str(), hello.journal_copy_seq, m.journal.read_seq()),
                    {},
                    "on " + hello.name.str() + ", zed-controller takeover goes on from its copy"},
              true);
  return true;
}

void look_at_seen(Machine& m, const Observed& seen) {
  for (const JobId& id : seen.jobs)
    m.look_at(id);
  for (const DatasetId& uuid : seen.datasets) {
    JobId id{uuid.bytes};
    if (m.desired.find(id) != nullptr)
      m.look_at(id);
    else
      m.inputs_due = m.models_due = true;
  }
  if (!seen.datasets.empty()) m.policies_due = true;
  if (seen.capacity) m.place_due = true;
}

void on_hello(Machine& m, LinkId link, const Hello& hello) {
  if (hello.highest_term > m.term) {
    hand_over(m, link);  // the agent closes the link when it hears the refusal
    m.out.push_back(SayToAgent{
        link, Refused{Error{ErrorCode::stale, "this controller's term is over", {}, {}}, m.term}});
    m.step_down(hello.highest_term,
                Error{ErrorCode::stale,
                      "another controller has taken over: node " + hello.name.str() +
                          " obeys controller term " + hello.highest_term.str(),
                      {},
                      "remove this one's --state folder before starting it here again"});
    return;
  }
  if (is_refused(m, link, hello) || is_wiser(m, hello)) return;
  if (!m.desired.members.contains(hello.name)) {
    m.record(Joined{hello.name, hello.node});
    m.tell("node", "node " + hello.name.str(), "joined");
  }
  Observed seen;
  if (auto old = m.fleet.link_of(hello.name)) {
    for (const JobId& id : m.steps.link_gone(*old, m.out))
      m.look_at(id);
    fail_requests_on(m, *old);
  }
  if (auto old = m.fleet.hello(link, hello, m.now.monotonic, seen))
    m.out.push_back(CloseLink{*old});
  if (m.applied_is_known) m.fleet.declare(m.desired.applied, hello.name);
  if (m.fleet.refresh(hello.name, m.now.monotonic, m.lost_after, m.desired.duties))
    note_status(m, hello.name);
  welcome(m, hello.name);
  if (hello.name == m.desired.second)
    m.journal.second_connected(link, m.term, hello.journal_copy_term, hello.journal_copy_seq);
  for (const Attempt& attempt : hello.attempts)
    on_attempt_report(m, hello.name, attempt);
  look_at_seen(m, seen);
  for (const JobId& id : m.placed_on[hello.name])
    m.look_at(id);
}

/// A checkpoint was committed: the first one of a job is remembered for good.
void notice_checkpoints(Machine& m, const NodeName& node, const Dataset& dataset) {
  DesiredJob* job = m.desired.find(JobId{dataset.uuid.bytes});
  if (job == nullptr || job->had_checkpoint || job->is_terminal()) return;
  const Dataset* copy = m.fleet.copy(node, dataset.uuid);
  if (copy != nullptr && newest_current_checkpoint(*job, *copy) != nullptr)
    m.record(FirstCheckpoint{job->job.id});
}

void tell_new_checkpoint(Machine& m, const NodeName& node, const DatasetChanged& change) {
  const DesiredJob* job = m.desired.find(JobId{change.dataset.uuid.bytes});
  if (job == nullptr || !change.delta || job->home != node) return;
  if (newest_current_checkpoint(*job, change.dataset) != nullptr) m.troubles.erase(node);
  for (const Snapshot& snapshot : change.dataset.snapshots)
    if (snapshot.seq() && snapshot.timeline() == job->timeline)
      m.tell_once("checkpoint " + snapshot.id.str(), "checkpoint", "job " + job->job.name.str(),
                  "committed @" + snapshot.name + " on " + node.str());
}

bool is_much_more(Bytes now, Bytes before) {
  return now.value > before.value + before.value / 8;
}

/// A GPU that broke, or works again, is news; with its reason, so that the events are its history.
void tell_health(Machine& m, const NodeName& node, const std::vector<Gpu>& before,
                 const std::vector<Gpu>& after) {
  for (const Gpu& gpu : after) {
    const auto known = std::find_if(before.begin(), before.end(),
                                    [&gpu](const Gpu& other) { return other.uuid == gpu.uuid; });
    if (known == before.end() || (known->health == gpu.health && known->why == gpu.why)) continue;
    std::string text =
        std::string(to_string(known->health)) + " -> " + std::string(to_string(gpu.health));
    if (!gpu.why.empty()) text += ": " + gpu.why;
    m.tell("gpu", "node " + node.str() + ", " + gpu.model + " " + gpu.uuid, std::move(text));
  }
}

struct MessageHandler {
  Machine& m;
  LinkId link;
  const NodeName& node;

  void operator()(const Hello&) const {}  // handled before
  void operator()(const InventoryPage& page) const {
    Observed seen;
    if (!check(m.fleet.page(node, page, seen))) return;
    if (!page.last) return;
    for (const auto& entry : m.fleet.view().datasets.at(node))
      notice_checkpoints(m, node, entry.second);
    look_at_seen(m, seen);
    // It may be what a placed job waits for: its home, or room for a copy.
    for (const auto& entry : m.placed_jobs)
      m.look_at(entry.first);
    for (const auto& entry : m.moves)
      m.look_at(entry.first);
  }
  void operator()(const DatasetChanged& change) const {
    Observed seen;
    if (!check(m.fleet.changed(node, change, seen))) return;
    notice_checkpoints(m, node, change.dataset);
    tell_new_checkpoint(m, node, change);
    look_at_seen(m, seen);
    for (const JobId& id : m.placed_on[node])
      if (visible_attempt(m, *m.desired.find(id)) == nullptr) m.look_at(id);
  }
  void operator()(const DatasetRemoved& gone) const {
    Observed seen;
    m.fleet.removed(node, gone.dataset, seen);
    look_at_seen(m, seen);
  }
  void operator()(const Heartbeat& beat) const {
    // After its hello a node's free room is unknown until its first heartbeat; later, only much
    // more of it is worth asking again for every job that waits.
    const Node& known = *m.fleet.node(node);
    m.place_due |= is_much_more(beat.pool_free, known.pool_free) ||
                   is_much_more(beat.memory_free, known.memory_free);
    m.fleet.heartbeat(node, beat);
  }
  void operator()(const GpusChanged& change) const {
    Observed seen;
    tell_health(m, node, m.fleet.node(node)->gpus, change.gpus);
    m.fleet.gpus(node, change.gpus, seen);
    look_at_seen(m, seen);
  }
  void operator()(const AttemptReport& report) const {
    Observed seen;
    m.fleet.attempt(node, report.attempt, seen);
    on_attempt_report(m, node, report.attempt);
    look_at_seen(m, seen);
  }
  void operator()(const StepResult& result) const;
  void operator()(const TransferProgress& progress) const {
    m.steps.progress(progress);
    auto live = m.steps.all().find(progress.step);
    if (live == m.steps.all().end()) return;
    // The first bytes show how long it takes to begin, and what is passed on comes at the pace of
    // the slowest hop before it.
    auto* receive = std::get_if<ReceiveSnapshot>(&live->second.step.action);
    const bool shows_link = progress.done >= LinkRates::least_moved && !live->second.passed_on;
    if (receive != nullptr && shows_link)
      m.rates.note(receive->ticket.source, receive->ticket.target, progress.rate);
  }
  void operator()(const JournalStored& stored) const {
    if (stored.term != m.term || node != m.desired.second) return;
    m.journal.stored(stored.seq);
    for (const JobId& id : m.until_safe)
      m.look_at(id);
    m.place_due = true;
  }
  void operator()(const Notice& notice) const {
    m.tell("notice", "node " + node.str() + ", " + notice.subject, notice.text);
  }
  void operator()(const LogPage& page) const { answer_log(m, page); }
  void operator()(const NodeAnswer& answer) const { answer_node(m, answer); }
  void operator()(const HandedOver& message) const { take_in(m, message); }

  /// A node that sends what cannot be is cut off; it begins again with a hello.
  bool check(const Status& status) const {
    if (status) return true;
    m.tell("notice", "node " + node.str(), "was cut off: " + status.error().describe());
    m.out.push_back(CloseLink{link});
    on_agent_gone(m, link);
    return false;
  }
};

/// What arrived where, and how many bytes it took.
void on_transfer_done(Machine& m, const NeedOutcome& outcome) {
  auto* receive = std::get_if<ReceiveSnapshot>(&outcome.step.action);
  auto* send = std::get_if<SendSnapshot>(&outcome.step.action);
  if (auto* host = std::get_if<SendToHost>(&outcome.step.action))
    m.tell("transfer", host->dataset.str() + "@" + host->snapshot_name,
           outcome.step.node.str() + " -> " + host->destination + ":" + host->target + ", " +
               show(outcome.moved));
  if (receive == nullptr && send == nullptr) return;
  const Ticket& ticket = receive != nullptr ? receive->ticket : send->ticket;
  m.tell("transfer", ticket.dataset.str() + "@" + ticket.snapshot_name,
         ticket.source.str() + " -> " + ticket.target.str() + ", " + show(outcome.moved) +
             (outcome.passed_on ? ", passed on while it arrived there" : ""));
  if (!outcome.passed_on)
    m.rates.finished(ticket.source, ticket.target, outcome.moved, outcome.took, m.now.wall);
}

/// What failed because the hop before it did says nothing of its own link.
void on_transfer_failed(Machine& m, const NeedOutcome& outcome) {
  const auto* receive = std::get_if<ReceiveSnapshot>(&outcome.step.action);
  const auto* send = std::get_if<SendSnapshot>(&outcome.step.action);
  if (receive == nullptr && send == nullptr) return;
  const Ticket& ticket = receive != nullptr ? receive->ticket : send->ticket;
  const bool follows =
      outcome.passed_on && m.steps.last_error(copy_need(ticket.uuid, ticket.source));
  if (!follows) note_broken_hop(m, ticket);
}

/// An attempt that an agent would not start: given up if trying again cannot help.
void on_start_refused(Machine& m, const NeedOutcome& outcome) {
  constexpr std::int64_t most_tries = 5;
  const auto& start = std::get<StartAttempt>(outcome.step.action);
  DesiredJob* job = m.desired.find(outcome.owner);
  if (job == nullptr || !job->placed || job->placed->generation != start.generation) return;
  if (visible_attempt(m, *job) != nullptr) return;
  if (is_retryable(outcome.error->code) && outcome.failures < most_tries) return;
  ExitRecord exit;
  bool stale = outcome.error->code == ErrorCode::stale;
  exit.kind = stale ? ExitRecord::Kind::supervisor_lost : ExitRecord::Kind::start_failed;
  exit.words = "did not start on " + outcome.step.node.str() + ": " + outcome.error->describe();
  exit.ended = m.now.wall;
  if (!stale) {
    m.avoid(job->job.id, outcome.step.node, exit.words);
    note_trouble(m, outcome.step.node, job->job.id, exit.words);
  }
  end_placed(m, *job, exit);
}

/// A node that cannot even make the job's dataset is left: nothing of the job is there.
void on_create_failed(Machine& m, const NeedOutcome& outcome) {
  constexpr std::int64_t most_tries = 4;
  DesiredJob* job = m.desired.find(outcome.owner);
  if (job == nullptr || outcome.failures < most_tries || !job->placed ||
      job->placed->node != outcome.step.node)
    return;
  ExitRecord exit;
  exit.kind = ExitRecord::Kind::start_failed;
  exit.words =
      "cannot be prepared on " + outcome.step.node.str() + ": " + outcome.error->describe();
  exit.ended = m.now.wall;
  m.avoid(job->job.id, outcome.step.node, exit.words);
  note_trouble(m, outcome.step.node, job->job.id, exit.words);
  end_placed(m, *job, exit);
}

/// A stop of an attempt that the agent never had: there will be no report of its end.
void on_stop_done(Machine& m, const NeedOutcome& outcome) {
  const auto& stop = std::get<StopAttempt>(outcome.step.action);
  DesiredJob* job = m.desired.find(outcome.owner);
  if (job == nullptr || !job->placed || job->placed->generation != stop.generation) return;
  const Attempt* attempt = m.fleet.attempt(outcome.step.node, job->job.id);
  if (attempt != nullptr && attempt->generation == stop.generation) return;
  ExitRecord exit;
  exit.kind =
      stop.mode == StopMode::cancel ? ExitRecord::Kind::cancelled : ExitRecord::Kind::stopped;
  exit.words = "stopped before it started";
  exit.ended = m.now.wall;
  end_placed(m, *job, exit);
}

void MessageHandler::operator()(const StepResult& result) const {
  auto outcome = m.steps.result(result, m.now.monotonic, m.out);
  if (!outcome) return;
  if (!outcome->error) on_transfer_done(m, *outcome);
  if (outcome->error) on_transfer_failed(m, *outcome);
  if (outcome->error)
    m.tell_once("failed " + outcome->need + outcome->error->message, "transfer",
                "node " + outcome->step.node.str(),
                describe(outcome->step.action) + " failed: " + outcome->error->describe());
  bool is_start = std::holds_alternative<StartAttempt>(outcome->step.action);
  bool is_stop = std::holds_alternative<StopAttempt>(outcome->step.action);
  bool is_create = std::holds_alternative<CreateDataset>(outcome->step.action);
  if (is_start && outcome->error) on_start_refused(m, *outcome);
  if (is_create && outcome->error) on_create_failed(m, *outcome);
  if (is_stop && !outcome->error) on_stop_done(m, *outcome);
  note_packed(m, *outcome);
  answer_need(m, *outcome);
  m.look_at(outcome->owner);
  m.policies_due = true;
  for (const JobId& id : m.placed_on[outcome->step.node])
    if (visible_attempt(m, *m.desired.find(id)) == nullptr) m.look_at(id);
}

}  // namespace

void on_agent_said(Machine& m, LinkId link, const AgentMessage& message) {
  if (auto* hello = std::get_if<Hello>(&message)) return on_hello(m, link, *hello);
  const NodeName* known = m.fleet.node_of(link);
  if (known == nullptr) return;  // before its hello, or a link that was replaced
  NodeName node = *known;
  m.fleet.heard(node, m.now.monotonic);
  std::visit(MessageHandler{m, link, node}, message);
}

void on_agent_gone(Machine& m, LinkId link) {
  for (const JobId& id : m.steps.link_gone(link, m.out))
    m.look_at(id);
  m.policies_due = true;  // what waited for a chain that is over now
  fail_requests_on(m, link);
  if (m.journal.second_link() == link) m.journal.second_gone();
  m.fleet.gone(link);
}

void welcome(Machine& m, const NodeName& node) {
  Welcome welcome{m.term, m.desired.second, std::nullopt, {}};
  if (m.desired.applied) {
    const Cluster& cluster = m.desired.applied->cluster;
    if (const DeclaredNode* declared = cluster.find_node(node)) welcome.declared = *declared;
    welcome.roots = declared_roots(cluster);
  }
  m.say(node, std::move(welcome));
}

namespace {

/// A node of full standing beside the controller's own machine; dialable ones first.
std::optional<NodeName> choose_second(const Machine& m) {
  std::optional<NodeName> chosen;
  bool chosen_dialable = false;
  for (const auto& [name, node] : m.fleet.view().nodes) {
    if (name == m.home_machine || !m.fleet.is_ready(name) || node.status == NodeStatus::suspect)
      continue;
    auto bad = m.no_second.find(name);
    if (bad != m.no_second.end() && m.now.monotonic < bad->second) continue;
    if (!chosen || (node.facts.dialable && !chosen_dialable)) {
      chosen = name;
      chosen_dialable = node.facts.dialable;
    }
  }
  return chosen;
}

}  // namespace

void tend_second(Machine& m) {
  const NodeName& second = m.desired.second;
  bool is_own_machine = second == m.home_machine;
  const bool stuck = m.journal.is_stuck(m.now.monotonic);
  if (!second.empty() && !m.fleet.is_lost(second) && !is_own_machine && !stuck) return;
  if (stuck) m.no_second[second] = m.now.monotonic + minutes(10);
  auto chosen = choose_second(m);
  if (!chosen || *chosen == second) return;
  if (stuck)
    m.tell("notice", "journal",
           "node " + second.str() + " has stored no record for a minute: is its disk full?");
  m.journal.second_gone();
  m.record(SecondChosen{*chosen});
  m.copy_is_seen = true;
  m.tell("notice", "journal", "node " + chosen->str() + " holds the second copy from now on");
  // Its copy is begun anew: what it may have kept from another time is not known here.
  m.journal.second_connected(*m.fleet.link_of(*chosen), m.term, ControllerTerm{}, 0);
  for (const NodeName& node : m.fleet.connected_nodes())
    welcome(m, node);
}

}  // namespace zed::controller
