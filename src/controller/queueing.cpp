#include "controller/queueing.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "controller/timelines.hpp"

namespace zed::controller {
namespace {

constexpr Millis hold_anew = seconds(30);   ///< a hold is thought over after that
constexpr Millis slack = seconds(5);        ///< between a job's end and the next one's start
constexpr Millis soon_gone = seconds(60);   ///< what is being stopped
constexpr Millis ask_again = seconds(2);    ///< for room, after it was in vain
constexpr Bytes assumed_rate{100'000'000};  ///< per second, of a link that was never measured
constexpr Bytes worth_a_thought{50'000'000};

/// The job's time of being placed so far; a wall clock that went back counts as no time.
Millis placed_for(const Machine& m, const DesiredJob& job) {
  return Millis{std::max<std::int64_t>(0, m.now.wall.ms - job.placed->at.ms)};
}

bool is_leaving(const DesiredJob& job) {
  return job.wanted != Wanted::run || !job.placed->evicted_for.is_nil();
}

Millis cost_of(const Machine& m, const DesiredJob& job) {
  if (is_leaving(job)) return Millis{0};
  const NodeName& node = job.placed->node;
  const Dataset* copy = m.fleet.copy(node, job.dataset_uuid());
  const Snapshot* newest = copy != nullptr ? newest_current_checkpoint(job, *copy) : nullptr;
  Millis since = placed_for(m, job);
  if (newest != nullptr)
    since = std::min(since, Millis{std::max<std::int64_t>(0, m.now.wall.ms - newest->created.ms)});
  return sched::eviction_cost(job.placed->gpus.size(), since,
                              copy != nullptr ? copy->used : Bytes{0});
}

sched::Occupant occupant_of(const Machine& m, const DesiredJob& job) {
  sched::Occupant occupant;
  occupant.ends_within = is_leaving(job) ? std::optional(soon_gone) : time_left(m, job);
  return occupant;
}

/// Whoever holds GPUs and will end one day.
std::map<JobId, sched::Occupant> everyone(const Machine& m) {
  std::map<JobId, sched::Occupant> occupants;
  for (const auto& entry : m.placed_jobs)
    occupants[entry.first] = occupant_of(m, *m.desired.find(entry.first));
  return occupants;
}

/// Whoever may be told to make room for `job`, or leaves anyway; nobody if all who do, do anyway.
std::map<JobId, sched::Occupant> evictable(const Machine& m, const DesiredJob& job) {
  std::map<JobId, sched::Occupant> occupants;
  for (const auto& entry : m.placed_jobs) {
    const DesiredJob& other = *m.desired.find(entry.first);
    const bool for_others =
        !other.placed->evicted_for.is_nil() && other.placed->evicted_for != job.job.id;
    const bool may = is_leaving(other) ? !for_others
                                       : other.job.priority < job.job.priority &&
                                             other.evictions < most_evictions;
    if (!may) continue;
    occupants[entry.first] = occupant_of(m, other);
    occupants[entry.first].cost = cost_of(m, other);
  }
  return occupants;
}

/// Nodes whose inventory is not in yet take nothing.
sched::PlaceRequest on_ready_nodes(const Machine& m, sched::PlaceRequest request) {
  for (const auto& entry : m.fleet.view().nodes)
    if (!m.fleet.is_ready(entry.first))
      request.exclusions.push_back(
          {entry.first, fmt::format("it {}", m.fleet.absence(entry.first)), true});
  return request;
}

void reserve(Machine& m, const DesiredJob& job, const Hold& hold) {
  sched::PlaceRequest request;
  request.job = job.job;
  m.fleet.reserve(sched::reservation_of(request, hold.clearing.placement));
}

void hold(Machine& m, const DesiredJob& job, sched::Clearing clearing, bool evicts) {
  Hold made;
  if (clearing.within) made.until = m.now.monotonic + *clearing.within;
  made.made = m.now.monotonic;
  made.evicts = evicts;
  made.wanted = true;
  made.clearing = std::move(clearing);
  reserve(m, job, made);
  m.holds.insert_or_assign(job.job.id, std::move(made));
}

bool is_good(const Machine& m, const Hold& hold) {
  return m.fleet.is_ready(hold.clearing.placement.node) && m.now.monotonic - hold.made < hold_anew;
}

std::string names_of(const Machine& m, const std::vector<JobId>& ids) {
  std::vector<std::string> names;
  for (const JobId& id : ids)
    if (const DesiredJob* job = m.desired.find(id)) names.push_back(job->job.name.str());
  return join(names, ", ");
}

std::string words_of(const Machine& m, const Hold& hold) {
  return fmt::format("waits for {} to end on {}; what is free there is held for it",
                     names_of(m, hold.clearing.leaving), hold.clearing.placement.node.str());
}

/// Tells them to go. Recorded, so that a controller that follows knows why they stop.
void evict(Machine& m, const DesiredJob& job, const sched::Clearing& clearing) {
  for (const JobId& id : clearing.leaving) {
    const DesiredJob& other = *m.desired.find(id);
    if (is_leaving(other)) continue;
    std::string why =
        fmt::format("makes room for job {} of priority {}", job.job.name.str(), job.job.priority);
    std::string name = other.job.name.str();
    m.record(Evicted{id, other.placed->generation, job.job.id, why});
    m.tell("job", "job " + name, why + " on " + clearing.placement.node.str());
  }
}

/// Room that lower priorities make; only they, and whoever leaves anyway.
std::optional<sched::Clearing> room_by_eviction(const Machine& m, const DesiredJob& job,
                                                const sched::PlaceRequest& request) {
  auto occupants = evictable(m, job);
  if (occupants.empty()) return std::nullopt;
  auto found = sched::clearing(m.fleet.view(), promises_to_others(m, job.job.id), request,
                               occupants, sched::Leave::cheapest);
  if (!found || found->leaving.empty()) return std::nullopt;
  return found;
}

}  // namespace

std::vector<sched::Reservation> promises_to_others(const Machine& m, const JobId& but) {
  std::vector<sched::Reservation> all = m.fleet.reservations();
  std::erase_if(all, [&](const sched::Reservation& r) { return r.job == but; });
  return all;
}

std::optional<Millis> time_left(const Machine& m, const DesiredJob& job) {
  if (!job.job.timeout) return std::nullopt;
  Millis left = *job.job.timeout - job.ran;
  if (job.placed) left = left - placed_for(m, job);
  return std::max(left, Millis{0});
}

std::optional<Placement> place_now(Machine& m, const DesiredJob& job,
                                   const sched::PlaceRequest& request) {
  if (auto placement = sched::place(m.fleet.index(), request)) return placement;
  auto left = time_left(m, job);
  if (!left) return std::nullopt;
  for (const auto& [other, held] : m.holds) {
    const DesiredJob* head = m.desired.find(other);
    if (!held.wanted || head == nullptr || held.evicts || !held.until ||
        m.now.monotonic + *left + slack > *held.until)
      continue;
    m.fleet.release(other);
    auto placement = sched::place(m.fleet.index(), request);
    reserve(m, *head, held);
    if (placement) return placement;
  }
  return std::nullopt;
}

std::string wait_for_capacity(Machine& m, const DesiredJob& job,
                              const sched::PlaceRequest& request) {
  const JobId& id = job.job.id;
  auto own = m.holds.find(id);
  const bool is_head = !m.head || *m.head == id;
  if (own != m.holds.end() && is_good(m, own->second) && (own->second.evicts || is_head)) {
    own->second.wanted = true;
    reserve(m, job, own->second);
    if (!own->second.evicts) m.head = id;
    return words_of(m, own->second);
  }
  if (own != m.holds.end()) m.holds.erase(own);
  auto asked = m.asked_for_room.find(id);
  if (asked != m.asked_for_room.end() && m.now.monotonic < asked->second) return "";
  m.asked_for_room[id] = m.now.monotonic + ask_again;
  m.wake(m.now.monotonic + ask_again, id);
  const sched::PlaceRequest ready = on_ready_nodes(m, request);
  if (auto room = room_by_eviction(m, job, ready)) {
    evict(m, job, *room);
    hold(m, job, std::move(*room), true);
    return words_of(m, m.holds.at(id));
  }
  if (!is_head) return "";
  auto room = sched::clearing(m.fleet.view(), promises_to_others(m, id), ready, everyone(m),
                              sched::Leave::soonest);
  if (!room || room->leaving.empty()) return "";
  m.head = id;
  hold(m, job, std::move(*room), false);
  return words_of(m, m.holds.at(id));
}

// Jobs are offered in their order, so each meets what is held for those before it and nothing else.
void begin_pass(Machine& m) {
  m.head.reset();
  for (auto& [id, hold] : m.holds) {
    hold.wanted = false;
    m.fleet.release(id);
  }
}

void end_pass(Machine& m) {
  for (auto entry = m.holds.begin(); entry != m.holds.end();) {
    if (entry->second.wanted) {
      ++entry;
      continue;
    }
    entry = m.holds.erase(entry);
    m.place_due = true;  // somebody may go there now
  }
}

// ---- a wait for the data ------------------------------------------------------------------------

namespace {

Bytes to_move(const sched::PlaceRequest& request, const NodeName& node) {
  Bytes sum;
  for (const sched::InputData& input : request.inputs) {
    auto missing = input.missing.find(node);
    sum += missing != input.missing.end() ? missing->second : input.size;
  }
  return sum;
}

/// The fastest link to that node that was measured.
Bytes rate_to(const Machine& m, const NodeName& node) {
  const Bytes best = m.rates.best_to(node);
  return best.value > 0 ? best : assumed_rate;
}

Millis transfer_time(const Machine& m, const sched::PlaceRequest& request, const NodeName& node) {
  const double seconds = static_cast<double>(to_move(request, node).value) /
                         static_cast<double>(rate_to(m, node).value);
  return Millis{static_cast<std::int64_t>(seconds * 1000)};
}

/// Nodes that have part of the inputs.
std::set<NodeName> nodes_with_data(const sched::PlaceRequest& request) {
  std::set<NodeName> nodes;
  for (const sched::InputData& input : request.inputs)
    for (const auto& entry : input.missing)
      nodes.insert(entry.first);
  return nodes;
}

}  // namespace

std::optional<std::string> worth_waiting(Machine& m, const DesiredJob& job,
                                         const sched::PlaceRequest& request,
                                         const Placement& placement) {
  if (to_move(request, placement.node) < worth_a_thought) return std::nullopt;
  auto thought = m.data_waits.find(job.job.id);
  if (thought != m.data_waits.end() && m.now.monotonic < thought->second.first)
    return thought->second.second;
  const Millis here = transfer_time(m, request, placement.node);
  const auto occupants = everyone(m);
  for (const NodeName& node : nodes_with_data(request)) {
    if (node == placement.node || !m.fleet.is_ready(node)) continue;
    const Millis transfer = transfer_time(m, request, node);
    if (transfer + slack >= here) continue;
    sched::PlaceRequest there = request;
    there.only = node;
    auto room = sched::clearing(m.fleet.view(), promises_to_others(m, job.job.id), there, occupants,
                                sched::Leave::soonest);
    if (!room || !room->within || room->placement.tier > placement.tier) continue;
    // start(node) = max(when it is free, when the data is there): both at once, as they can be.
    const Millis start = std::max(*room->within, transfer) + slack;
    if (start >= here) continue;
    std::string why = fmt::format(
        "waits up to {} for {}, which has its data: moving {} to {} would take {}", show(start),
        node.str(), show(to_move(request, placement.node)), placement.node.str(), show(here));
    const Instant anew = m.now.monotonic + seconds(1);
    m.wake(anew, job.job.id);
    m.data_waits.insert_or_assign(job.job.id, std::pair{anew, why});
    return why;
  }
  return std::nullopt;
}

}  // namespace zed::controller
