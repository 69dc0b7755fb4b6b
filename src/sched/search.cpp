#include "sched/search.hpp"

#include <algorithm>

#include "base/enum.hpp"
#include "base/text.hpp"
#include "sched/match.hpp"
#include "sched/place.hpp"

namespace zed::sched {
namespace {

std::string words_of(const Demand& demand, std::size_t tier) {
  if (tier == demand.wishes.size()) return "no preference could be met";
  const Wish& wish = demand.wishes[tier];
  std::string list = tier < demand.request.job.prefer.size() ? "prefer " : "fallback ";
  return list + std::string(to_string(wish.kind)) + " " + wish.value;
}

std::string words_of_data(Bytes cost) {
  return cost == Bytes{} ? "data is there" : show(cost) + " to move";
}

}  // namespace

bool Best::is_beaten_by(Bytes cost_of, const Score& score, const NodeName& name) const {
  if (node == nullptr) return true;
  if (cost_of != cost) return cost_of < cost;
  if (score != choice.score) return score < choice.score;
  return name < node->name;
}

bool accepts(const Demand& demand, const NodeState& node, Bytes cost) {
  if (!node.takes_jobs || node.memory < demand.ram || node.pool_free < demand.disk(cost))
    return false;
  if (demand.request.only && *demand.request.only != node.name) return false;
  const auto& exclusions = demand.request.exclusions;
  return std::none_of(exclusions.begin(), exclusions.end(),
                      [&](const Exclusion& exclusion) { return exclusion.node == node.name; });
}

Shape shape_of(Family family, const NodeState& node) {
  switch (family) {
  case Family::none: return plain_shape(node);
  case Family::whole: return whole_shape(node);
  case Family::shared: return shared_shape(node);
  }
  return {};
}

Placement placement_of(const Demand& demand, const Best& best, std::size_t tier) {
  Placement placement;
  placement.node = best.node->name;
  placement.gpus = pick(demand, *best.node, best.choice);
  placement.tier = static_cast<std::int64_t>(tier);
  std::vector<std::string> reasons;
  if (!demand.wishes.empty()) reasons.push_back(words_of(demand, tier));
  if (!demand.request.inputs.empty()) reasons.push_back(words_of_data(best.cost));
  if (demand.family != Family::none)
    reasons.push_back("leaves " + show(Bytes{best.choice.score.leftover}) + " of VRAM unused");
  if (reasons.empty()) reasons.push_back("needs no GPU; least is running there");
  placement.why = join(reasons, "; ");
  return placement;
}

Reservation reservation_of(const PlaceRequest& request, const Placement& placement) {
  const Requirement& r = request.job.requirement;
  bool share = is_shared(r);
  return {placement.node, request.job.id, placement.gpus, share,
          share ? bounded(*r.vram) : Bytes{}};
}

}  // namespace zed::sched
