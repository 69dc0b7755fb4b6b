// Rollback and resume: what a person decides about timelines.

#include <fmt/format.h>

#include "base/text.hpp"
#include "controller/names.hpp"
#include "controller/operations/checkpoint_name.hpp"
#include "controller/operations/handlers.hpp"
#include "controller/operations/rows.hpp"
#include "controller/place_request.hpp"
#include "controller/timelines.hpp"
#include "sched/match.hpp"
#include "sched/place.hpp"

namespace zed::controller {
namespace {

/// What a fork would do, decided and not yet recorded.
struct Decision {
  KnownFork fork;
  NodeName home;
  std::vector<std::string> left;
  std::string branch;
};

Status may_go_on(const DesiredJob& job) {
  if (!job.is_terminal()) return {};
  const std::string& name = job.job.name.str();
  const bool succeeded = job.outcome->state == JobState::succeeded;
  return fail(ErrorCode::refused,
              "job " + name +
                  (succeeded ? " has succeeded; that never changes" : " was cancelled for good"),
              fmt::format("zedctl dispatch {} --again --from @CHECKPOINT makes a new job that "
                          "begins there",
                          name));
}

Status home_is_there(const Machine& m, const DesiredJob& job, bool force) {
  if (force || job.home.empty() || m.fleet.is_ready(job.home)) return {};
  return fail(ErrorCode::refused,
              fmt::format("node {}, the home of job {}, cannot be reached: what it did since may "
                          "be newer than what is known",
                          job.home.str(), job.job.name.str()),
              "--force goes on elsewhere; what that node has becomes a branch when it returns");
}

/// Where the job goes on: its home, or, if that is away, a free node that can have the checkpoint.
NodeName home_for(const Machine& m, const DesiredJob& job, const NodeName& on,
                  const NodeName& holder) {
  if (!on.empty()) return on;
  if (m.fleet.is_ready(job.home)) return job.home;
  auto placement = sched::place(m.fleet.index(), place_request(m, job));
  return placement ? placement->node : holder;
}

Decision decide(Machine& m, const DesiredJob& job, const std::optional<FoundCheckpoint>& from,
                Fork::Why why, const Asked& asked, const NodeName& on) {
  Decision decision;
  Fork& fork = decision.fork.fork;
  fork.job = job.job.id;
  fork.timeline = m.next_generation();
  fork.left = job.timeline;
  fork.why = why;
  fork.by = asked.by();
  fork.at = m.now.wall;
  decision.home = home_for(m, job, on, from ? from->node : job.home);
  const NodeName& where = from ? from->node : job.home;
  const Dataset* copy = m.fleet.copy(where, job.dataset_uuid());
  if (from && copy != nullptr) {
    fork.from = from->snapshot->id;
    decision.fork.from_name = from->snapshot->name;
    decision.fork.from_seq = seq_at(job, *copy, *from->snapshot);
    decision.left = left_behind(*copy, *from->snapshot);
  } else if (copy != nullptr) {
    for (const Snapshot& snapshot : copy->snapshots)
      if (snapshot.seq()) decision.left.push_back("@" + snapshot.name);
  }
  bool runs = visible_attempt(m, job) != nullptr;
  if (runs || !decision.left.empty())
    decision.branch =
        job.job.dataset.parent() + "/" + branch_leaf(job.job.dataset.leaf(), job.timeline);
  return decision;
}

api::ForkReply reply_of(const Machine& m, const DesiredJob& job, const Decision& decision) {
  api::ForkReply reply;
  reply.job = row_of(m, job);
  reply.from = decision.fork.from_name.empty() ? "start" : "@" + decision.fork.from_name;
  reply.left = decision.left;
  reply.discard = decision.fork.fork.discard;
  if (!reply.discard) reply.branch = decision.branch;
  reply.safe = is_safe(m, job);
  if (!m.has_second()) reply.note = "no second node is up: the decision is on this machine only";
  return reply;
}

void record_fork(Machine& m, const Asked& asked, const DesiredJob& job, Decision& decision) {
  decision.fork.branch_uuid = m.fresh<DatasetId>();
  m.record(Forked{decision.fork, decision.home});
  std::string from = decision.fork.from_name.empty() ? "its input" : "@" + decision.fork.from_name;
  m.tell("fork", "job " + job.job.name.str(),
         fmt::format("{} to {} by {}; {}", to_string(decision.fork.fork.why), from, asked.by(),
                     decision.fork.fork.discard ? "what was newer is destroyed"
                                                : "what was newer is kept as a branch"));
}

void reply_when_safe(const Asked& asked, const JobId& id, Decision decision, std::string note) {
  asked.reply_when_safe(
      safe_when(id),
      [id, decision = std::move(decision), note = std::move(note)](Machine& m) -> Result<Value> {
        api::ForkReply reply = reply_of(m, *m.desired.find(id), decision);
        if (!note.empty()) reply.note = reply.note.empty() ? note : note + "; " + reply.note;
        return api::encode_reply(reply);
      });
}

}  // namespace

void handle(const Asked& asked, const api::Rollback& op) {
  Machine& m = asked.m;
  DesiredJob* job = job_or_refuse(asked, op.job);
  if (job == nullptr) return;
  if (auto may = may_go_on(*job); !may) return asked.refuse(may.error());
  if (auto there = home_is_there(m, *job, op.force); !there) return asked.refuse(there.error());
  auto from = find_checkpoint(m, *job, op.checkpoint);
  if (!from) return asked.refuse(from.error());
  Decision decision = decide(m, *job, *from, Fork::Why::rollback, asked, NodeName{});
  decision.fork.fork.discard = op.discard;
  if (op.dry_run) return asked.reply(reply_of(m, *job, decision));
  const JobId id = job->job.id;
  bool was_stopped = job->wanted == Wanted::stop;
  record_fork(m, asked, *job, decision);
  std::string note;
  if (op.hold) {
    m.record(WantedSet{id, Wanted::stop, asked.by(), "held after a rollback", NodeName{}});
    note = "it is held; zedctl resume " + job->job.name.str() + " lets it go on";
  } else if (was_stopped) {
    note = "it was stopped and stays so; zedctl resume " + job->job.name.str();
  } else {
    m.record(WantedSet{id, Wanted::run, asked.by(), "", job->only});
  }
  reply_when_safe(asked, id, std::move(decision), std::move(note));
}

namespace {

/// The node of `--on`, which must be there and able to hold the job.
Result<NodeName> target_of(const Asked& asked, const DesiredJob& job, const std::string& typed) {
  Machine& m = asked.m;
  if (typed.empty()) return NodeName{};
  ZED_TRY(auto node, find_node(m.desired, m.fleet.view(), typed));
  ZED_CHECK(check_ready(m, node, ErrorCode::refused));
  auto request = place_request(m, job);
  request.only.reset();
  auto result = sched::match(request, *m.fleet.node(node), {});
  if (auto* shortfalls = std::get_if<std::vector<Shortfall>>(&result)) {
    Rejection rejection{{{node, *shortfalls}}, node};
    if (rejection.is_impossible())
      return fail(ErrorCode::unplaceable,
                  "node " + node.str() + " cannot hold job " + job.job.name.str() + ": " +
                      sched::show(rejection),
                  "zedctl why " + job.job.name.str());
  }
  return node;
}

/// Which checkpoint `--from` names; nothing if the job simply goes on.
Result<std::optional<FoundCheckpoint>> beginning_of(const Machine& m, const DesiredJob& job,
                                                    const std::string& from) {
  if (from.empty() || from == "start") return std::optional<FoundCheckpoint>{};
  ZED_TRY(auto found, find_checkpoint(m, job, from));
  auto newest = newest_reachable(m, job);
  if (newest && newest->snapshot->id == found.snapshot->id) return std::optional<FoundCheckpoint>{};
  return std::optional(found);
}

void go_on(const Asked& asked, DesiredJob& job, const NodeName& on) {
  Machine& m = asked.m;
  const JobId id = job.job.id;
  if (job.placed && job.wanted == Wanted::run && (on.empty() || on == job.placed->node) &&
      !m.fleet.is_lost(job.placed->node))
    return asked.refuse(ErrorCode::refused,
                        fmt::format("job {} is {} on {} already", job.job.name.str(),
                                    to_string(state_of(m, job)), job.placed->node.str()),
                        "--from @CHECKPOINT begins at an older one");
  if (!job.is_over() && job.wanted != Wanted::run)
    return asked.refuse(ErrorCode::refused,
                        "job " + job.job.name.str() + " is being stopped at present",
                        "try again when it has");
  m.record(WantedSet{id, Wanted::run, asked.by(), "resumed by " + asked.by(), on});
  asked.audit("job " + job.job.name.str(), "resumed" + (on.empty() ? "" : " on " + on.str()));
  auto newest = newest_reachable(m, job);
  Decision decision;
  if (newest) decision.fork.from_name = newest->snapshot->name;
  reply_when_safe(asked, id, std::move(decision), "");
}

}  // namespace

void handle(const Asked& asked, const api::Resume& op) {
  Machine& m = asked.m;
  DesiredJob* job = job_or_refuse(asked, op.job);
  if (job == nullptr) return;
  if (auto may = may_go_on(*job); !may) return asked.refuse(may.error());
  auto on = target_of(asked, *job, op.on);
  if (!on) return asked.refuse(on.error());
  bool restarts = op.from == "start";
  if (!restarts || !job->home.empty())
    if (auto there = home_is_there(m, *job, op.force || op.from.empty() || restarts); !there)
      return asked.refuse(there.error());
  auto from = beginning_of(m, *job, op.from);
  if (!from) return asked.refuse(from.error());
  if ((!*from && !restarts) || job->timeline.is_none()) return go_on(asked, *job, *on);
  Fork::Why why = restarts ? Fork::Why::restart : Fork::Why::resume_from;
  Decision decision = decide(m, *job, *from, why, asked, *on);
  const JobId id = job->job.id;
  record_fork(m, asked, *job, decision);
  m.record(WantedSet{id, Wanted::run, asked.by(), "resumed by " + asked.by(), *on});
  reply_when_safe(asked, id, std::move(decision), "");
}

}  // namespace zed::controller
