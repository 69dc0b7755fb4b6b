#pragma once
// Each command carried out: ask, render, give the exit status. An Error is reported by run().

#include "base/json.hpp"
#include "cli/context.hpp"
#include "cli/csv.hpp"
#include "cli/invocation.hpp"

namespace zed::cli {

// files: commands_file.cpp
Result<ExitCode> carry_out(Context& context, const CheckFile& command);
Result<ExitCode> carry_out(Context& context, const FormatFile& command);
Result<ExitCode> carry_out(Context& context, const PlanFile& command);
Result<ExitCode> carry_out(Context& context, const ApplyFile& command);

// questions: commands_look.cpp
Result<ExitCode> carry_out(Context& context, const Look& command);
Result<ExitCode> carry_out(Context& context, const MatchCommand& command);
Result<ExitCode> carry_out(Context& context, const LogsCommand& command);
Result<ExitCode> carry_out(Context& context, const EventsCommand& command);
Result<ExitCode> carry_out(Context& context, const NamesCommand& command);

// orders: commands_job.cpp
Result<ExitCode> carry_out(Context& context, const AddModelCommand& command);
Result<ExitCode> carry_out(Context& context, const DispatchCommand& command);
Result<ExitCode> carry_out(Context& context, const RollbackCommand& command);
Result<ExitCode> carry_out(Context& context, const ResumeCommand& command);
Result<ExitCode> carry_out(Context& context, const Order& command);

// membership: commands_membership.cpp
Result<ExitCode> carry_out(Context& context, const LoginCommand& command);
Result<ExitCode> carry_out(Context& context, const ContextCommand& command);
Result<ExitCode> carry_out(Context& context, const CreateTokenCommand& command);
Result<ExitCode> carry_out(Context& context, const ListTokensCommand& command);
Result<ExitCode> carry_out(Context& context, const ForgetNodeCommand& command);
Result<ExitCode> carry_out(Context& context, const ShellConfigCommand& command);

// looking closely: commands_look_closely.cpp, commands_copy.cpp
Result<ExitCode> carry_out(Context& context, const MetricsCommand& command);
Result<ExitCode> carry_out(Context& context, const FilesCommand& command);
Result<ExitCode> carry_out(Context& context, const TopCommand& command);
Result<ExitCode> carry_out(Context& context, const DiffCommand& command);
Result<ExitCode> carry_out(Context& context, const CopyCommand& command);

// moving and thinning by hand: commands_copies.cpp
Result<ExitCode> carry_out(Context& context, const ReplicateCommand& command);
Result<ExitCode> carry_out(Context& context, const PruneCommand& command);
Result<ExitCode> carry_out(Context& context, const AdoptCommand& command);

// this machine: commands_doctor.cpp
Result<ExitCode> carry_out(Context& context, const DoctorCommand& command);

// commands as jobs, and beside them: commands_run.cpp, commands_exec.cpp
Result<ExitCode> carry_out(Context& context, const RunCommand& command);
Result<ExitCode> carry_out(Context& context, const ExecCommand& command);

// models: commands_model.cpp
Result<ExitCode> carry_out(Context& context, const ShowModelCommand& command);
Result<ExitCode> carry_out(Context& context, const FitModelCommand& command);
Result<ExitCode> carry_out(Context& context, const RegisterModelCommand& command);
Result<ExitCode> carry_out(Context& context, const AliasModelCommand& command);
Result<ExitCode> carry_out(Context& context, const RemoveModelCommand& command);

// no controller needed: run.cpp
Result<ExitCode> carry_out(Context& context, const VersionCommand& command);
Result<ExitCode> carry_out(Context& context, const CompletionCommand& command);
Result<ExitCode> carry_out(Context& context, const ManualCommand& command);

// the development fleet: dev.cpp
Result<ExitCode> carry_out(Context& context, const DevUp& command);
Result<ExitCode> carry_out(Context& context, const DevDown& command);
Result<ExitCode> carry_out(Context& context, const DevStatus& command);
Result<ExitCode> carry_out(Context& context, const DevKill& command);

/// Asks, and gives the reply as text: as it came with --json, rendered otherwise.
template <class Operation, class Render>
Result<ExitCode> ask_and_print(Context& context, const Operation& operation,
                               Render&& render_reply) {
  ZED_TRY(http::Client * client, context.client());
  ZED_TRY(std::string text, client->call_text(Operation::tag, to_value(operation)));
  if (context.options().json) {
    context.print(text);
    return ExitCode::done;
  }
  if (context.options().csv) {
    ZED_TRY(Value value, parse_json(text, {std::size_t{64} << 20, 64}));
    context.print(to_csv(value));
    return ExitCode::done;
  }
  ZED_TRY(auto reply, http::Client::read_reply<typename Operation::Reply>(text));
  context.print(render_reply(reply));
  return ExitCode::done;
}

}  // namespace zed::cli
