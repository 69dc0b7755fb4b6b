#include "sched/match.hpp"

#include <algorithm>

#include "sched/judge.hpp"

namespace zed::sched {

bool wants_gpu(const Requirement& r, const Preference& wishes) {
  if (r.gpus) return *r.gpus > 0;
  return r.vram || r.vram_total || !r.gpu.empty() || !r.arch.empty() || r.driver || r.cuda ||
         std::any_of(wishes.begin(), wishes.end(),
                     [](const Wish& wish) { return wish.kind == Wish::Kind::gpu; });
}

bool is_shared(const Requirement& requirement) {
  return requirement.share && requirement.vram.has_value();
}

MatchResult match(const PlaceRequest& request, const Node& node,
                  const std::vector<Attempt>& attempts) {
  Demand demand(request);
  Judgement judgement = judge(demand, node, attempts);
  if (judgement.misses.empty()) return Fit{judgement.count, std::move(judgement.gpus)};
  std::vector<Shortfall> shortfalls;
  for (Miss& miss : judgement.misses)
    shortfalls.push_back(std::move(miss.shortfall));
  return shortfalls;
}

std::vector<NodeReport> match_fleet(const FleetView& view, const Requirement& requirement,
                                    const Preference& wishes) {
  static const std::vector<Attempt> none;
  PlaceRequest request;
  request.job.requirement = requirement;
  request.job.prefer = wishes;
  std::vector<NodeReport> reports;
  for (const auto& [name, node] : view.nodes) {
    auto attempts = view.attempts.find(name);
    MatchResult result =
        match(request, node, attempts == view.attempts.end() ? none : attempts->second);
    NodeReport report;
    report.node = name;
    if (auto* fit = std::get_if<Fit>(&result)) {
      report.now = report.ever = true;
      report.gpus = std::move(fit->gpus);
    } else {
      report.shortfalls = std::move(std::get<std::vector<Shortfall>>(result));
      report.ever = std::all_of(report.shortfalls.begin(), report.shortfalls.end(),
                                [](const Shortfall& shortfall) { return shortfall.for_now; });
    }
    reports.push_back(std::move(report));
  }
  return reports;
}

}  // namespace zed::sched
