#include "controller/steps.hpp"

#include <algorithm>

namespace zed::controller {
namespace {

// An order that was carried out shows in the view within this, or is given again.
constexpr Millis settling = seconds(2);
constexpr Millis first_pause = seconds(1);
constexpr Millis longest_pause = seconds(60);
constexpr Millis forget_after = minutes(10);

bool is_transfer(const PlanStep& step) {
  return std::holds_alternative<SendSnapshot>(step.action) ||
         std::holds_alternative<ReceiveSnapshot>(step.action);
}

bool is_passed_on(const std::vector<PlanStep>& steps) {
  return std::any_of(steps.begin(), steps.end(), [](const PlanStep& step) {
    const auto* send = std::get_if<SendSnapshot>(&step.action);
    return send != nullptr && send->through;
  });
}

Millis pause_after(std::int64_t failures) {
  std::int64_t doublings = std::min<std::int64_t>(failures - 1, 6);
  return std::min(Millis{first_pause.value << doublings}, longest_pause);
}

}  // namespace

bool Steps::would_order(const std::string& need, const std::vector<PlanStep>& steps,
                        const Fleet& fleet, Instant now) const {
  if (steps.empty() || live_.contains(need) || is_paused(need, steps, now)) return false;
  // All or none: half a transfer would wait in vain.
  return std::all_of(steps.begin(), steps.end(),
                     [&](const PlanStep& step) { return fleet.link_of(step.node).has_value(); });
}

bool Steps::want(const std::string& need, const JobId& owner, std::vector<PlanStep> steps,
                 const Fleet& fleet, Instant now, IdSource& ids, std::vector<Effect>& out) {
  if (!would_order(need, steps, fleet, now)) return false;
  const bool passed_on = is_passed_on(steps);
  for (PlanStep& step : steps) {
    if (step.id.is_nil()) step.id = StepId{ids.next()};
    LinkId link = *fleet.link_of(step.node);
    if (is_transfer(step)) ++transfers_[step.node];
    live_[need].push_back(step.id);
    out.push_back(SayToAgent{link, StepOrder{step}});
    steps_.emplace(step.id, LiveStep{step, need, owner, link, now, {}, passed_on});
  }
  return true;
}

// A success pauses only what it did: a replica that is many snapshots behind gets the next one at
// once.
bool Steps::is_paused(const std::string& need, const std::vector<PlanStep>& steps,
                      Instant now) const {
  auto found = pauses_.find(need);
  if (found == pauses_.end() || found->second.until <= now) return false;
  const std::string& done = found->second.done;
  return found->second.error || std::any_of(steps.begin(), steps.end(), [&](const PlanStep& step) {
           return describe(step.action) == done;
         });
}

std::optional<NeedOutcome> Steps::result(const StepResult& result, Instant now,
                                         std::vector<Effect>& out) {
  auto found = steps_.find(result.step);
  if (found == steps_.end()) return std::nullopt;
  LiveStep live = found->second;
  drop(result.step, false, out);
  auto others = live_.find(live.need);
  if (!result.error && others != live_.end()) return std::nullopt;  // the other half goes on
  Pause& pause = pauses_[live.need];
  pause.owner = live.owner;
  if (result.error) {
    cancel(live.need, out);
    pause.error = result.error;
    pause.until = now + pause_after(++pause.failures);
  } else {
    pause = Pause{0, now + settling, live.owner, std::nullopt, describe(live.step.action)};
  }
  wakes_.emplace(pause.until, live.need);
  return NeedOutcome{live.need,      live.owner,         live.step,
                     result.error,   result.snapshot,    result.moved,
                     pause.failures, now - live.ordered, live.passed_on};
}

void Steps::progress(const TransferProgress& progress) {
  auto found = steps_.find(progress.step);
  if (found != steps_.end()) found->second.progress = progress;
}

std::set<JobId> Steps::link_gone(LinkId link, std::vector<Effect>& out) {
  std::set<std::string> needs;
  std::set<JobId> owners;
  for (const auto& [id, live] : steps_)
    if (live.link == link) {
      needs.insert(live.need);
      owners.insert(live.owner);
    }
  for (const std::string& need : needs) {
    std::vector<StepId> ids = live_[need];
    for (const StepId& id : ids)
      drop(id, steps_.at(id).link != link, out);
  }
  return owners;
}

void Steps::cancel(const std::string& need, std::vector<Effect>& out) {
  auto found = live_.find(need);
  if (found == live_.end()) return;
  std::vector<StepId> ids = found->second;
  for (const StepId& id : ids)
    drop(id, true, out);
}

void Steps::sweep(Instant now) {
  std::erase_if(pauses_, [&](const auto& entry) {
    return !live_.contains(entry.first) && entry.second.until + forget_after < now;
  });
}

std::optional<Instant> Steps::pause_of(const std::string& need, Instant now) const {
  auto found = pauses_.find(need);
  if (found == pauses_.end() || !found->second.error || found->second.until <= now)
    return std::nullopt;
  return found->second.until;
}

std::optional<Error> Steps::last_error(const std::string& need) const {
  auto found = pauses_.find(need);
  return found == pauses_.end() ? std::nullopt : found->second.error;
}

std::int64_t Steps::transfers_on(const NodeName& node) const {
  auto found = transfers_.find(node);
  return found == transfers_.end() ? 0 : found->second;
}

std::set<JobId> Steps::woken(Instant now) {
  std::set<JobId> owners;
  while (!wakes_.empty() && wakes_.begin()->first <= now) {
    auto pause = pauses_.find(wakes_.begin()->second);
    if (pause != pauses_.end()) owners.insert(pause->second.owner);
    wakes_.erase(wakes_.begin());
  }
  return owners;
}

void Steps::drop(const StepId& id, bool tell_agent, std::vector<Effect>& out) {
  auto found = steps_.find(id);
  if (found == steps_.end()) return;
  const LiveStep& live = found->second;
  if (tell_agent) out.push_back(SayToAgent{live.link, CancelStep{id}});
  if (is_transfer(live.step)) --transfers_[live.step.node];
  auto need = live_.find(live.need);
  std::erase(need->second, id);
  if (need->second.empty()) live_.erase(need);
  steps_.erase(found);
}

}  // namespace zed::controller
