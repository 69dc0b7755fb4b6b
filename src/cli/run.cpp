#include "cli/run.hpp"

#include "cli/arguments.hpp"
#include "cli/commands.hpp"
#include "cli/completion.hpp"
#include "cli/man.hpp"

namespace zed::cli {

Result<ExitCode> carry_out(Context& context, const VersionCommand&) {
  if (context.options().json)
    context.print(
        to_json(Value::map().set("schema", api::schema_version).set("version", ZED_VERSION)) +
        "\n");
  else
    context.print("zedctl " ZED_VERSION " (schema " + std::to_string(api::schema_version) + ")\n");
  return ExitCode::done;
}

Result<ExitCode> carry_out(Context& context, const CompletionCommand& command) {
  ZED_TRY(std::string script, completion_script(command.shell, command_shapes()));
  context.print(script);
  return ExitCode::done;
}

Result<ExitCode> carry_out(Context& context, const ManualCommand&) {
  context.print(manual_page(command_shapes(), ZED_VERSION));
  return ExitCode::done;
}

/// Of arguments that could not be read as a whole.
bool ask_for_json(const std::vector<std::string>& arguments) {
  for (std::size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i)
    if (arguments[i] == "--json" || arguments[i] == "-ojson" ||
        (arguments[i] == "-o" && i + 1 < arguments.size() && arguments[i + 1] == "json"))
      return true;
  return false;
}

ExitCode run(Context& context, const Command& command) {
  auto outcome =
      std::visit([&context](const auto& one) { return carry_out(context, one); }, command);
  return outcome ? *outcome : context.report(std::move(outcome).error());
}

int zedctl(const std::vector<std::string>& arguments) {
  auto read = read_arguments(arguments);
  const Interrupt interrupt;
  if (const auto* said = std::get_if<Said>(&read)) {
    Common common;
    common.json = ask_for_json(arguments);
    Context context(common, Terminal::detect(), interrupt);
    if (said->mistake && common.json) return static_cast<int>(context.report(*said->mistake));
    if (said->status == 0)
      context.print(said->text);
    else
      context.note(said->text);
    return said->status;
  }
  const auto& invocation = std::get<Invocation>(read);
  Context context(invocation.common, Terminal::detect(), interrupt);
  return static_cast<int>(run(context, invocation.command));
}

}  // namespace zed::cli
