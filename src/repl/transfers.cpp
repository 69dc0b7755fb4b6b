#include "repl/transfers.hpp"

#include <algorithm>

#include "core/travelling.hpp"
#include "repl/retention.hpp"

namespace zed::repl {
namespace {

bool is_reachable(const Node& node) {
  return node.status != NodeStatus::suspect && node.status != NodeStatus::lost;
}

const Dataset* find_by_name(const FleetView& view, const NodeName& node, const DatasetName& name) {
  auto held = view.datasets.find(node);
  if (held == view.datasets.end()) return nullptr;
  auto found = held->second.find(name);
  return found == held->second.end() ? nullptr : &found->second;
}

bool is_home(const Dataset* dataset, const NodeName& node) {
  return dataset != nullptr && dataset->property(property::home) == node.str();
}

/// Only the home's history is the truth that others follow; a dataset without a home (a model) has
/// that of its source.
bool is_authority(const Dataset& source, const NodeName& node) {
  return source.property(property::home).empty() || is_home(&source, node);
}

struct Travels {
  std::optional<CheckpointId> base;
  std::optional<CheckpointId> snapshot;
};
struct TravelsOf {
  Travels operator()(const UpToDate&) const { return {}; }
  Travels operator()(const Incremental& step) const { return {step.base, step.snapshot}; }
  Travels operator()(const Full& step) const { return {std::nullopt, step.snapshot}; }
  Travels operator()(const Resume& step) const { return {step.base, step.snapshot}; }
  Travels operator()(const Conflict&) const { return {}; }
  Travels operator()(const FollowHome&) const { return {}; }
};

std::string words_of(const Transfer& transfer, const Dataset& source) {
  Travels travels = std::visit(TravelsOf{}, transfer.step);
  std::string leaf = transfer.dataset.leaf();
  if (travels.snapshot)
    return transfer.target.str() + " lacks " + leaf + "@" + source.find(*travels.snapshot)->name;
  if (std::holds_alternative<Conflict>(transfer.step))
    return leaf + " on " + transfer.target.str() + " has another history";
  return leaf + " on " + transfer.target.str() + " has more than its home";
}

bool is_branch(const Dataset& dataset) {
  return !dataset.property(property::branch_of).empty() ||
         dataset.property(property::type) == "branch";
}

/// The node at which a transfer begins.
const NodeName& sender_of(const Transfer& transfer) {
  return transfer.passed_on_by.empty() ? transfer.source : transfer.passed_on_by;
}

Ticket ticket_of(const FleetView& view, const Transfer& transfer, const ControllerTerm& term,
                 IdSource& ids) {
  const Dataset& source = *view.find_copy(transfer.source, transfer.uuid);
  const Dataset* target = view.find_copy(transfer.target, transfer.uuid);
  // Who passes it on may have none yet: it gets the source's name then.
  const Dataset* sent = view.find_copy(sender_of(transfer), transfer.uuid);
  const Node& from = *view.find_node(sender_of(transfer));
  const Node& to = *view.find_node(transfer.target);
  Travels travels = std::visit(TravelsOf{}, transfer.step);
  Ticket ticket;
  ticket.id = TransferId{ids.next()};
  ticket.dataset = sent != nullptr ? sent->name : source.name;
  ticket.target_dataset = target != nullptr ? target->name : source.name;
  ticket.uuid = transfer.uuid;
  ticket.source = sender_of(transfer);
  ticket.target = transfer.target;
  ticket.source_address = from.facts.data_address;
  ticket.target_address = to.facts.data_address;
  ticket.source_dials = to.facts.dialable || !from.facts.dialable;
  ticket.base = travels.base;
  ticket.snapshot = *travels.snapshot;
  ticket.snapshot_name = source.find(*travels.snapshot)->name;
  ticket.generation = source.generation().value_or(Generation{term, 0});
  ticket.timeline = source.timeline().value_or(Timeline{});
  ticket.kind = transfer.kind;
  ticket.max_rate = transfer.max_rate;
  return ticket;
}

/// A fork that was begun at the source is the source's own.
Properties replica_properties(const Dataset& source) {
  Properties properties = source.properties;
  properties.erase(property::intent);
  properties[property::uuid] = source.uuid.str();
  return properties;
}

Expect expect_of(const Dataset* dataset, const ControllerTerm& term) {
  Expect expect;
  expect.term = term;
  if (dataset == nullptr || dataset->uuid.is_nil()) return expect;
  expect.uuid = dataset->uuid;
  expect.timeline = dataset->timeline();
  return expect;
}

PlanStep follow_home(const FleetView& view, const Transfer& transfer, const ControllerTerm& term,
                     IdSource& ids) {
  const Dataset& target = *view.find_copy(transfer.target, transfer.uuid);
  PlanStep step;
  step.id = StepId{ids.next()};
  step.node = transfer.target;
  step.action = zed::FollowHome{target.name, transfer.uuid,
                                std::get<FollowHome>(transfer.step).common, DatasetId{ids.next()}};
  step.expect = expect_of(&target, term);
  step.expect.newest = target.newest()->id;
  step.why = transfer.why;
  return step;
}

}  // namespace

bool selects(const ReplicationPolicy& policy, const Dataset& dataset) {
  return !is_branch(dataset) && is_about(policy, dataset.name);
}

std::optional<CheckpointId> snapshot_of(const ReplicationStep& step) {
  return std::visit(TravelsOf{}, step).snapshot;
}

std::optional<CheckpointId> base_of(const ReplicationStep& step) {
  return std::visit(TravelsOf{}, step).base;
}

std::optional<Transfer> due_transfer(const FleetView& view, const DatasetId& uuid,
                                     const NodeName& source_node, const NodeName& target_node,
                                     const std::string& why, const Retention& retention) {
  const Node* from = view.find_node(source_node);
  const Node* to = view.find_node(target_node);
  if (from == nullptr || to == nullptr || from == to || uuid.is_nil()) return std::nullopt;
  if (!is_reachable(*from) || !is_reachable(*to)) return std::nullopt;
  const Dataset* source = view.find_copy(source_node, uuid);
  if (source == nullptr) return std::nullopt;
  const Dataset* target = view.find_copy(target_node, uuid);
  if (target == nullptr) target = find_by_name(view, target_node, source->name);
  // The writable copy is never overwritten, whatever a policy says.
  if (is_home(source, target_node) || is_home(target, target_node)) return std::nullopt;
  // A holder that has not begun the source's timeline has a fork to apply first.
  if (target != nullptr && target->timeline() && target->timeline() != source->timeline())
    return std::nullopt;

  std::set<CheckpointId> skip;
  for (const Doomed& doomed : to_destroy(*source, retention, {}))
    skip.insert(doomed.id);
  Transfer transfer;
  transfer.dataset = source->name;
  transfer.uuid = uuid;
  transfer.source = source_node;
  transfer.target = target_node;
  transfer.step = replication_step(*source, target, skip);
  if (std::holds_alternative<UpToDate>(transfer.step)) return std::nullopt;
  if (std::holds_alternative<FollowHome>(transfer.step) && !is_authority(*source, source_node))
    return std::nullopt;
  Travels travels = std::visit(TravelsOf{}, transfer.step);
  transfer.kind = stream_kind(from->facts.store, to->facts.store, *source, target, travels.base);
  transfer.behind = missing_snapshots(*source, target, skip).size();
  transfer.why = why + ": " + words_of(transfer, *source);
  return transfer;
}

PolicyTransfers due_transfers(const FleetView& view, const ReplicationPolicy& policy,
                              const Filter& filter) {
  PolicyTransfers result;
  auto held = view.datasets.find(policy.source);
  if (held == view.datasets.end()) return result;
  for (const auto& [name, dataset] : held->second) {
    if (!selects(policy, dataset)) continue;
    if (dataset.uuid.is_nil()) {
      // The prefix itself is only a folder of datasets.
      if (name != policy.selector)
        result.excluded.push_back({name, "it has no com.zed:uuid: adopt it first"});
      continue;
    }
    if (auto why = filter ? filter(dataset) : std::nullopt) {
      result.excluded.push_back({name, *why});
      continue;
    }
    for (const NodeName& target : policy.targets) {
      auto transfer = due_transfer(view, dataset.uuid, policy.source, target,
                                   "policy " + policy.name, policy.retention);
      if (!transfer) continue;
      transfer->max_rate = policy.max_rate;
      result.transfers.push_back(std::move(*transfer));
    }
  }
  return result;
}

std::vector<PlanStep> plan_steps(const FleetView& view, const Transfer& transfer,
                                 const ControllerTerm& term, IdSource& ids) {
  if (std::holds_alternative<FollowHome>(transfer.step))
    return {follow_home(view, transfer, term, ids)};
  Travels travels = std::visit(TravelsOf{}, transfer.step);
  if (!travels.snapshot) return {};
  const Dataset* source = view.find_copy(transfer.source, transfer.uuid);
  const Dataset* target = view.find_copy(transfer.target, transfer.uuid);
  Ticket ticket = ticket_of(view, transfer, term, ids);
  PlanStep send;
  send.id = StepId{ids.next()};
  send.node = ticket.source;
  send.action = SendSnapshot{ticket};
  send.expect = expect_of(view.find_copy(ticket.source, transfer.uuid), term);
  send.why = transfer.why;
  PlanStep receive;
  receive.id = StepId{ids.next()};
  receive.node = transfer.target;
  receive.action = ReceiveSnapshot{ticket, replica_properties(*source)};
  receive.expect = expect_of(target, term);
  receive.expect.newest = travels.base;
  receive.why = transfer.why;
  return {std::move(send), std::move(receive)};
}

}  // namespace zed::repl
