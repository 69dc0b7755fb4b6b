// Every holder of a job's dataset is brought onto the current timeline and told who the home is.

#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "controller/machine.hpp"
#include "controller/timelines.hpp"
#include "core/hand_rollback.hpp"

namespace zed::controller {
namespace {

bool has_live_attempt(const Machine& m, const NodeName& node, const JobId& job) {
  auto held = m.fleet.view().attempts.find(node);
  if (held == m.fleet.view().attempts.end()) return false;
  for (const Attempt& attempt : held->second)
    if (attempt.job == job && is_live(attempt)) return true;
  return false;
}

bool is_of_a_run(const Snapshot& snapshot) {
  return snapshot.seq() || snapshot.properties.contains(property::closing);
}

/// Returns to a timeline that only losses had left: what the copy did since moves to a branch, and
/// then it is on that timeline again.
Action going_back(const DesiredJob& job, const Dataset& copy, const KnownFork& fork) {
  const Snapshot* from = fork.fork.from ? copy.find(*fork.fork.from) : nullptr;
  if (from != nullptr && from != copy.newest())
    return FollowHome{copy.name, copy.uuid, from->id, fork.branch_uuid};
  // The fork that is undone began from the input: all that was done since goes.
  if (!fork.fork.from && std::any_of(copy.snapshots.begin(), copy.snapshots.end(), is_of_a_run))
    return FollowHome{copy.name, copy.uuid, CheckpointId{}, fork.branch_uuid};
  return SetProperties{copy.name,
                       copy.uuid,
                       {{property::timeline, job.timeline.str()},
                        {property::home, job.home.str()},
                        {property::checkpoint, std::nullopt}}};
}

/// The newest snapshot that both have and that is older than `from` in the one that has that too;
/// nil if there is none.
CheckpointId common_before(const Dataset& copy, const Dataset& holder, const CheckpointId& from) {
  CheckpointId common;
  for (const Snapshot& snapshot : holder.snapshots) {
    if (snapshot.id == from) break;
    if (copy.find(snapshot.id) != nullptr) common = snapshot.id;
  }
  return common;
}

/// What goes if no node can tell: a `keep`, or a person, may have ended the fork's checkpoint on
/// this copy and left newer ones. Their numbers say so. Nothing if the copy is only behind.
std::optional<CheckpointId> common_by_number(const Dataset& copy, const KnownFork& fork) {
  CheckpointId common;
  bool is_beyond = false;
  for (const Snapshot& snapshot : copy.snapshots) {
    auto seq = snapshot.seq();
    if (seq && *seq <= fork.from_seq && !is_beyond) common = snapshot.id;
    is_beyond = is_beyond || (seq && *seq > fork.from_seq);
  }
  return is_beyond ? std::optional(common) : std::nullopt;
}

/// A copy without the fork's checkpoint may be behind it, or hold what came after it. A node that
/// has it can tell, else the numbers of the checkpoints; what is not older is set aside first.
std::optional<FollowHome> setting_aside(const Machine& m, const Dataset& copy,
                                        const KnownFork& fork, const NodeName& node) {
  if (!fork.fork.from || copy.find(*fork.fork.from) != nullptr || copy.snapshots.empty())
    return std::nullopt;
  for (const NodeName& other : m.fleet.ready_holders(copy.uuid)) {
    const Dataset& held = *m.fleet.copy(other, copy.uuid);
    if (other == node || held.find(*fork.fork.from) == nullptr) continue;
    CheckpointId common = common_before(copy, held, *fork.fork.from);
    if (common == copy.newest()->id) return std::nullopt;
    return FollowHome{copy.name, copy.uuid, common, fork.branch_uuid};
  }
  auto common = common_by_number(copy, fork);
  if (!common) return std::nullopt;
  return FollowHome{copy.name, copy.uuid, *common, fork.branch_uuid};
}

bool leads_back(const KnownFork& fork) {
  return fork.fork.timeline < fork.fork.left;
}

const KnownFork* last_fork(const DesiredJob& job) {
  return job.forks.empty() ? nullptr : &job.forks.back();
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
  } else if (auto aside = setting_aside(m, copy, fork, node)) {
    step.action = *aside;
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

namespace {

/// "<timeline>@<checkpoint id>" or "<timeline>@start", as agents write lineage.
std::optional<KnownFork> fork_of(const std::string& entry, const Dataset& copy) {
  const std::size_t at = entry.find('@');
  if (at == std::string::npos) return std::nullopt;
  auto timeline = Timeline::parse(entry.substr(0, at));
  if (!timeline) return std::nullopt;
  KnownFork known;
  known.fork.timeline = *timeline;
  known.fork.why = Fork::Why::rollback;  // which never lets the timeline that was left succeed
  known.fork.by = "a former controller";
  const std::string from = entry.substr(at + 1);
  if (from == "start") return known;
  auto id = CheckpointId::parse(from);
  const Snapshot* snapshot = id ? copy.find(*id) : nullptr;
  if (snapshot == nullptr || !snapshot->seq()) return std::nullopt;
  known.fork.from = *id;
  known.from_seq = *snapshot->seq();
  known.from_name = snapshot->name;
  return known;
}

/// Forks that this journal does not know and a home has carried out: the controller before us
/// decided them, and their records did not reach us. They are ours from now on.
bool adopt_forks(Machine& m, DesiredJob& job, const NodeName& node, const Dataset& copy) {
  const Timeline held = *copy.timeline();
  if (job.is_terminal() || copy.property(property::home) != node.str() ||
      held <= job.last_generation || held.term > m.term)
    return false;
  std::vector<KnownFork> forks;
  for (const std::string& entry : split(copy.property(property::lineage), ',')) {
    auto timeline = Timeline::parse(entry.substr(0, entry.find('@')));
    if (!timeline || *timeline <= job.last_generation) continue;
    auto fork = fork_of(entry, copy);
    if (!fork) return false;
    forks.push_back(std::move(*fork));
  }
  if (forks.empty() || forks.back().fork.timeline != held) return false;
  for (KnownFork& fork : forks) {
    fork.fork.job = job.job.id;
    fork.fork.left = job.timeline;
    fork.fork.at = m.now.wall;
    fork.branch_uuid = m.fresh<DatasetId>();
    m.record(Forked{fork, node});
  }
  m.tell("fork", "job " + job.job.name.str(),
         "its timeline on " + node.str() + ", begun by a former controller, was adopted");
  return true;
}

}  // namespace

namespace {

/// A copy that went back to its home's history has no timeline (agent: FollowHome). A fork gives it
/// the current one; a job that was never forked has only its first.
void name_first_timeline(Machine& m, const DesiredJob& job, const NodeName& node,
                         const Dataset& copy) {
  PlanStep step;
  step.node = node;
  step.action =
      SetProperties{copy.name,
                    copy.uuid,
                    {{property::timeline, job.timeline.str()}, {property::home, job.home.str()}}};
  step.expect = m.expect(copy.uuid);
  step.why = "the copy follows job " + job.job.name.str();
  std::string need = "first-timeline:" + job.job.id.str() + ":" + node.str();
  m.steps.want(need, job.job.id, {step}, m.fleet, m.now.monotonic, m.ids, m.out);
}

}  // namespace

void follow_forks(Machine& m, DesiredJob& job) {
  if (job.timeline.is_none()) return;
  for (const NodeName& node : m.fleet.ready_holders(job.dataset_uuid())) {
    const Dataset& copy = *m.fleet.copy(node, job.dataset_uuid());
    auto held = copy.timeline();
    if (held == job.timeline) continue;
    // A copy that went back to its home's history has none (agent: FollowHome).
    const KnownFork* fork = held ? next_fork(job, *held) : last_fork(job);
    if (fork == nullptr && held) {
      if (adopt_forks(m, job, node, copy)) return;
      // Begun by a controller that was cut off, and overtaken: what it brought is set aside.
      if (*held < job.timeline) fork = last_fork(job);
    }
    if (fork == nullptr) {
      if (!held) name_first_timeline(m, job, node, copy);
      if (held) tell_strange_timeline(m, job, node, *held);
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

/// The newest checkpoint of the current timeline that was there when somebody rolled back: a job
/// may have committed once more before it was stopped.
const Snapshot* checkpoint_gone_back_to(const DesiredJob& job, const Dataset& copy) {
  const std::string to = copy.property(property::reverted);
  const Snapshot* target = to.empty() ? nullptr : copy.find(to);
  if (target == nullptr) return newest_current_checkpoint(job, copy);
  Dataset then;
  then.snapshots.assign(copy.snapshots.data(), target + 1);
  const Snapshot* newest = newest_current_checkpoint(job, then);
  return newest != nullptr ? copy.find(newest->id) : nullptr;
}

}  // namespace

void notice_hand_rollback(Machine& m, DesiredJob& job) {
  if (job.is_terminal() || job.home.empty() || !m.fleet.is_ready(job.home)) return;
  const Dataset* copy = m.fleet.copy(job.home, job.dataset_uuid());
  if (copy == nullptr || copy->timeline() != job.timeline || !was_rolled_back_by_hand(*copy) ||
      copy->property(property::home) != job.home.str())
    return;
  const Snapshot* newest = checkpoint_gone_back_to(job, *copy);
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
