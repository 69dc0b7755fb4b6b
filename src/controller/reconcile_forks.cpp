// Every holder of a job's dataset is brought onto the current timeline and told who the home is.

#include <fmt/format.h>

#include "controller/machine.hpp"
#include "controller/timelines.hpp"

namespace zed::controller {
namespace {

bool has_live_attempt(const Machine& m, const NodeName& node, const JobId& job) {
  auto held = m.fleet.view().attempts.find(node);
  if (held == m.fleet.view().attempts.end()) return false;
  for (const Attempt& attempt : held->second)
    if (attempt.job == job && is_live(attempt)) return true;
  return false;
}

/// Returns to a timeline that only losses had left: what the copy did since moves to a branch, and
/// then it is on that timeline again.
Action going_back(const DesiredJob& job, const Dataset& copy, const KnownFork& fork) {
  const Snapshot* from = fork.fork.from ? copy.find(*fork.fork.from) : nullptr;
  if (from != nullptr && from != copy.newest())
    return FollowHome{copy.name, copy.uuid, from->id, fork.branch_uuid};
  return SetProperties{copy.name,
                       copy.uuid,
                       {{property::timeline, job.timeline.str()},
                        {property::home, job.home.str()},
                        {property::checkpoint, std::nullopt}}};
}

bool leads_back(const KnownFork& fork) {
  return fork.fork.timeline < fork.fork.left;
}

/// A home that lacks the checkpoint cannot begin there. It joins the new timeline as a replica of a
/// node that has it, is brought up to it, and then becomes the home (reconcile_start.cpp).
std::optional<NodeName> home_for_now(const Machine& m, const DesiredJob& job, const NodeName& node,
                                     const Dataset& copy, const Fork& fork) {
  if (node != job.home || !fork.from || copy.find(*fork.from) != nullptr) return job.home;
  for (const NodeName& holder : m.fleet.ready_holders(copy.uuid))
    if (holder != node && m.fleet.copy(holder, copy.uuid)->find(*fork.from) != nullptr)
      return holder;
  return std::nullopt;
}

void order_fork(Machine& m, const DesiredJob& job, const NodeName& node, const Dataset& copy,
                const KnownFork& fork) {
  PlanStep step;
  step.node = node;
  if (leads_back(fork)) {
    step.action = going_back(job, copy, fork);
  } else {
    auto home = home_for_now(m, job, node, copy, fork.fork);
    if (!home) return;
    step.action = ApplyFork{copy.name, copy.uuid, fork.fork, *home, fork.branch_uuid};
  }
  step.expect = m.expect(copy.uuid, copy.timeline());
  step.why = fmt::format("{} of job {}", to_string(fork.fork.why), job.job.name.str());
  std::string need = "fork:" + job.job.id.str() + ":" + node.str() + ":" +
                     fork.fork.timeline.str() + ":" + std::string(tag_of(step.action));
  m.steps.want(need, job.job.id, {step}, m.fleet, m.now.monotonic, m.ids, m.out);
}

/// A copy on a timeline that no fork here ever left: it was made by somebody unknown.
void tell_strange_timeline(Machine& m, const DesiredJob& job, const NodeName& node,
                           const Timeline& held) {
  m.tell_once("strange " + job.job.id.str() + node.str() + held.str(), "notice",
              "job " + job.job.name.str(),
              "the copy on " + node.str() + " is on a timeline that the journal does not know (" +
                  held.brief() + "); it is left alone");
}

}  // namespace

void follow_forks(Machine& m, DesiredJob& job) {
  if (job.forks.empty() || job.timeline.is_none()) return;
  for (const NodeName& node : m.fleet.ready_holders(job.dataset_uuid())) {
    const Dataset& copy = *m.fleet.copy(node, job.dataset_uuid());
    auto held = copy.timeline();
    if (held == job.timeline) continue;
    // A copy that went back to its home's history has none (agent: FollowHome).
    const KnownFork* fork = held ? next_fork(job, *held) : &job.forks.back();
    if (fork == nullptr) {
      tell_strange_timeline(m, job, node, *held);
      continue;
    }
    // Its own stop comes first (reconcile_jobs.cpp); a closing snapshot ends the old timeline.
    if (has_live_attempt(m, node, job.job.id)) continue;
    m.steps.cancel(copy_need(copy.uuid, node), m.out);
    order_fork(m, job, node, copy, *fork);
  }
}

void set_homes(Machine& m, DesiredJob& job) {
  if (job.home.empty()) return;
  for (const NodeName& node : m.fleet.ready_holders(job.dataset_uuid())) {
    const Dataset& copy = *m.fleet.copy(node, job.dataset_uuid());
    if (copy.timeline() != job.timeline || copy.property(property::home) == job.home.str() ||
        has_live_attempt(m, node, job.job.id))
      continue;
    if (node == job.home && !has_beginning(job, copy)) continue;  // it is being brought there
    PlanStep step;
    step.node = node;
    bool moves = job.moved_with && copy.newest() != nullptr && copy.newest()->id == *job.moved_with;
    if (moves)
      step.action = SetHome{copy.name,    copy.uuid,           job.home,
                            job.timeline, job.last_generation, *job.moved_with};
    else
      step.action = SetProperties{copy.name, copy.uuid, {{property::home, job.home.str()}}};
    step.expect = m.expect(copy.uuid, copy.timeline());
    step.why = "the home of job " + job.job.name.str() + " is " + job.home.str();
    std::string need = "home:" + job.job.id.str() + ":" + node.str() + ":" + job.home.str();
    m.steps.want(need, job.job.id, {step}, m.fleet, m.now.monotonic, m.ids, m.out);
  }
}

namespace {

/// Whether the checkpoint that the dataset says it is at has gone: somebody rolled back or
/// destroyed by hand. Its agent judges by the same (it starts nothing until the fork is recorded).
bool was_rolled_back(const Dataset& copy) {
  std::string at = copy.property(property::checkpoint);
  return !at.empty() && copy.find(at) == nullptr && copy.property(property::intent).empty();
}

}  // namespace

void notice_hand_rollback(Machine& m, DesiredJob& job) {
  if (job.is_terminal() || job.home.empty() || !m.fleet.is_ready(job.home)) return;
  const Dataset* copy = m.fleet.copy(job.home, job.dataset_uuid());
  if (copy == nullptr || copy->timeline() != job.timeline || !was_rolled_back(*copy) ||
      copy->property(property::home) != job.home.str())
    return;
  const Snapshot* newest = newest_current_checkpoint(job, *copy);
  KnownFork fork;
  fork.fork.job = job.job.id;
  fork.fork.timeline = m.next_generation();
  fork.fork.left = job.timeline;
  fork.fork.why = Fork::Why::hand_rollback;
  fork.fork.by = "zfs on " + job.home.str();
  fork.fork.at = m.now.wall;
  fork.branch_uuid = m.fresh<DatasetId>();
  if (newest != nullptr) {
    fork.fork.from = newest->id;
    fork.from_seq = *newest->seq();
    fork.from_name = newest->name;
  }
  m.record(Forked{fork, job.home});
  m.tell("fork", "job " + job.job.name.str(),
         "was rolled back by hand on " + job.home.str() + " to @" +
             (newest != nullptr ? newest->name : std::string("its input")));
}

}  // namespace zed::controller
