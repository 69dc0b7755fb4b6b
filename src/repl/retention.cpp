#include "repl/retention.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <map>

#include "base/json.hpp"
#include "base/text.hpp"

namespace zed::repl {
namespace {

const std::string* property_of(const Snapshot& snapshot, const std::string& name) {
  auto found = snapshot.properties.find(name);
  return found == snapshot.properties.end() ? nullptr : &found->second;
}

std::optional<double> number_in(const std::string& text) {
  if (text.empty()) return std::nullopt;
  char* end = nullptr;
  double number = std::strtod(text.c_str(), &end);
  if (end != text.c_str() + text.size() || !std::isfinite(number)) return std::nullopt;
  return number;
}

bool is_closing(const Snapshot& snapshot) {
  return property_of(snapshot, property::closing) != nullptr;
}

/// Neither a checkpoint nor a closing snapshot: a person's.
bool is_by_hand(const Snapshot& snapshot) {
  return !snapshot.seq() && !is_closing(snapshot);
}

class Keeper {
public:
  Keeper(const Dataset& dataset, const Retention& retention) : dataset_(dataset), r_(retention) {
    for (const Snapshot& snapshot : dataset.snapshots)
      if (snapshot.seq()) checkpoints_.push_back(&snapshot);
    std::sort(checkpoints_.begin(), checkpoints_.end(), [](const Snapshot* a, const Snapshot* b) {
      return *a->seq() > *b->seq();  // newest first; equal ones are the older of two timelines
    });
  }

  std::set<CheckpointId> run() {
    keep_always();
    keep_last();
    keep_best();
    keep_every();
    return std::move(kept_);
  }

private:
  void keep_always() {
    kept_ = fork_points(dataset_);
    kept_.insert(dataset_.snapshots.back().id);
    if (!checkpoints_.empty()) kept_.insert(checkpoints_.front()->id);
    const Snapshot* closing = nullptr;
    for (const Snapshot& snapshot : dataset_.snapshots) {
      if (is_by_hand(snapshot) || property_of(snapshot, "pinned") != nullptr)
        kept_.insert(snapshot.id);
      if (is_closing(snapshot)) closing = &snapshot;
      keep_parent_on_another_timeline(snapshot);
    }
    if (closing != nullptr) kept_.insert(closing->id);
  }

  void keep_parent_on_another_timeline(const Snapshot& snapshot) {
    const std::string* text = property_of(snapshot, property::parent);
    auto id = text != nullptr ? CheckpointId::parse(*text) : std::nullopt;
    const Snapshot* parent = id ? dataset_.find(*id) : nullptr;
    if (parent != nullptr && parent->timeline() != snapshot.timeline()) kept_.insert(parent->id);
  }

  void keep_last() {
    if (!r_.last) return;
    auto count = static_cast<std::size_t>(std::max<std::int64_t>(0, *r_.last));
    for (std::size_t i = 0; i < checkpoints_.size() && i < count; ++i)
      kept_.insert(checkpoints_[i]->id);
  }

  void keep_best() {
    if (!r_.best) return;
    std::vector<std::pair<double, const Snapshot*>> ranked;
    double sign = r_.mode == Retention::Mode::min ? 1 : -1;
    for (const Snapshot* checkpoint : checkpoints_)
      if (auto value = metric_of(*checkpoint, r_.metric))
        ranked.emplace_back(sign * *value, checkpoint);
    // Stable: of equal ones the newer stays.
    std::stable_sort(ranked.begin(), ranked.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    auto count = static_cast<std::size_t>(std::max<std::int64_t>(0, *r_.best));
    for (std::size_t i = 0; i < ranked.size() && i < count; ++i)
      kept_.insert(ranked[i].second->id);
  }

  void keep_every() {
    if (!r_.every || *r_.every <= 0) return;
    for (const Snapshot* checkpoint : checkpoints_)
      if (*checkpoint->seq() % static_cast<std::uint64_t>(*r_.every) == 0)
        kept_.insert(checkpoint->id);
  }

  const Dataset& dataset_;
  const Retention& r_;
  std::vector<const Snapshot*> checkpoints_;
  std::set<CheckpointId> kept_;
};

}  // namespace

std::optional<double> metric_of(const Snapshot& snapshot, const std::string& metric) {
  if (const std::string* text = property_of(snapshot, metric)) return number_in(*text);
  const std::string* all = property_of(snapshot, property::metrics);
  if (all == nullptr) return std::nullopt;
  auto parsed = parse_json(*all);
  const Value* value = parsed ? parsed->find(metric) : nullptr;
  if (value == nullptr) return std::nullopt;
  if (const double* number = value->as_double())
    return std::isfinite(*number) ? std::optional(*number) : std::nullopt;
  if (const std::int64_t* whole = value->as_int()) return static_cast<double>(*whole);
  return std::nullopt;
}

std::set<CheckpointId> fork_points(const Dataset& dataset) {
  std::set<CheckpointId> points;
  for (const std::string& fork : split(dataset.property(property::lineage), ',')) {
    std::size_t at = fork.rfind('@');
    if (at == std::string::npos) continue;
    if (auto id = CheckpointId::parse(std::string_view(fork).substr(at + 1))) points.insert(*id);
  }
  return points;
}

std::vector<Doomed> to_destroy(const Dataset& dataset, const Retention& retention,
                               const std::set<CheckpointId>& protected_ids) {
  std::vector<Doomed> doomed;
  if (retention.keeps_all() || dataset.snapshots.empty()) return doomed;
  std::set<CheckpointId> kept = Keeper(dataset, retention).run();
  for (const Snapshot& snapshot : dataset.snapshots)
    if (!kept.contains(snapshot.id) && !protected_ids.contains(snapshot.id))
      doomed.push_back({snapshot.id, snapshot.name, snapshot.used});
  return doomed;
}

}  // namespace zed::repl
