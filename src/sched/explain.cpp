#include <algorithm>
#include <tuple>

#include "base/text.hpp"
#include "sched/judge.hpp"
#include "sched/place.hpp"

namespace zed::sched {
namespace {

/// Smaller is nearer: clauses that never pass first, then all, then how far the worst is off.
std::tuple<std::size_t, std::size_t, double> distance(const std::vector<Miss>& misses) {
  std::size_t hard = 0;
  double by = 0;
  for (const Miss& miss : misses) {
    if (!miss.shortfall.for_now) ++hard;
    by = std::max(by, miss.by);
  }
  return {hard, misses.size(), by};
}

}  // namespace

Rejection explain(const FleetView& view, const PlaceRequest& request) {
  static const std::vector<Attempt> none;
  Demand demand(request);
  Rejection rejection;
  std::optional<std::tuple<std::size_t, std::size_t, double>> nearest;
  for (const auto& [name, node] : view.nodes) {
    auto attempts = view.attempts.find(name);
    Judgement judgement =
        judge(demand, node, attempts == view.attempts.end() ? none : attempts->second);
    auto off = distance(judgement.misses);
    if (!nearest || off < *nearest) {
      nearest = off;
      rejection.nearest = name;
    }
    Refusal refusal{name, {}};
    for (Miss& miss : judgement.misses)
      refusal.shortfalls.push_back(std::move(miss.shortfall));
    rejection.nodes.push_back(std::move(refusal));
  }
  return rejection;
}

std::string show(const Rejection& rejection) {
  if (rejection.nodes.empty()) return "there are no nodes";
  std::vector<std::pair<std::string, std::vector<std::string>>> alike;
  for (const Refusal& refusal : rejection.nodes) {
    std::vector<std::string> clauses;
    for (const Shortfall& shortfall : refusal.shortfalls)
      clauses.push_back(shortfall.constraint + ": wanted " + shortfall.wanted + ", has " +
                        shortfall.had);
    std::string text = join(clauses, "; ");
    auto known = std::find_if(alike.begin(), alike.end(),
                              [&](const auto& entry) { return entry.first == text; });
    if (known == alike.end())
      alike.push_back({text, {refusal.node.str()}});
    else
      known->second.push_back(refusal.node.str());
  }
  std::vector<std::string> lines;
  for (auto& [text, nodes] : alike) {
    std::string who = nodes.size() <= 3 ? join(nodes, ", ") : plural(nodes.size(), "node");
    lines.push_back(who + ": " + text);
  }
  return join(lines, "\n");
}

}  // namespace zed::sched
