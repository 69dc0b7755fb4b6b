// Stop, cancel, checkpoint now; cordon and drain.

#include <fmt/format.h>

#include "controller/names.hpp"
#include "controller/operations/handlers.hpp"
#include "controller/operations/rows.hpp"

namespace zed::controller {
namespace {

constexpr Millis checkpoint_patience = seconds(60);

void reply_with_row(const Asked& asked, const JobId& id) {
  asked.reply_when_durable([id](Machine& m) -> Result<Value> {
    return api::encode_reply(api::JobReply{row_of(m, *m.desired.find(id))});
  });
}

void want(const Asked& asked, DesiredJob& job, Wanted wanted, std::string_view verb) {
  const JobId id = job.job.id;
  asked.m.record(
      WantedSet{id, wanted, asked.by(), fmt::format("{} by {}", verb, asked.by()), NodeName{}});
  asked.audit("job " + job.job.name.str(), std::string(verb));
  reply_with_row(asked, id);
}

}  // namespace

void handle(const Asked& asked, const api::StopJob& op) {
  DesiredJob* job = job_or_refuse(asked, op.job);
  if (job == nullptr) return;
  if (job->outcome && job->outcome->state == JobState::stopped)
    return reply_with_row(asked, job->job.id);  // done already
  if (job->is_over())
    return asked.refuse(ErrorCode::refused,
                        fmt::format("job {} {} {} already", job->job.name.str(),
                                    job->outcome->state == JobState::cancelled ? "was" : "has",
                                    to_string(job->outcome->state)));
  if (job->wanted == Wanted::cancel)
    return asked.refuse(ErrorCode::refused,
                        "job " + job->job.name.str() + " is being cancelled already");
  want(asked, *job, Wanted::stop, "stopped");
}

void handle(const Asked& asked, const api::CancelJob& op) {
  DesiredJob* job = job_or_refuse(asked, op.job);
  if (job == nullptr) return;
  if (job->outcome && job->outcome->state == JobState::cancelled)
    return reply_with_row(asked, job->job.id);
  if (job->is_terminal())
    return asked.refuse(ErrorCode::refused, "job " + job->job.name.str() +
                                                " has succeeded already; that never changes");
  if (job->is_over()) {  // stopped or failed: nothing runs
    Outcome outcome{JobState::cancelled, "cancelled by " + asked.by(), {}, asked.m.now.wall};
    const JobId id = job->job.id;
    asked.m.record(Finished{id, outcome, std::nullopt, {}});
    asked.audit("job " + job->job.name.str(), "cancelled");
    return reply_with_row(asked, id);
  }
  want(asked, *job, Wanted::cancel, "cancelled");
}

void handle(const Asked& asked, const api::CheckpointJob& op) {
  Machine& m = asked.m;
  DesiredJob* job = job_or_refuse(asked, op.job);
  if (job == nullptr) return;
  const Attempt* attempt = visible_attempt(m, *job);
  bool runs = attempt != nullptr && (attempt->phase == AttemptPhase::running ||
                                     attempt->phase == AttemptPhase::checkpointing);
  if (!runs || !m.fleet.is_connected(job->placed->node))
    return asked.refuse(ErrorCode::refused,
                        fmt::format("job {} does not run: it is {}", job->job.name.str(),
                                    to_string(state_of(m, *job))),
                        "zedctl why " + job->job.name.str());
  const JobId id = job->job.id;
  const NodeName node = job->placed->node;
  PlanStep step;
  step.node = node;
  step.action =
      AskCheckpoint{id, attempt->generation, checkpoint_patience, "asked by " + asked.by()};
  step.expect = m.expect(job->dataset_uuid(), job->timeline);
  step.why = "checkpoint asked by " + asked.by();
  std::string need = fmt::format("checkpoint:{}:{}", id.str(), asked.request);
  if (!m.steps.want(need, id, {step}, m.fleet, m.now.monotonic, m.ids, m.out))
    return asked.refuse(ErrorCode::unavailable, "node " + node.str() + " went away", "try again");
  asked.reply_on_need(
      need, node, checkpoint_patience + seconds(10), "checkpoint job " + job->job.name.str(),
      [id](Machine& machine, const NeedOutcome&) -> Result<Value> {
        return api::encode_reply(api::JobReply{row_of(machine, *machine.desired.find(id))});
      });
}

void handle(const Asked& asked, const api::SetNodeDuty& op) {
  Machine& m = asked.m;
  auto node = find_node(m.desired, m.fleet.view(), op.node);
  if (!node) return asked.refuse(node.error());
  Duty duty = Duty::none;
  if (op.duty == api::NodeDuty::cordon) duty = Duty::cordoned;
  if (op.duty == api::NodeDuty::drain) duty = Duty::draining;
  auto known = m.desired.duties.find(*node);
  Duty before = known == m.desired.duties.end() ? Duty::none : known->second.duty;
  if (before != duty) {
    asked.audit("node " + node->str(), std::string(to_string(op.duty)));
    set_duty(m, *node, duty, asked.by(), {});
  }
  asked.reply_when_durable(
      [](Machine& machine) -> Result<Value> { return api::encode_reply(nodes_reply(machine)); });
}

}  // namespace zed::controller
