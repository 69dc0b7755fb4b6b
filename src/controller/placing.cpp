// Where jobs go: first places, places at their home, takeovers after a loss, planned moves.

#include <algorithm>

#include <fmt/format.h>

#include "controller/ends.hpp"
#include "controller/machine.hpp"
#include "controller/operations/reasons.hpp"
#include "controller/place_request.hpp"
#include "controller/queueing.hpp"
#include "controller/timelines.hpp"
#include "sched/match.hpp"
#include "sched/place.hpp"

namespace zed::controller {
namespace {

using Offer = PendingQueue::Offer;

Offer wait(Machine& m, const DesiredJob& job, std::string why) {
  m.waits_for[job.job.id] = std::move(why);
  return Offer::refused;
}

void place_at(Machine& m, DesiredJob& job, const Placement& placement) {
  PlacedAttempt attempt{m.next_generation(), placement.node, placement.gpus, job.attempts + 1,
                        m.now.wall,          placement.why,  JobId{},        std::string()};
  m.record(Placed{job.job.id, attempt});
  m.tell("job", "job " + job.job.name.str(),
         fmt::format("attempt {} goes to {}: {}", attempt.number, placement.node.str(),
                     placement.why));
}

/// No node has room for it: others may have to make some.
Offer wait_for_room(Machine& m, DesiredJob& job, const sched::PlaceRequest& request,
                    const std::string& why) {
  std::string held = wait_for_capacity(m, job, request);
  return wait(m, job, held.empty() ? why : why + ": it " + held);
}

Offer place_first(Machine& m, DesiredJob& job) {
  auto request = place_request(m, job);
  auto placement = place_now(m, job, request);
  if (!placement) return wait_for_room(m, job, request, "no node can take it now");
  if (auto reason = worth_waiting(m, job, request, *placement)) return wait(m, job, *reason);
  place_at(m, job, *placement);
  return Offer::placed;
}

/// Why the job cannot go on at its home, although the home is there.
bool must_leave_home(const Machine& m, const DesiredJob& job) {
  if (m.avoids(job.job.id, job.home)) return true;
  if (!job.only.empty()) return job.only != job.home;
  auto duty = m.desired.duties.find(job.home);
  return duty != m.desired.duties.end() && duty->second.duty != Duty::none;
}

bool has_newest_of(const Dataset& home, const Dataset* copy) {
  return home.newest() != nullptr && copy != nullptr && copy->find(home.newest()->id) != nullptr;
}

/// Looks for another home. Busy there as well, or nowhere to go: the job waits where it is.
void look_for_target(Machine& m, DesiredJob& job, bool only_with_copy) {
  auto request = place_request(m, job);
  request.exclusions.push_back({job.home, "it leaves this node", true});
  auto placement = sched::place(m.fleet.index(), request);
  if (!placement || placement->node == job.home || !m.fleet.is_ready(placement->node)) return;
  const Dataset* home = m.fleet.copy(job.home, job.dataset_uuid());
  const Dataset* copy = m.fleet.copy(placement->node, job.dataset_uuid());
  if (only_with_copy && (home == nullptr || !has_newest_of(*home, copy))) return;
  m.moves[job.job.id] = Move{placement->node, placement->why};
  m.tell("job", "job " + job.job.name.str(),
         fmt::format("moves from {} to {}: {}", job.home.str(), placement->node.str(),
                     placement->why));
  m.look_at(job.job.id);
}

/// A node whose failed clauses will not pass by themselves.
bool is_hopeless(const Machine& m, const sched::PlaceRequest& request, const NodeName& name) {
  const Node* node = m.fleet.node(name);
  auto attempts = m.fleet.view().attempts.find(name);
  auto result = sched::match(request, *node,
                             attempts == m.fleet.view().attempts.end() ? std::vector<Attempt>{}
                                                                       : attempts->second);
  auto* shortfalls = std::get_if<std::vector<Shortfall>>(&result);
  return shortfalls != nullptr && std::any_of(shortfalls->begin(), shortfalls->end(),
                                              [](const Shortfall& s) { return !s.for_now; });
}

Offer place_at_home(Machine& m, DesiredJob& job) {
  if (m.moves.contains(job.job.id)) return Offer::refused;
  if (!m.fleet.is_ready(job.home))
    return wait(m, job, fmt::format("its home {} {}", job.home.str(), m.fleet.absence(job.home)));
  if (must_leave_home(m, job)) {
    look_for_target(m, job, false);
    if (!m.moves.contains(job.job.id))
      return wait(m, job, "it leaves " + job.home.str() + ", and no other node can take it now");
    return Offer::refused;
  }
  if (!prepare_home(m, job)) return Offer::refused;
  auto request = place_request(m, job);
  request.only = job.home;
  if (auto placement = place_now(m, job, request)) {
    place_at(m, job, *placement);
    return Offer::placed;
  }
  look_for_target(m, job, !is_hopeless(m, request, job.home));
  if (m.moves.contains(job.job.id)) return Offer::refused;
  return wait_for_room(m, job, request, "its home " + job.home.str() + " cannot take it now");
}

/// An exclusive job's old attempt stops by itself when its lease ends; until then nobody may start,
/// unless its node says that nothing runs there.
bool lease_may_run(Machine& m, const DesiredJob& job) {
  const NodeName& where = job.placed ? job.placed->node : job.unconfirmed;
  if (!job.job.exclusive || where.empty()) return false;
  if (m.fleet.is_ready(where)) {
    const Attempt* attempt = m.fleet.attempt(where, job.job.id);
    if (attempt == nullptr || !is_live(*attempt)) return false;
  }
  auto granted = m.granted.find(job.job.id);
  Instant last = granted != m.granted.end() ? granted->second : m.started_at;
  const Instant until = last + m.lease_and_margin(job);
  if (m.now.monotonic >= until) return false;
  m.wake(until, job.job.id);
  return true;
}

/// A job whose nodes or supervisors die again and again, without a checkpoint between, is not let
/// loose on the next one.
Offer hold_crasher(Machine& m, DesiredJob& job) {
  std::string why = fmt::format(
      "held: its node or supervisor was lost {} times in a row, without a checkpoint between",
      job.crashes);
  Outcome outcome{JobState::stopped, why, job.last_generation, m.now.wall};
  m.record(Finished{job.job.id, outcome, std::nullopt, {}});
  m.tell("job", "job " + job.job.name.str(), why + "; `zedctl resume` lets it try again");
  return Offer::placed;
}

/// The home is lost: the job goes on elsewhere from the newest reachable checkpoint of its current
/// timeline, and from nothing else.
Offer take_over(Machine& m, DesiredJob& job) {
  auto found = newest_reachable(m, job);
  if (!found && job.had_checkpoint)
    return wait(m, job,
                "node " + job.home.str() +
                    " is lost, and no reachable node has a copy of a checkpoint; `zedctl resume " +
                    job.job.name.str() + " --from start` begins again");
  if (job.crashes >= most_crashes) return hold_crasher(m, job);
  if (lease_may_run(m, job))
    return wait(m, job, "node " + job.home.str() + " is lost; its lease has not ended");
  auto request = place_request(m, job);
  if (m.fleet.is_lost(job.only)) request.only.reset();
  auto placement = place_now(m, job, request);
  if (!placement)
    return wait_for_room(m, job, request,
                         "node " + job.home.str() + " is lost, and no other can take it now");
  KnownFork fork;
  fork.fork.job = job.job.id;
  fork.fork.timeline = m.next_generation();
  fork.fork.left = job.timeline;
  fork.fork.why = Fork::Why::node_lost;
  fork.fork.by = "zed";
  fork.fork.at = m.now.wall;
  fork.branch_uuid = m.fresh<DatasetId>();
  if (found) {
    fork.fork.from = found->snapshot->id;
    fork.from_seq = *found->snapshot->seq();
    fork.from_name = found->snapshot->name;
  }
  std::string from = found ? "@" + found->snapshot->name : "its input";
  std::string lost = job.home.str();
  m.record(Forked{fork, placement->node});
  m.tell("fork", "job " + job.job.name.str(),
         fmt::format("node {} is lost; goes on from {} on {}", lost, from, placement->node.str()));
  return Offer::placed;
}

Offer try_place(Machine& m, DesiredJob& job) {
  if (!m.journal.is_durable(job.changed_seq) || !m.is_firm(job.safe_seq)) return Offer::refused;
  if (auto what = awaited(m, job)) return wait(m, job, *what);
  auto pause = m.not_before.find(job.job.id);
  if (pause != m.not_before.end()) {
    if (m.now.monotonic < pause->second) return wait(m, job, "pauses after: " + job.last_exit);
    m.not_before.erase(pause);
  }
  if (!job.placed && lease_may_run(m, job))
    return wait(m, job, "its lease on " + job.unconfirmed.str() + " has not ended");
  if (job.home.empty()) return place_first(m, job);
  if (home_is_lost(m, job)) return take_over(m, job);
  if (job.placed) return Offer::refused;  // its node is back
  return place_at_home(m, job);
}

std::map<std::string, std::int64_t> held_by_user(const Machine& m) {
  std::map<std::string, std::int64_t> held;
  for (const auto& entry : m.placed_jobs) {
    const DesiredJob* job = m.desired.find(entry.first);
    held[job->by] += std::max<std::int64_t>(1, std::ssize(job->placed->gpus));
  }
  return held;
}

}  // namespace

sched::PlaceRequest place_request(const Machine& m, const DesiredJob& job) {
  sched::PlaceRequest request;
  request.job = job.job;
  if (!job.only.empty()) request.only = job.only;
  auto add = [&](const DatasetName& dataset, const DatasetId& uuid) {
    sched::InputData input;
    input.dataset = dataset;
    auto source = best_holder(m, uuid);
    const Dataset* best = source ? m.fleet.copy(*source, uuid) : nullptr;
    if (best == nullptr) return;
    input.size = best->used;
    for (const NodeName& node : m.fleet.ready_holders(uuid))
      input.missing[node] = has_newest_of(*best, m.fleet.copy(node, uuid)) ? Bytes{} : best->used;
    request.inputs.push_back(std::move(input));
  };
  if (job.job.model)
    if (auto dataset = dataset_of_model(m, *job.job.model))
      if (auto uuid = m.fleet.uuid_of(*dataset)) add(*dataset, *uuid);
  for (const DatasetName& dataset : job.job.data)
    if (auto uuid = m.fleet.uuid_of(dataset)) add(dataset, *uuid);
  if (!job.home.empty()) add(job.job.dataset, job.dataset_uuid());
  if (job.begins && job.home.empty())
    if (const DesiredJob* old = m.desired.find(job.begins->job))
      add(old->job.dataset, old->dataset_uuid());
  if (auto avoided = m.avoided.find(job.job.id); avoided != m.avoided.end())
    for (const auto& [node, avoid] : avoided->second)
      if (m.avoids(job.job.id, node)) request.exclusions.push_back({node, avoid.why, true});
  return request;
}

void place_pending(Machine& m) {
  m.place_due = false;
  if (m.pending.size() == 0 && m.holds.empty()) return;
  begin_pass(m);
  m.pending.pass(held_by_user(m), [&m](const JobId& id) {
    DesiredJob* job = m.desired.find(id);
    return job == nullptr ? Offer::refused : try_place(m, *job);
  });
  end_pass(m);
}

void drive_move(Machine& m, DesiredJob& job) {
  const JobId id = job.job.id;
  auto move = m.moves.find(id);
  if (move == m.moves.end()) {
    look_for_target(m, job, false);
    if (!m.moves.contains(id))
      m.waits_for[id] = "it is to leave " + job.home.str() + ", and no other node can take it now";
    return;
  }
  const NodeName target = move->second.target;
  if (!m.fleet.is_ready(target) || !m.fleet.is_ready(job.home)) {
    m.moves.erase(move);
    m.place_due = true;
    return;
  }
  if (job.placed || !m.fleet.nodes_running(id).empty()) return;  // still stopping
  const Dataset* home = m.fleet.copy(job.home, job.dataset_uuid());
  if (home == nullptr || home->newest() == nullptr) {  // no attempt ever began: nothing to take
    m.moves.erase(move);
    m.record(Moved{id, target, CheckpointId{}});
    return;
  }
  m.waits_for[id] = "its files are on their way from " + job.home.str() + " to " + target.str();
  if (!bring(m, job.dataset_uuid(), job.home, target, id, "job " + job.job.name.str() + " moves"))
    return;
  m.moves.erase(move);
  m.record(Moved{id, target, home->newest()->id});
  m.tell("job", "job " + job.job.name.str(), "has moved to " + target.str());
}

}  // namespace zed::controller
