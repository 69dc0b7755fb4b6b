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

void order_fork(Machine& m, const DesiredJob& job, const NodeName& node, const Dataset& copy,
                const KnownFork& fork) {
  PlanStep step;
  step.node = node;
  step.action = ApplyFork{copy.name, copy.uuid, fork.fork, job.home, fork.branch_uuid};
  step.expect = m.expect(copy.uuid, copy.timeline());
  step.why = fmt::format("{} of job {}", to_string(fork.fork.why), job.job.name.str());
  std::string need = "fork:" + job.job.id.str() + ":" + node.str() + ":" + fork.fork.timeline.str();
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
    if (!held || *held == job.timeline) continue;
    const KnownFork* fork = next_fork(job, *held);
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

void notice_hand_rollback(Machine& m, const NodeName& node, const DatasetId& uuid) {
  DesiredJob* job = m.desired.find(JobId{uuid.bytes});
  if (job == nullptr || job->is_terminal() || job->home != node || job->timeline.is_none()) return;
  const Dataset* copy = m.fleet.copy(node, uuid);
  if (copy == nullptr || copy->timeline() != job->timeline) return;
  const Snapshot* newest = newest_current_checkpoint(*job, *copy);
  KnownFork fork;
  fork.fork.job = job->job.id;
  fork.fork.timeline = m.next_generation();
  fork.fork.left = job->timeline;
  fork.fork.why = Fork::Why::hand_rollback;
  fork.fork.by = "zfs on " + node.str();
  fork.fork.at = m.now.wall;
  fork.branch_uuid = m.fresh<DatasetId>();
  if (newest != nullptr) {
    fork.fork.from = newest->id;
    fork.from_seq = *newest->seq();
    fork.from_name = newest->name;
  }
  m.record(Forked{fork, job->home});
  m.tell("fork", "job " + job->job.name.str(),
         "was rolled back by hand on " + node.str() + " to @" +
             (newest != nullptr ? newest->name : std::string("its input")));
}

}  // namespace zed::controller
