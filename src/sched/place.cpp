#include "sched/place.hpp"

#include <algorithm>

#include "sched/index_state.hpp"

namespace zed::sched {
namespace {

/// A node that is looked at by itself: all of them without an index; with one, those that the
/// request names (data there, a wish, a reservation).
struct Candidate {
  const NodeState* node = nullptr;
  const ClassFit* fit = nullptr;
  Bytes cost;
  Shape shape;
};

class Search {
public:
  explicit Search(const Demand& demand) : demand_(demand), chooser_(demand) {}

  void consider(const Candidate& candidate, std::size_t tier) {
    const NodeState& node = *candidate.node;
    if (!demand_.likes(tier, node.name, *node.node_class)) return;
    if (!chooser_.choose(*node.node_class, *candidate.fit, candidate.shape, tier, trial_)) return;
    if (best_.is_beaten_by(candidate.cost, trial_.score, node.name)) accept(node, candidate.cost);
  }

  /// Nodes of one bucket cost and score the same: only the first by name matters.
  void consider(const BucketKey& key, const Bucket& bucket, const NodeClass& node_class,
                const ClassFit& fit, const std::vector<const NodeState*>& apart, std::size_t tier) {
    Bytes cost = demand_.input_size;
    bool by_node = tier < demand_.wishes.size() && demand_.wishes[tier].kind == Wish::Kind::node;
    if (by_node || !demand_.likes(tier, {}, node_class)) return;
    if (level_of(demand_.ram) > key.ram_level || level_of(demand_.disk(cost)) > key.disk_level)
      return;
    if (!chooser_.choose(node_class, fit, key.shape, tier, trial_)) return;
    for (const NodeState* node : bucket) {
      if (!best_.is_beaten_by(cost, trial_.score, node->name)) return;
      bool is_apart = std::binary_search(apart.begin(), apart.end(), node);
      if (!is_apart && accepts(demand_, *node, cost)) return accept(*node, cost);
    }
  }

  const Best& best() const { return best_; }

private:
  void accept(const NodeState& node, Bytes cost) {
    best_.node = &node;
    best_.cost = cost;
    std::swap(best_.choice, trial_);
  }

  const Demand& demand_;
  Chooser chooser_;
  Choice trial_;
  Best best_;
};

std::optional<Placement> best_of(const Demand& demand, const std::vector<Candidate>& candidates) {
  for (std::size_t tier = 0; tier <= demand.wishes.size(); ++tier) {
    Search search(demand);
    for (const Candidate& candidate : candidates)
      search.consider(candidate, tier);
    if (search.best().node != nullptr) return placement_of(demand, search.best(), tier);
  }
  return std::nullopt;
}

/// One placement over the index.
class IndexedSearch {
public:
  IndexedSearch(const IndexState& index, const PlaceRequest& request)
      : index_(index), demand_(request) {}

  std::optional<Placement> run() {
    if (demand_.request.only) {
      add(*demand_.request.only);
      return best_of(demand_, candidates_);
    }
    set_apart();
    for (std::size_t tier = 0; tier <= demand_.wishes.size(); ++tier) {
      Search search(demand_);
      for (const Candidate& candidate : candidates_)
        search.consider(candidate, tier);
      for (const auto& [key, bucket] : index_.buckets(demand_.family))
        search.consider(key, bucket, *index_.classes()[key.class_id], fit(key.class_id), apart_,
                        tier);
      if (search.best().node != nullptr) return placement_of(demand_, search.best(), tier);
    }
    return std::nullopt;
  }

private:
  void set_apart() {
    std::set<NodeName> names;
    for (const InputData& input : demand_.request.inputs)
      for (const auto& part : input.missing)
        names.insert(part.first);
    for (const NodeName& wished : demand_.wish_nodes)
      if (!wished.empty()) names.insert(wished);
    for (const Reservation& reservation : demand_.request.reservations)
      names.insert(reservation.node);
    for (const NodeName& name : names)
      add(name);
    std::sort(apart_.begin(), apart_.end());
  }

  void add(const NodeName& name) {
    const NodeState* node = index_.find(name);
    if (node == nullptr) return;
    apart_.push_back(node);
    const auto& reservations = demand_.request.reservations;
    bool is_reserved =
        std::any_of(reservations.begin(), reservations.end(),
                    [&](const Reservation& reservation) { return reservation.node == name; });
    std::size_t class_id = index_.class_id(*node);
    if (is_reserved) {
      overlays_.push_back(std::make_unique<NodeState>(index_.with(name, reservations)));
      node = overlays_.back().get();
    }
    Bytes cost = demand_.data_cost(name);
    if (accepts(demand_, *node, cost))
      candidates_.push_back({node, &fit(class_id), cost, shape_of(demand_.family, *node)});
  }

  const ClassFit& fit(std::size_t class_id) {
    if (fits_.empty()) fits_.resize(index_.classes().size());
    auto& known = fits_[class_id];
    if (!known) known = std::make_unique<ClassFit>(fit_class(demand_, *index_.classes()[class_id]));
    return *known;
  }

  const IndexState& index_;
  Demand demand_;
  std::vector<const NodeState*> apart_;
  std::vector<Candidate> candidates_;
  std::vector<std::unique_ptr<NodeState>> overlays_;
  std::vector<std::unique_ptr<ClassFit>> fits_;
};

}  // namespace

std::optional<Placement> place(const Index& index, const PlaceRequest& request) {
  return IndexedSearch(index.state(), request).run();
}

PlacementResult place(const FleetView& view, const PlaceRequest& request) {
  static const std::vector<Attempt> none;
  Demand demand(request);
  std::vector<NodeState> nodes;
  std::vector<ClassFit> fits;
  std::vector<Candidate> candidates;
  nodes.reserve(view.nodes.size());
  fits.reserve(view.nodes.size());
  for (const auto& [name, node] : view.nodes) {
    auto attempts = view.attempts.find(name);
    auto node_class = std::make_shared<const NodeClass>(class_of(node));
    nodes.push_back(state_of(node, node_class,
                             attempts == view.attempts.end() ? none : attempts->second,
                             request.reservations));
    fits.push_back(fit_class(demand, *node_class));
    Bytes cost = demand.data_cost(name);
    if (accepts(demand, nodes.back(), cost))
      candidates.push_back(
          {&nodes.back(), &fits.back(), cost, shape_of(demand.family, nodes.back())});
  }
  if (auto placement = best_of(demand, candidates)) return *placement;
  return explain(view, request);
}

}  // namespace zed::sched
