// Copies made and checkpoints thinned out because a person says so.

#include "cli/commands.hpp"
#include "cli/orders.hpp"
#include "cli/typed.hpp"

namespace zed::cli {
namespace {

/// What a prune would destroy, shown and agreed to.
Status agree_to_prune(Context& context, api::Prune request) {
  request.dry_run = true;
  ZED_TRY(auto preview, order(context, request, "looking"));
  if (preview.pruned.empty()) return {};
  if (!context.options().yes || !context.options().json)
    context.note(render(preview, context.error_view()));
  ZED_TRY(bool agreed, context.confirm("Destroy them?"));
  if (!agreed) return fail(ErrorCode::refused, "nothing was destroyed", "as you said");
  return {};
}

}  // namespace

Result<ExitCode> carry_out(Context& context, const ReplicateCommand& command) {
  const api::Replicate request{command.what, command.to, command.dry_run};
  auto reply =
      order(context, request, "bringing " + command.what + " to " + command.to, moving_limit);
  if (!reply && reply.error().code == ErrorCode::cancelled) {
    context.note("\nthe transfer that is under way goes on; what comes after it does not.\n"
                 "  next: zedctl transfers shows it, the same command goes on from there\n");
    return ExitCode::interrupted;
  }
  if (!reply) return fail(std::move(reply).error());
  print_reply(context, *reply);
  return ExitCode::done;
}

Result<ExitCode> carry_out(Context& context, const AdoptCommand& command) {
  api::Adopt request;
  request.dataset = command.dataset;
  if (!command.as.empty()) request.as = command.as.front();
  if (command.as.size() > 1) request.name = command.as.back();
  request.version = command.version;
  request.to = command.to;
  request.node = command.node;
  request.dry_run = true;
  ZED_TRY(auto preview, order(context, request, "looking at " + command.dataset));
  if (command.dry_run || preview.steps.empty()) {
    print_reply(context, preview);
    return ExitCode::done;
  }
  // Said first, whoever is there to read it; nothing is destroyed, so only a person is asked.
  if (!context.options().json) context.note(render(preview, context.error_view()));
  if (context.terminal().input && context.terminal().error && !context.options().yes) {
    ZED_TRY(bool agreed, context.confirm("Do it?"));
    if (!agreed) return fail(ErrorCode::refused, "nothing was changed", "as you said");
  }
  request.dry_run = false;
  ZED_TRY(auto reply, order(context, request, "adopting " + command.dataset));
  print_reply(context, reply);
  return ExitCode::done;
}

Result<ExitCode> carry_out(Context& context, const PruneCommand& command) {
  api::Prune request;
  request.job = command.job;
  request.branches = command.branches;
  request.dry_run = command.dry_run;
  if (!command.keep.empty()) {
    ZED_TRY(request.keep, parse_retention(command.keep));
  }
  if (!command.dry_run) ZED_CHECK(agree_to_prune(context, request));
  ZED_TRY(auto reply, order(context, request, "pruning " + command.job));
  print_reply(context, reply);
  return ExitCode::done;
}

}  // namespace zed::cli
