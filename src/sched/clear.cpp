#include "sched/clear.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

#include "sched/demand.hpp"

namespace zed::sched {
namespace {

constexpr std::size_t most_nodes = 2000;
constexpr std::int64_t disk_rate = 500'000'000;  ///< bytes per second, to save or restore

/// What one job holds on a node: an attempt, or the promise of one.
struct Held {
  JobId job;
  std::optional<Attempt> attempt;
  std::optional<Reservation> promise;
  const Occupant* occupant = nullptr;  ///< nullptr: it stays
};

std::vector<Held> held_on(const NodeName& node, const FleetView& view,
                          const std::vector<Reservation>& reservations,
                          const std::map<JobId, Occupant>& occupants) {
  auto attempts = view.attempts.find(node);
  std::vector<Held> held;
  if (attempts != view.attempts.end())
    for (const Attempt& attempt : attempts->second)
      if (is_live(attempt)) held.push_back({attempt.job, attempt, std::nullopt, nullptr});
  for (const Reservation& reservation : reservations) {
    if (reservation.node != node) continue;
    auto same = std::find_if(held.begin(), held.end(),
                             [&](const Held& h) { return h.job == reservation.job; });
    if (same == held.end())
      held.push_back({reservation.job, std::nullopt, reservation, nullptr});
    else
      same->promise = reservation;
  }
  for (Held& h : held) {
    auto occupant = occupants.find(h.job);
    if (occupant != occupants.end()) h.occupant = &occupant->second;
  }
  return held;
}

Millis known_or_never(const std::optional<Millis>& time) {
  return time.value_or(Millis{std::numeric_limits<std::int64_t>::max()});
}

/// One node, with those of `held` that have not left.
class Room {
public:
  Room(const Node& node, const PlaceRequest& stuck, std::vector<Held> held, Leave leave)
      : node_(node), here_(stuck), held_(std::move(held)), stays_(held_.size(), true) {
    here_.only = node.name;
    here_.reservations.clear();
    for (std::size_t i = 0; i < held_.size(); ++i)
      if (held_[i].occupant != nullptr) leavers_.push_back(i);
    std::stable_sort(leavers_.begin(), leavers_.end(), [&](std::size_t a, std::size_t b) {
      const Occupant& x = *held_[a].occupant;
      const Occupant& y = *held_[b].occupant;
      if (leave == Leave::cheapest) return x.cost < y.cost;
      return known_or_never(x.ends_within) < known_or_never(y.ends_within);
    });
  }

  std::optional<Clearing> clear() {
    // Most nodes never do: asked once, with everyone gone who may go.
    std::fill(stays_.begin(), stays_.end(), true);
    for (std::size_t i : leavers_)
      stays_[i] = false;
    if (!fit()) return std::nullopt;
    for (std::size_t i : leavers_)
      stays_[i] = true;
    std::vector<std::size_t> gone;
    auto placement = fit();
    for (std::size_t next = 0; !placement && next < leavers_.size(); ++next) {
      stays_[leavers_[next]] = false;
      gone.push_back(leavers_[next]);
      placement = fit();
    }
    if (!placement) return std::nullopt;
    return described(spare(gone), *fit());
  }

private:
  /// Those need not leave after all whose room is not needed: the last to go first.
  std::vector<std::size_t> spare(std::vector<std::size_t> gone) {
    for (std::size_t i = gone.size(); i-- > 0;) {
      stays_[gone[i]] = true;
      if (fit())
        gone.erase(gone.begin() + static_cast<std::ptrdiff_t>(i));
      else
        stays_[gone[i]] = false;
    }
    return gone;
  }

  std::optional<Placement> fit() const {
    Index index;
    std::vector<Attempt> attempts;
    for (std::size_t i = 0; i < held_.size(); ++i)
      if (stays_[i] && held_[i].attempt) attempts.push_back(*held_[i].attempt);
    index.update(node_, attempts);
    for (std::size_t i = 0; i < held_.size(); ++i)
      if (stays_[i] && held_[i].promise) index.reserve(*held_[i].promise);
    return place(index, here_);
  }

  Clearing described(const std::vector<std::size_t>& gone, const Placement& placement) const {
    Clearing clearing;
    clearing.placement = placement;
    clearing.within = Millis{0};
    for (std::size_t i : gone) {
      const Occupant& occupant = *held_[i].occupant;
      clearing.leaving.push_back(held_[i].job);
      clearing.cost += occupant.cost;
      if (!occupant.ends_within || !clearing.within)
        clearing.within.reset();
      else
        clearing.within = std::max(*clearing.within, *occupant.ends_within);
    }
    return clearing;
  }

  const Node& node_;
  PlaceRequest here_;
  std::vector<Held> held_;
  std::vector<bool> stays_;
  std::vector<std::size_t> leavers_;
};

bool is_better(const Clearing& a, const Clearing& b, Leave leave) {
  auto rank = [&](const Clearing& c) {
    Millis first = leave == Leave::cheapest ? c.cost : known_or_never(c.within);
    return std::make_tuple(first, c.leaving.size(), c.placement.node);
  };
  return rank(a) < rank(b);
}

}  // namespace

std::optional<Clearing> clearing(const FleetView& view,
                                 const std::vector<Reservation>& reservations,
                                 const PlaceRequest& stuck,
                                 const std::map<JobId, Occupant>& occupants, Leave leave) {
  if (Demand(stuck).family == Family::none) return std::nullopt;
  std::optional<Clearing> best;
  std::size_t looked_at = 0;
  for (const auto& [name, node] : view.nodes) {
    if (!takes_jobs(node) || (stuck.only && *stuck.only != name)) continue;
    if (++looked_at > most_nodes) break;
    Room room(node, stuck, held_on(name, view, reservations, occupants), leave);
    auto found = room.clear();
    if (found && (!best || is_better(*found, *best, leave))) best = std::move(found);
  }
  return best;
}

Millis eviction_cost(std::size_t gpus, Millis since_checkpoint, Bytes size) {
  const std::int64_t moving = 2 * (std::max<std::int64_t>(size.value, 0) / (disk_rate / 1000));
  const std::int64_t each = std::max<std::int64_t>(since_checkpoint.value, 0) + moving;
  return Millis{each * static_cast<std::int64_t>(std::max<std::size_t>(gpus, 1))};
}

}  // namespace zed::sched
