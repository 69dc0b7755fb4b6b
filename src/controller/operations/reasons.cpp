#include "controller/operations/reasons.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "controller/operations/rows.hpp"
#include "controller/timelines.hpp"

namespace zed::controller {
namespace {

/// Of a job that nobody asked by itself: what keeps the first of those that want the same.
std::string behind(const Machine& m, const DesiredJob& job) {
  if (!m.pending.contains(job.job.id)) return "";
  if (auto other = awaited(m, job)) return *other;
  const auto first = m.pending.first_like(job.job.id);
  const DesiredJob* head = first ? m.desired.find(*first) : nullptr;
  const auto why = first ? m.waits_for.find(*first) : m.waits_for.end();
  if (head == nullptr || why == m.waits_for.end()) return "";
  return "behind " + head->job.name.str() + ": " + why->second;
}

/// The newest checkpoint that would be left if a node were gone.
const Snapshot* newest_elsewhere(const Machine& m, const DesiredJob& job, const NodeName& gone) {
  const Snapshot* newest = nullptr;
  for (const NodeName& node : m.fleet.ready_holders(job.dataset_uuid())) {
    if (node == gone) continue;
    const Snapshot* found = newest_current_checkpoint(job, *m.fleet.copy(node, job.dataset_uuid()));
    if (found != nullptr && (newest == nullptr || *newest->seq() < *found->seq())) newest = found;
  }
  return newest;
}

/// Its node has not been heard for a while: what is known of the job may be over.
std::optional<std::string> silence(const Machine& m, const DesiredJob& job) {
  const Node* node = job.placed ? m.fleet.node(job.placed->node) : nullptr;
  if (node == nullptr || node->status != NodeStatus::suspect) return std::nullopt;
  std::string text =
      fmt::format("{} has been silent for {}; at {} it counts as lost", node->name.str(),
                  show(Millis{node->silent.value / 1000 * 1000}), show(m.lost_after));
  const Snapshot* newest = newest_elsewhere(m, job, node->name);
  if (newest == nullptr) return text;
  text += job.job.exclusive ? ", and once its lease is over" : ", and where there is room";
  return text + " the job goes on from @" + newest->name;
  return text;
}

/// Its home is to be left, and it cannot.
std::optional<std::string> stuck(const Machine& m, const DesiredJob& job) {
  const auto duty = m.desired.duties.find(job.home);
  if (duty == m.desired.duties.end() || duty->second.duty != Duty::draining) return std::nullopt;
  if (job.only == job.home)
    return job.home.str() +
           " is draining, but the job may run there only, as asked: zedctl resume " +
           job.job.name.str() + " --on NODE moves it";
  const auto waits = m.waits_for.find(job.job.id);
  return waits == m.waits_for.end() ? std::nullopt : std::optional(waits->second);
}

}  // namespace

std::string reason_of(const Machine& m, const DesiredJob& job) {
  if (job.outcome) return job.outcome->reason;
  if (auto text = silence(m, job)) return *text;
  const Attempt* attempt = visible_attempt(m, job);
  const bool heard = attempt != nullptr && !m.fleet.is_lost(job.placed->node);
  if (heard && job.wanted != Wanted::run) return job.wanted_why;
  if (heard && attempt->phase == AttemptPhase::starting && job.job.setup)
    return "setup: " + *job.job.setup;
  if (heard) return stuck(m, job).value_or(job.placed->why);
  const auto waits = m.waits_for.find(job.job.id);
  return waits != m.waits_for.end() ? waits->second : behind(m, job);
}

std::vector<std::string> reasons_of(const Machine& m, const DesiredJob& job) {
  std::vector<std::string> reasons;
  if (std::string first = reason_of(m, job); !first.empty()) reasons.push_back(std::move(first));
  if (!job.outcome && !job.last_exit.empty())
    reasons.push_back("its last attempt ended: " + job.last_exit);
  for (const auto& entry : m.steps.all())
    if (entry.second.owner == job.job.id)
      reasons.push_back("under way on " + entry.second.step.node.str() + ": " +
                        describe(entry.second.step.action));
  if (!job.only.empty()) reasons.push_back("it may run on " + job.only.str() + " only, as asked");
  return reasons;
}

std::optional<std::string> awaited(const Machine& m, const DesiredJob& job) {
  for (const JobName& name : job.job.after) {
    auto named = m.desired.by_name.find(name);
    const DesiredJob* other =
        named == m.desired.by_name.end() ? nullptr : m.desired.find(named->second);
    bool done = other != nullptr && other->outcome && other->outcome->state == JobState::succeeded;
    if (done) continue;
    std::string what = "waits for job " + name.str();
    if (other == nullptr) return what + ", which was not dispatched";
    if (!other->outcome) return what;
    return fmt::format("{}, which is {}: zedctl {}", what, to_string(other->outcome->state),
                       other->is_terminal() ? "dispatch " + name.str() + " --again"
                                            : "resume " + name.str());
  }
  return std::nullopt;
}

}  // namespace zed::controller
