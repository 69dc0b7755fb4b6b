// Orders: what changes something on the fleet.

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include <unistd.h>

#include "base/id.hpp"
#include "base/text.hpp"
#include "cli/axis.hpp"
#include "cli/commands.hpp"
#include "cli/orders.hpp"
#include "cli/progress.hpp"
#include "cli/render.hpp"
#include "cli/typed.hpp"

namespace zed::cli {
namespace {

namespace fs = std::filesystem;

constexpr Millis wait_every{500};
/// A wait outlives a controller that restarts, for so many looks without an answer.
constexpr int most_misses = 240;
constexpr int most_submits = 20;
constexpr Millis resend_after{500};

/// Until the job is over. The status is the job's: done if it succeeded.
Result<ExitCode> wait_for(Context& context, api::JobRow job) {
  ZED_TRY(http::Client * client, context.client());
  Narrator narrator(context, job.name);
  int misses = 0;
  while (!is_over(job.state)) {
    narrator.tell_elapsed(sentence_of(job));
    const bool left = !context.interrupt().sleep(wait_every);
    auto now = left ? fail(ErrorCode::cancelled, "") : find_job(*client, job.id);
    if (!now && now.error().code == ErrorCode::cancelled) {
      context.note("\n" + printable(job.name) + " goes on without us.\n  next: zedctl logs -f " +
                   printable(job.name) + " follows it, zedctl jobs shows it, zedctl stop " +
                   printable(job.name) + " stops it\n");
      return ExitCode::interrupted;
    }
    if (!now && !(is_retryable(now.error().code) && ++misses < most_misses))
      return fail(std::move(now).error());
    if (!now) continue;
    misses = 0;
    job = std::move(*now);
  }
  print_reply(context, api::JobReply{job});
  if (job.state == JobState::failed)
    context.note("  next: zedctl logs " + printable(job.name) + " shows what it wrote\n");
  return job.state == JobState::succeeded ? ExitCode::done : ExitCode::error;
}

/// Sends a submit, again if the controller goes away before it answers: its uuid makes it one job.
Result<api::DispatchReply> submit(Context& context, const api::Dispatch& request) {
  for (int attempt = 1;; ++attempt) {
    auto reply = order(context, request, "submitting " + request.job);
    if (reply || reply.error().code != ErrorCode::unavailable) return reply;
    const auto& frames = reply.error().frames;
    const bool never_reached =
        attempt == 1 && !frames.empty() && frames.front().substr(0, 10) == "connect to";
    if (never_reached || attempt == most_submits) return reply;
    context.note("the controller went away before it answered; sending it again, it stays one "
                 "job\n");
    if (!context.interrupt().sleep(resend_after))
      return fail(ErrorCode::cancelled, "whether it was submitted is unknown",
                  "zedctl jobs tells once the controller is back");
  }
}

/// What a discarding rollback would destroy, shown and agreed to.
Status agree_to_discard(Context& context, api::Rollback request) {
  request.dry_run = true;
  ZED_TRY(auto preview, order(context, request, "looking"));
  if (preview.left.empty()) return {};
  if (!context.options().yes || !context.options().json)
    context.note(render_fork_preview(preview, context.error_view()));
  ZED_TRY(bool agreed, context.confirm("Destroy them?"));
  if (!agreed) return fail(ErrorCode::refused, "nothing was destroyed", "as you said");
  return {};
}

struct Send {
  Context& context;

  Result<ExitCode> operator()(const api::SetNodeDuty& duty) const {
    return send(duty, std::string(to_string(duty.duty)) + " " + duty.node);
  }
  Result<ExitCode> operator()(const api::StopJob& stop) const {
    return send(stop, "stopping " + stop.job);
  }
  Result<ExitCode> operator()(const api::CancelJob& cancel) const {
    return send(cancel, "cancelling " + cancel.job);
  }
  Result<ExitCode> operator()(const api::CheckpointJob& checkpoint) const {
    return send(checkpoint, "waiting for a checkpoint of " + checkpoint.job);
  }
  Result<ExitCode> operator()(const api::SyncToRemote& sync) const {
    return send(sync, "sending " + sync.snapshot + " to " + sync.destination, moving_limit);
  }
  Result<ExitCode> operator()(const api::ExpireBranch& expire) const {
    return send(expire, "expiry of " + expire.branch);
  }
  template <class Operation> Result<ExitCode> operator()(const Operation&) const {
    return fail(ErrorCode::internal, std::string(Operation::tag) + " is no simple order");
  }

private:
  template <class Operation>
  Result<ExitCode> send(const Operation& operation, const std::string& doing,
                        Millis limit = order_limit) const {
    ZED_TRY(auto reply, order(context, operation, doing, limit));
    print_reply(context, reply);
    return ExitCode::done;
  }
};

}  // namespace

Result<ExitCode> carry_out(Context& context, const AddModelCommand& command) {
  api::AddModel request;
  request.name = command.name;
  request.version = command.version;
  request.node = command.node;
  request.path = fs::absolute(command.path).lexically_normal().string();
  ZED_TRY(request.requirement, parse_requirement(command.requires_));
  for (const std::string& text : command.properties) {
    ZED_TRY(auto property, parse_property(text));
    request.properties.insert(std::move(property));
  }
  std::error_code error;
  if (command.node.empty() && !fs::exists(request.path, error))
    return fail(ErrorCode::not_found, "there is no " + request.path,
                "name a file or folder of this machine, or its machine by --node");
  auto reply = order(context, request, "importing " + request.path, moving_limit);
  if (!reply && reply.error().code == ErrorCode::cancelled) {
    context.note("\nthe import may go on without us.\n  next: zedctl models and zedctl transfers "
                 "show it\n");
    return ExitCode::interrupted;
  }
  if (!reply) return fail(std::move(reply).error());
  print_reply(context, *reply);
  return ExitCode::done;
}

Result<ExitCode> carry_out(Context& context, const DispatchCommand& command) {
  api::Dispatch request;
  request.job = command.job;
  request.argv = command.argv;
  request.again = command.again;
  request.from = checkpoint_word(command.from);
  if (!command.from.empty() && !command.again)
    return fail(ErrorCode::invalid, "--from goes with --again",
                "zedctl resume " + command.job + " --from " + request.from +
                    " runs the same job again from there");
  if (!command.prefer.empty()) {
    ZED_TRY(request.prefer, parse_preference(command.prefer));
  }
  if (!command.fallback.empty()) {
    ZED_TRY(request.fallback, parse_preference(command.fallback));
  }
  ZED_TRY(request.array, parse_axes(command.array));
  if (command.wait && !command.array.empty())
    return fail(ErrorCode::invalid, "--wait waits for one job, not for an array",
                "zedctl jobs shows them");
  ZED_TRY(request.uuid, random_uuid());
  ZED_TRY(auto reply, submit(context, request));
  const bool never = reply.rejection && reply.rejection->is_impossible();
  // One JSON document: the last word.
  const bool more_follows = command.wait && !never;
  if (!context.options().json || !more_follows) print_reply(context, reply);
  if (never) return ExitCode::unplaceable;
  return command.wait ? wait_for(context, reply.job) : ExitCode::done;
}

Result<ExitCode> carry_out(Context& context, const RollbackCommand& command) {
  ZED_TRY(JobAt target, parse_job_at(command.target));
  if (target.checkpoint.empty())
    return fail(ErrorCode::invalid, "\"" + command.target + "\" does not say to which checkpoint",
                "zedctl checkpoints " + target.job + " lists them; then zedctl rollback " +
                    target.job + "@CHECKPOINT");
  api::Rollback request;
  request.job = target.job;
  request.checkpoint = target.checkpoint;
  request.discard = command.discard;
  request.force = command.force;
  request.hold = command.hold;
  request.dry_run = command.dry_run;
  if (command.discard && !command.dry_run) ZED_CHECK(agree_to_discard(context, request));
  ZED_TRY(auto reply, order(context, request, "rolling back " + target.job));
  if (command.dry_run && !context.options().json)
    context.print(render_fork_preview(reply, context.view()));
  else
    print_reply(context, reply);
  return ExitCode::done;
}

Result<ExitCode> carry_out(Context& context, const ResumeCommand& command) {
  api::Resume request;
  request.job = command.job;
  request.from = checkpoint_word(command.from);
  request.on = command.on;
  request.force = command.force;
  ZED_TRY(auto reply, order(context, request, "resuming " + command.job));
  print_reply(context, reply);
  return ExitCode::done;
}

Result<ExitCode> carry_out(Context& context, const Order& command) {
  return std::visit(Send{context}, command.request);
}

}  // namespace zed::cli
