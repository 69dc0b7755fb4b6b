// Copies: of a job's checkpoints on other nodes, and of what somebody needs; and what `keep` ends.

#include <algorithm>

#include <fmt/format.h>

#include "controller/copies.hpp"
#include "controller/timelines.hpp"
#include "repl/chains.hpp"
#include "repl/retention.hpp"
#include "repl/targets.hpp"
#include "repl/transfers.hpp"
#include "sched/match.hpp"

namespace zed::controller {
namespace {

// Of those that wait for a slot, so many are asked at once; whom it is not for waits again.
constexpr std::size_t asked_at_once = 8;

/// The end that has enough to do already, if one has.
std::optional<NodeName> end_without_slot(const Machine& m, const repl::Transfer& transfer) {
  for (const NodeName* end : {&transfer.source, &transfer.target})
    if (m.steps.transfers_on(*end) >= most_transfers) return *end;
  return std::nullopt;
}

/// Whether it can be ordered now; if only a slot is missing, its owner hears when there is one.
bool is_orderable(Machine& m, const repl::Transfer& transfer, const JobId& owner) {
  const std::string need = copy_need(transfer.uuid, transfer.target);
  if (m.steps.is_live(need) || m.steps.pause_of(need, m.now.monotonic)) return false;
  const auto busy = end_without_slot(m, transfer);
  if (busy) m.until_slot[*busy].insert(owner);
  return !busy;
}

}  // namespace

void give_free_slots(Machine& m) {
  for (auto waiters = m.until_slot.begin(); waiters != m.until_slot.end();) {
    std::set<JobId>& jobs = waiters->second;
    if (m.steps.transfers_on(waiters->first) < most_transfers) {
      auto last = jobs.begin();
      for (std::size_t i = 0; i < asked_at_once && last != jobs.end(); ++i, ++last)
        if (last->is_nil())
          m.policies_due = true;
        else
          m.look_at(*last);
      jobs.erase(jobs.begin(), last);
    }
    waiters = jobs.empty() ? m.until_slot.erase(waiters) : std::next(waiters);
  }
}

bool order_transfer(Machine& m, const repl::Transfer& transfer, const JobId& owner,
                    const NodeName& home) {
  if (!is_orderable(m, transfer, owner)) return false;
  const std::string need = copy_need(transfer.uuid, transfer.target);
  if (std::holds_alternative<repl::Conflict>(transfer.step)) {
    const auto& conflict = std::get<repl::Conflict>(transfer.step);
    m.tell_once("conflict " + need, "transfer", transfer.dataset.str(),
                "the copies on " + transfer.source.str() + " and " + transfer.target.str() +
                    " have nothing in common: " + conflict.why);
    return false;
  }
  auto steps = repl::plan_steps(m.fleet.view(), transfer, m.term, m.ids);
  for (PlanStep& step : steps)
    if (auto* receive = std::get_if<ReceiveSnapshot>(&step.action); receive && !home.empty())
      receive->dataset_properties[property::home] = home.str();
  return m.steps.want(need, owner, std::move(steps), m.fleet, m.now.monotonic, m.ids, m.out);
}

namespace {

constexpr Millis broken_for = minutes(10);
constexpr std::size_t most_broken_hops = 1024;

bool is_broken(const Machine& m, const NodeName& from, const NodeName& to) {
  auto broken = m.broken_hops.find({from, to});
  return broken != m.broken_hops.end() && broken->second > m.now.monotonic;
}

/// A node in the middle of a chain takes part twice. One whose link is known to be much slower
/// than that of the node before it would hold that one up.
bool may_pass(const Machine& m, const NodeName& from, const NodeName& to) {
  if (is_broken(m, from, to)) return false;
  const Bytes fast = m.rates.best_to(from);
  const Bytes slow = m.rates.best_to(to);
  if (slow.value > 0 && slow.value < fast.value / 2) return false;
  return m.fleet.is_ready(from) && m.fleet.is_ready(to) &&
         m.steps.transfers_on(from) + 2 <= most_transfers &&
         m.steps.transfers_on(to) + 1 <= most_transfers;
}

using InFlight = std::map<DatasetId, std::set<CheckpointId>>;

/// What chains of that owner still pass on.
InFlight passed_on(const Machine& m, const JobId& owner) {
  InFlight found;
  for (const auto& [id, live] : m.steps.all())
    if (const auto* receive = std::get_if<ReceiveSnapshot>(&live.step.action);
        receive != nullptr && live.passed_on && live.owner == owner)
      found[receive->ticket.uuid].insert(receive->ticket.snapshot);
  return found;
}

/// The first of a chain are ready for the next snapshot a moment before the last: they wait for
/// it, else each would go on by itself and the chain never be one again.
bool waits_for_its_chain(const Machine& m, const repl::Transfer& transfer,
                         const InFlight& in_flight) {
  const auto snapshots = in_flight.find(transfer.uuid);
  const Dataset* copy = m.fleet.copy(transfer.target, transfer.uuid);
  return snapshots != in_flight.end() && copy != nullptr &&
         std::any_of(snapshots->second.begin(), snapshots->second.end(),
                     [copy](const CheckpointId& id) { return copy->find(id) != nullptr; });
}

bool has_failed(const Machine& m, const DatasetId& uuid, const NodeName& target) {
  return m.steps.last_error(copy_need(uuid, target)).has_value();
}

/// Whether the copy on `node` gives the very stream that the source's would.
bool can_stand_in(const Machine& m, const repl::Transfer& transfer, const NodeName& node) {
  const Dataset* source = m.fleet.copy(transfer.source, transfer.uuid);
  const Dataset* copy = m.fleet.copy(node, transfer.uuid);
  const auto id = repl::snapshot_of(transfer.step);
  if (node == transfer.source || node == transfer.target || source == nullptr || !id) return false;
  const Snapshot* original = source->find(*id);
  const Snapshot* snapshot = copy == nullptr ? nullptr : copy->find(*id);
  if (original == nullptr || snapshot == nullptr || copy->timeline() != source->timeline())
    return false;
  if (transfer.kind == StreamKind::zfs && snapshot->guid != original->guid) return false;
  const auto base = repl::base_of(transfer.step);
  if (base && copy->find(*base) == nullptr) return false;
  const Dataset* target = m.fleet.copy(transfer.target, transfer.uuid);
  return repl::stream_kind(m.fleet.node(node)->facts.store,
                           m.fleet.node(transfer.target)->facts.store, *copy, target,
                           base) == transfer.kind;
}

/// What broke off goes on from a copy that is whole by now, so that the source's link is spared;
/// once, for the pair is a broken one if that fails too.
void choose_sender(const Machine& m, repl::Transfer& transfer) {
  if (!has_failed(m, transfer.uuid, transfer.target)) return;
  for (const NodeName& node : m.fleet.ready_holders(transfer.uuid)) {
    if (!m.fleet.node(node)->facts.dialable || m.steps.transfers_on(node) >= most_transfers ||
        is_broken(m, node, transfer.target) || !can_stand_in(m, transfer, node))
      continue;
    transfer.passed_on_by = node;
    return;
  }
}

/// All hops or, if one of them was done this moment, none.
void order_chain(Machine& m, const std::vector<repl::Transfer>& hops, const JobId& owner) {
  auto plan = repl::plan_chain(m.fleet.view(), hops, m.term, m.ids);
  for (std::size_t i = 0; i < hops.size(); ++i)
    if (!m.steps.would_order(copy_need(hops[i].uuid, hops[i].target), plan[i], m.fleet,
                             m.now.monotonic))
      return;
  for (std::size_t i = 0; i < hops.size(); ++i)
    m.steps.want(copy_need(hops[i].uuid, hops[i].target), owner, std::move(plan[i]), m.fleet,
                 m.now.monotonic, m.ids, m.out);
}

}  // namespace

void order_transfers(Machine& m, std::vector<repl::Transfer> due, const JobId& owner) {
  if (due.empty()) return;
  const InFlight in_flight = passed_on(m, owner);
  std::erase_if(due, [&](const repl::Transfer& transfer) {
    return waits_for_its_chain(m, transfer, in_flight) || !is_orderable(m, transfer, owner);
  });
  while (!due.empty()) {
    const DatasetId uuid = due.front().uuid;
    // What failed is tried by itself: nobody waits behind a node that cannot take it.
    const auto pass = [&m, &uuid](const NodeName& from, const NodeName& to) {
      return !has_failed(m, uuid, from) && !has_failed(m, uuid, to) && may_pass(m, from, to);
    };
    auto chain = repl::take_chain(m.fleet.view(), due, pass);
    // Those before it may have taken the slot.
    if (chain.size() > 1) {
      if (is_orderable(m, chain.front(), owner)) order_chain(m, chain, owner);
      continue;
    }
    choose_sender(m, chain.front());
    order_transfer(m, chain.front(), owner);
  }
}

void note_broken_hop(Machine& m, const Ticket& ticket) {
  std::erase_if(m.broken_hops, [&m](const auto& hop) { return hop.second <= m.now.monotonic; });
  if (m.broken_hops.size() < most_broken_hops)
    m.broken_hops[{ticket.source, ticket.target}] = m.now.monotonic + broken_for;
}

namespace {

bool is_up_to_date(const repl::Transfer& transfer) {
  return std::holds_alternative<repl::UpToDate>(transfer.step);
}

/// Nodes that hold a copy of the current timeline beside the home.
std::set<NodeName> current_replicas(const Machine& m, const DesiredJob& job) {
  std::set<NodeName> nodes;
  for (const NodeName& node : m.fleet.holders(job.dataset_uuid()))
    if (node != job.home && !m.fleet.is_lost(node)) nodes.insert(node);
  return nodes;
}

/// Nodes that could run the job, now or later.
std::set<NodeName> able_nodes(const Machine& m, const Job& job) {
  std::set<NodeName> able;
  Preference wishes = job.prefer;
  wishes.insert(wishes.end(), job.fallback.begin(), job.fallback.end());
  for (const sched::NodeReport& report :
       sched::match_fleet(m.fleet.view(), job.requirement, wishes))
    if (report.now || report.ever) able.insert(report.node);
  return able;
}

std::vector<NodeName> targets_of(Machine& m, const DesiredJob& job, const Dataset& home) {
  std::set<NodeName> replicas = current_replicas(m, job);
  if (static_cast<std::int64_t>(replicas.size()) >= job.job.copies)
    return {replicas.begin(), replicas.end()};
  repl::CopyRequest request;
  request.dataset = home.name;
  request.uuid = home.uuid;
  request.home = job.home;
  request.size = home.used;
  request.copies = job.job.copies;
  request.able = able_nodes(m, job.job);
  request.holders = std::move(replicas);
  return repl::choose_copy_targets(m.fleet.view(), request).nodes;
}

/// What a job's `keep` no longer wants goes.
void prune_job(Machine& m, const DesiredJob& job, const NodeName& node, const Dataset& copy) {
  prune(m, node, copy, job.job.retention, "keep of job " + job.job.name.str(), job.job.id,
        [](const Snapshot&) { return true; });
}

}  // namespace

std::set<CheckpointId> pinned_snapshots(const Machine& m, const Dataset& copy) {
  std::set<CheckpointId> kept;
  // A branch has what forks began with, too.
  const auto whole = DatasetId::parse(copy.property(property::branch_of));
  if (const DesiredJob* job = m.desired.find(JobId{whole.value_or(copy.uuid).bytes})) {
    if (job->moved_with) kept.insert(*job->moved_with);
    for (const KnownFork& fork : job->forks)
      if (fork.fork.from) kept.insert(*fork.fork.from);
  }
  // What a new job is to begin with, until it has.
  for (const auto& [id, job] : m.desired.jobs)
    if (job.begins && job.begins->job.bytes == copy.uuid.bytes && !job.had_checkpoint)
      kept.insert(job.begins->checkpoint);
  // Data of jobs that may start again.
  for (const auto& [id, job] : m.desired.jobs)
    if (!job.is_terminal())
      for (const Input& input : job.job.inputs)
        if (copy.find(input.snapshot) != nullptr) kept.insert(input.snapshot);
  // The newest snapshot that a replica shares is the base of its next increment.
  for (const NodeName& holder : m.fleet.holders(copy.uuid)) {
    const Dataset* other = m.fleet.copy(holder, copy.uuid);
    for (auto it = other->snapshots.rbegin(); it != other->snapshots.rend(); ++it)
      if (copy.find(it->id) != nullptr) {
        kept.insert(it->id);
        break;
      }
  }
  return kept;
}

void prune(Machine& m, const NodeName& node, const Dataset& copy, const Retention& retention,
           const std::string& why, const JobId& owner,
           const std::function<bool(const Snapshot&)>& may_go) {
  // Once no transfer needs what is there as its base.
  if (retention.keeps_all() || m.steps.transfers_on(node) > 0) return;
  if (repl::to_destroy(copy, retention, {}).empty()) return;  // mostly; what is pinned costs more
  Destroy destroy{copy.name, copy.uuid, {}};
  for (const repl::Doomed& doomed : repl::to_destroy(copy, retention, pinned_snapshots(m, copy)))
    if (may_go(*copy.find(doomed.id))) destroy.snapshots.push_back(doomed.id);
  if (destroy.snapshots.empty()) return;
  PlanStep step;
  step.node = node;
  step.action = destroy;
  step.expect = m.expect(copy.uuid, copy.timeline());
  // A person may have rolled back meanwhile: then what is to go may be all that is left.
  step.expect.newest = copy.newest()->id;
  step.why = why;
  m.steps.want("prune:" + copy.uuid.str() + ":" + node.str(), owner, {step}, m.fleet,
               m.now.monotonic, m.ids, m.out);
}

std::string copy_need(const DatasetId& uuid, const NodeName& target) {
  return "copy:" + uuid.str() + ":" + target.str();
}

bool bring(Machine& m, const DatasetId& uuid, const NodeName& source, const NodeName& target,
           const JobId& owner, const std::string& why) {
  if (!m.fleet.is_ready(source) || !m.fleet.is_ready(target)) return false;
  auto transfer = repl::due_transfer(m.fleet.view(), uuid, source, target, why);
  if (transfer && !is_up_to_date(*transfer)) {
    order_transfer(m, *transfer, owner);
    return false;
  }
  const Dataset* from = m.fleet.copy(source, uuid);
  const Dataset* to = m.fleet.copy(target, uuid);
  return from != nullptr && to != nullptr && from->newest() != nullptr &&
         to->find(from->newest()->id) != nullptr;
}

void bring_home(Machine& m, const DesiredJob& job, const NodeName& source) {
  const Dataset& from = *m.fleet.copy(source, job.dataset_uuid());
  const Dataset* to = m.fleet.copy(job.home, job.dataset_uuid());
  repl::Transfer transfer;
  transfer.dataset = from.name;
  transfer.uuid = from.uuid;
  transfer.source = source;
  transfer.target = job.home;
  transfer.step = repl::replication_step(from, to);
  if (is_up_to_date(transfer) || std::holds_alternative<repl::FollowHome>(transfer.step)) return;
  std::optional<CheckpointId> base;
  if (auto* incremental = std::get_if<repl::Incremental>(&transfer.step)) base = incremental->base;
  if (auto* resume = std::get_if<repl::Resume>(&transfer.step)) base = resume->base;
  transfer.kind = repl::stream_kind(m.fleet.node(source)->facts.store,
                                    m.fleet.node(job.home)->facts.store, from, to, base);
  transfer.why = "job " + job.job.name.str() + " goes on there";
  // No node receives what it is the home of: it becomes the home when it has everything.
  order_transfer(m, transfer, job.job.id, source);
}

bool is_arriving(const DesiredJob& job, const Dataset& home) {
  if (job.forks.empty() || !job.forks.back().fork.from) return false;
  if (home.find(*job.forks.back().fork.from) != nullptr) return false;
  return std::none_of(home.snapshots.begin(), home.snapshots.end(), [&](const Snapshot& snapshot) {
    return snapshot.timeline() == job.timeline;
  });
}

void keep_copies(Machine& m, DesiredJob& job) {
  if (job.home.empty() || !m.fleet.is_ready(job.home)) return;
  const Dataset* home = m.fleet.copy(job.home, job.dataset_uuid());
  if (home == nullptr || home->timeline() != job.timeline || is_arriving(job, *home)) return;
  if (job.job.copies > 0 && !home->snapshots.empty()) {
    const auto order =
        repl::chain_order(m.fleet.view(), targets_of(m, job, *home), m.rates.rates_from(job.home));
    std::vector<repl::Transfer> due;
    for (const NodeName& target : order) {
      const Dataset* copy = m.fleet.copy(target, job.dataset_uuid());
      if (copy != nullptr && copy->timeline() != job.timeline) continue;  // follows its fork first
      if (!m.fleet.is_ready(target)) continue;
      auto transfer = repl::due_transfer(
          m.fleet.view(), job.dataset_uuid(), job.home, target,
          fmt::format("copies {} of job {}", job.job.copies, job.job.name.str()));
      if (transfer) due.push_back(std::move(*transfer));
    }
    order_transfers(m, std::move(due), job.job.id);
  }
  for (const NodeName& node : m.fleet.ready_holders(job.dataset_uuid())) {
    const Dataset& copy = *m.fleet.copy(node, job.dataset_uuid());
    if (copy.timeline() == job.timeline) prune_job(m, job, node, copy);
  }
}

}  // namespace zed::controller
