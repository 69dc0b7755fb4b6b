#include "sched/choose.hpp"

#include <algorithm>
#include <numeric>

namespace zed::sched {
namespace {

std::int64_t divide_up(std::int64_t amount, std::int64_t by) {
  return amount <= 0 ? 0 : (amount - 1) / std::max<std::int64_t>(1, by) + 1;
}

}  // namespace

bool Chooser::choose(const NodeClass& node_class, const ClassFit& fit, const Shape& shape,
                     std::size_t tier, Choice& choice) {
  if (!fit.possible) return false;
  groups_ = &node_class.key.groups;
  fit_ = &fit;
  shape_ = &shape;
  tier_ = tier;
  best_ = &choice;
  found_ = false;
  switch (demand_.family) {
  case Family::whole: return choose_whole();
  case Family::shared: return choose_shared();
  case Family::none: break;
  }
  // Nothing of a GPU is taken: spread by what runs, and stay away from free GPUs.
  choice.score = {0, false, shape[0], 0, 0, shape[1]};
  return tier == demand_.wishes.size() || demand_.wishes[tier].kind != Wish::Kind::gpu;
}

bool Chooser::is_usable(std::size_t group) const {
  return fit_->groups[group].eligible &&
         (tier_ == demand_.wishes.size() || fit_->likes(tier_, group));
}

// A process sees one MIG instance only; unified memory is one pool, counted once in a sum.
bool Chooser::is_single(const GpuKind& kind) const {
  return kind.instance || (demand_.total && kind.memory_kind == MemoryKind::unified);
}

bool Chooser::choose_whole() {
  std::int64_t free = std::accumulate(shape_->begin(), shape_->end(), std::int64_t{0});
  if (free == 0 || (demand_.count && free < *demand_.count)) return false;
  for (std::size_t group = 0; group < groups_->size();)
    group = try_vendor(group);
  return found_;
}

std::size_t Chooser::try_vendor(std::size_t first) {
  const auto& groups = *groups_;
  std::size_t group = first;
  ranges_.clear();
  while (group < groups.size() && groups[group].kind.vendor == groups[first].kind.vendor) {
    Range range{group, group, 0, fit_->groups[group].counted};
    for (; group < groups.size() && groups[group].kind == groups[range.first].kind; ++group)
      if (is_usable(group)) range.free += (*shape_)[group];
    range.last = group;
    if (range.free == 0) continue;
    try_one_model(range);
    if (!is_single(groups[range.first].kind)) ranges_.push_back(range);
  }
  if (ranges_.size() > 1) try_mixed();
  return group;
}

void Chooser::try_one_model(const Range& range) {
  std::int64_t wanted =
      demand_.count ? *demand_.count
                    : std::max<std::int64_t>(1, divide_up(demand_.total->value, range.size.value));
  if (wanted > range.free || (wanted > 1 && is_single((*groups_)[range.first].kind))) return;
  if (demand_.total && range.size * wanted < *demand_.total) return;
  begin();
  take_from(range, wanted);
  trial_.score.leftover = range.size.value * wanted;
  offer();
  for (std::size_t group = range.first; wanted > 1 && group < range.last; ++group)
    try_one_island(range, wanted, group);
}

/// All of one island, if `first` is its first group and it has enough; its GPUs may sit on several
/// NUMA nodes.
void Chooser::try_one_island(const Range& range, std::int64_t wanted, std::size_t first) {
  const std::string& island = (*groups_)[first].island;
  if (island.empty()) return;
  std::int64_t free = 0;
  for (std::size_t group = range.first; group < range.last; ++group) {
    if ((*groups_)[group].island != island) continue;
    if (group < first) return;
    if (is_usable(group)) free += (*shape_)[group];
  }
  if (free < wanted) return;
  begin();
  take_from(range, wanted, &island);
  trial_.score.leftover = range.size.value * wanted;
  offer();
}

// With a total to reach, the largest come first: they make the fewest. Without, the smallest.
void Chooser::try_mixed() {
  bool largest_first = demand_.total.has_value();
  std::sort(ranges_.begin(), ranges_.end(), [&](const Range& a, const Range& b) {
    if (a.size != b.size) return largest_first ? a.size > b.size : a.size < b.size;
    return a.first < b.first;
  });
  begin();
  std::int64_t taken = 0;
  std::int64_t models = 0;
  std::int64_t& sum = trial_.score.leftover;
  for (const Range& range : ranges_) {
    std::int64_t wanted = still_wanted(range, taken, sum);
    if (wanted <= 0) break;
    take_from(range, wanted);
    taken += wanted;
    sum += range.size.value * wanted;
    ++models;
  }
  if (demand_.count && taken < *demand_.count) return;
  if (demand_.total && sum < demand_.total->value) return;
  trial_.score.mixed = models > 1;
  offer();
}

std::int64_t Chooser::still_wanted(const Range& range, std::int64_t taken, std::int64_t sum) const {
  if (demand_.count) return std::min(range.free, *demand_.count - taken);
  return std::min(range.free, divide_up(demand_.total->value - sum, range.size.value));
}

void Chooser::begin() {
  trial_.take.assign(groups_->size(), 0);
  trial_.score = {};
  numas_.clear();
  islands_.clear();
}

// The group where they fit most tightly; if none has enough, the fullest ones first.
void Chooser::take_from(const Range& range, std::int64_t wanted, const std::string* only) {
  while (wanted > 0) {
    std::size_t chosen = range.last;
    for (std::size_t group = range.first; group < range.last; ++group) {
      bool can = is_usable(group) && (*shape_)[group] > 0 && trial_.take[group] == 0 &&
                 (only == nullptr || *only == (*groups_)[group].island);
      if (can && (chosen == range.last || is_tighter(group, chosen, wanted))) chosen = group;
    }
    ZED_ASSERT(chosen != range.last);
    trial_.take[chosen] = std::min(wanted, (*shape_)[chosen]);
    wanted -= trial_.take[chosen];
    touch((*groups_)[chosen], trial_.take[chosen]);
  }
}

bool Chooser::is_tighter(std::size_t group, std::size_t than, std::int64_t wanted) const {
  std::int64_t a = (*shape_)[group];
  std::int64_t b = (*shape_)[than];
  if ((a >= wanted) != (b >= wanted)) return a >= wanted;
  // Several belong on an island; one that is alone had better leave it to them.
  bool joined = !(*groups_)[group].island.empty();
  if (joined == (*groups_)[than].island.empty()) return joined == (wanted > 1);
  return a >= wanted ? a < b : a > b;
}

/// A GPU without an island is one of its own.
void Chooser::touch(const GpuGroup& group, std::int64_t count) {
  if (std::find(numas_.begin(), numas_.end(), group.numa) == numas_.end())
    numas_.push_back(group.numa);
  if (group.island.empty()) {
    trial_.score.islands += count;
  } else if (std::find(islands_.begin(), islands_.end(), group.island) == islands_.end()) {
    islands_.push_back(group.island);
    trial_.score.islands += 1;
  }
}

/// `trial_.score.leftover` is the sum of what was taken until here.
void Chooser::offer() {
  std::int64_t taken = std::accumulate(trial_.take.begin(), trial_.take.end(), std::int64_t{0});
  std::int64_t free = std::accumulate(shape_->begin(), shape_->end(), std::int64_t{0});
  std::int64_t needed = demand_.total ? demand_.total->value : demand_.each.value * taken;
  trial_.score.gpus = demand_.count ? 0 : taken;
  trial_.score.leftover -= needed;
  trial_.score.spans = static_cast<std::int64_t>(numas_.size());
  trial_.score.remaining = free - taken;
  if (found_ && !(trial_.score < best_->score)) return;
  found_ = true;
  std::swap(*best_, trial_);
}

// Shared: the GPUs that are left with least. Best fit packs cards full before it opens new ones.
bool Chooser::choose_shared() {
  const auto& groups = *groups_;
  std::size_t at = 0;
  enough_.clear();
  for (std::size_t group = 0; group < groups.size(); ++group) {
    if (group > 0 && groups[group].kind.vendor != groups[group - 1].kind.vendor) offer_shared();
    auto count = static_cast<std::size_t>((*shape_)[at++]);
    bool usable = is_usable(group) && !(*demand_.count > 1 && groups[group].kind.instance);
    for (std::size_t i = 0; i < count; ++i, ++at)
      if (usable && (*shape_)[at] >= demand_.each.value) enough_.emplace_back((*shape_)[at], group);
  }
  offer_shared();
  return found_;
}

/// Ends one vendor's GPUs.
void Chooser::offer_shared() {
  const auto& groups = *groups_;
  auto wanted = static_cast<std::size_t>(*demand_.count);
  if (enough_.size() >= wanted) {
    std::sort(enough_.begin(), enough_.end());
    trial_.bytes.clear();
    trial_.score = {};
    numas_.clear();
    islands_.clear();
    for (std::size_t i = 0; i < wanted; ++i) {
      trial_.score.leftover += enough_[i].first - demand_.each.value;
      trial_.bytes.emplace_back(enough_[i].second, enough_[i].first);
      touch(groups[enough_[i].second], 1);
    }
    trial_.score.spans = static_cast<std::int64_t>(numas_.size());
    trial_.score.remaining = static_cast<std::int64_t>(enough_.size() - wanted);
    if (!found_ || trial_.score < best_->score) std::swap(*best_, trial_);
    found_ = true;
  }
  enough_.clear();
}

std::vector<std::string> pick(const Demand& demand, const NodeState& node, const Choice& choice) {
  std::vector<std::string> uuids;
  if (demand.family == Family::none) return uuids;
  auto take = choice.take;
  auto bytes = choice.bytes;
  for (const GpuSlot& slot : node.slots) {
    if (demand.family == Family::whole) {
      if (!slot.is_free() || take[slot.group] == 0) continue;
      --take[slot.group];
    } else {
      auto found =
          std::find(bytes.begin(), bytes.end(), std::make_pair(slot.group, slot.left().value));
      if (found == bytes.end()) continue;
      bytes.erase(found);
    }
    uuids.push_back(slot.uuid);
  }
  return uuids;
}

}  // namespace zed::sched
