// Replication policies: on each new snapshot, or in rounds (`every`); and their `keep` on targets.

#include <algorithm>

#include "controller/copies.hpp"
#include "repl/targets.hpp"
#include "spec/filter.hpp"

namespace zed::controller {
namespace {

/// A job's dataset moves only from its home, on its current timeline, and never onto its home.
bool may_move(const Machine& m, const repl::Transfer& transfer) {
  const DesiredJob* job = m.desired.find(JobId{transfer.uuid.bytes});
  if (job == nullptr) return true;
  if (transfer.source != job->home || transfer.target == job->home) return false;
  if (!m.is_firm(job->safe_seq)) return false;
  const Dataset* source = m.fleet.copy(transfer.source, transfer.uuid);
  const Dataset* target = m.fleet.copy(transfer.target, transfer.uuid);
  return source != nullptr && source->timeline() == job->timeline && !is_arriving(*job, *source) &&
         (target == nullptr || target->timeline() == job->timeline);
}

repl::Filter filter_of(const ReplicationPolicy& policy) {
  auto filter = spec::Filter::parse(policy.filter);
  if (!filter) {
    std::string why = "its filter does not read: " + filter.error().message;
    return [why](const Dataset&) { return std::optional(why); };
  }
  return [parsed = *filter](const Dataset& dataset) -> std::optional<std::string> {
    spec::Verdict verdict = spec::evaluate(parsed, dataset.properties);
    return verdict.selects() ? std::nullopt : std::optional(verdict.reason);
  };
}

// ---- rounds -------------------------------------------------------------------------------------
//
// A policy with `every` brings to a target what was there when its round began, and nothing newer
// before the next round. A target that is away keeps its round open, so that it is served as soon
// as it is back. Rounds live in memory: a new controller begins one at once.

std::string round_key(const ReplicationPolicy& policy, const NodeName& target) {
  return policy.name + " " + policy.source.str() + " " + target.str();
}

void open_round(const Machine& m, const ReplicationPolicy& policy, PolicyRound& round) {
  round.open = true;
  round.next = m.now.monotonic + *policy.every;
  round.goals.clear();
  auto held = m.fleet.view().datasets.find(policy.source);
  if (held == m.fleet.view().datasets.end()) return;
  for (const auto& [name, dataset] : held->second)
    if (repl::selects(policy, dataset) && dataset.newest() != nullptr)
      round.goals[dataset.uuid] = dataset.newest()->createtxg;
}

/// Whether a transfer brings what was there when the round began.
bool is_within(const Machine& m, const PolicyRound& round, const repl::Transfer& transfer) {
  auto goal = round.goals.find(transfer.uuid);
  if (goal == round.goals.end()) return false;
  auto travels = repl::snapshot_of(transfer.step);
  const Dataset* source = m.fleet.copy(transfer.source, transfer.uuid);
  const Snapshot* snapshot = travels && source != nullptr ? source->find(*travels) : nullptr;
  return snapshot == nullptr || snapshot->createtxg <= goal->second;
}

/// The rounds of a policy that are due begin; none for a policy without `every`.
std::map<NodeName, PolicyRound*> rounds_of(Machine& m, const ReplicationPolicy& policy) {
  std::map<NodeName, PolicyRound*> rounds;
  if (!policy.every || !m.fleet.is_ready(policy.source)) return rounds;
  for (const NodeName& target : policy.targets) {
    PolicyRound& round = m.rounds[round_key(policy, target)];
    round.source = policy.source;
    if (!round.open && m.now.monotonic >= round.next) open_round(m, policy, round);
    rounds[target] = &round;
  }
  return rounds;
}

/// What goes over a fast link is there soon, and frees its slot for the next.
void fastest_first(const Machine& m, const ReplicationPolicy& policy,
                   std::vector<repl::Transfer>& transfers) {
  const auto order =
      repl::chain_order(m.fleet.view(), policy.targets, m.rates.rates_from(policy.source));
  std::map<NodeName, std::size_t> place;
  for (std::size_t i = 0; i < order.size(); ++i)
    place.emplace(order[i], i);
  std::stable_sort(transfers.begin(), transfers.end(),
                   [&place](const repl::Transfer& a, const repl::Transfer& b) {
                     return place.at(a.target) < place.at(b.target);
                   });
}

void run_policy(Machine& m, const ReplicationPolicy& policy) {
  auto due = repl::due_transfers(m.fleet.view(), policy, filter_of(policy));
  for (const repl::Excluded& excluded : due.excluded)
    for (const NodeName& target : policy.targets)
      m.excluded[excluded.dataset.str() + " " + target.str()] =
          "policy " + policy.name + ": " + excluded.why;
  auto rounds = rounds_of(m, policy);
  std::set<NodeName> unfinished;
  fastest_first(m, policy, due.transfers);
  std::vector<repl::Transfer> wanted;
  for (repl::Transfer& transfer : due.transfers) {
    if (!m.fleet.is_ready(transfer.source) || !m.fleet.is_ready(transfer.target) ||
        !may_move(m, transfer))
      continue;
    auto round = rounds.find(transfer.target);
    if (policy.every &&
        (round == rounds.end() || !round->second->open || !is_within(m, *round->second, transfer)))
      continue;
    // A conflict waits for a person; the round does not wait for it.
    if (!std::holds_alternative<repl::Conflict>(transfer.step)) unfinished.insert(transfer.target);
    wanted.push_back(std::move(transfer));
  }
  order_transfers(m, std::move(wanted), JobId{});
  for (auto& [target, round] : rounds)
    if (round->open && m.fleet.is_ready(target) && !unfinished.contains(target))
      round->open = false;
}

/// `keep` of a policy: on its targets, and only what the source still has.
void keep_on_targets(Machine& m, const ReplicationPolicy& policy) {
  if (policy.retention.keeps_all() || !m.fleet.is_ready(policy.source)) return;
  for (const auto& entry : m.fleet.view().datasets.at(policy.source)) {
    const Dataset& source = entry.second;
    if (!repl::selects(policy, source) || source.uuid.is_nil()) continue;
    for (const NodeName& target : policy.targets) {
      const Dataset* copy = m.fleet.copy(target, source.uuid);
      if (copy == nullptr || !m.fleet.is_ready(target) ||
          copy->property(property::home) == target.str() || copy->timeline() != source.timeline())
        continue;
      prune(m, target, *copy, policy.retention, "keep of policy " + policy.name, JobId{},
            [&source](const Snapshot& snapshot) { return source.find(snapshot.id) != nullptr; });
    }
  }
}

}  // namespace

std::map<NodeName, std::string> policy_targets(const Machine& m, const NodeName& source,
                                               const Dataset& copy) {
  std::map<NodeName, std::string> targets;
  if (!m.desired.applied) return targets;
  for (const ReplicationPolicy& policy : m.desired.applied->cluster.policies)
    if (policy.source == source && repl::selects(policy, copy) && !filter_of(policy)(copy))
      for (const NodeName& target : policy.targets)
        targets.emplace(target, policy.name);
  return targets;
}

void run_policies(Machine& m) {
  m.policies_due = false;
  m.excluded.clear();
  if (!m.desired.applied || !m.journal.is_durable(m.applied_seq)) return;
  for (const ReplicationPolicy& policy : m.desired.applied->cluster.policies) {
    run_policy(m, policy);
    keep_on_targets(m, policy);
  }
}

bool is_round_due(const Machine& m) {
  return std::any_of(m.rounds.begin(), m.rounds.end(), [&](const auto& entry) {
    return !entry.second.open && m.now.monotonic >= entry.second.next &&
           m.fleet.is_ready(entry.second.source);
  });
}

}  // namespace zed::controller
