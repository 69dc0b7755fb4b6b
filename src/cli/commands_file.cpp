// check, fmt, plan, apply: what takes a cluster file.

#include <algorithm>
#include <filesystem>

#include <sys/stat.h>
#include <unistd.h>

#include "cli/commands.hpp"
#include "cli/csv.hpp"
#include "cli/progress.hpp"
#include "cli/render.hpp"
#include "proc/launch.hpp"
#include "spec/cluster_file.hpp"

namespace zed::cli {
namespace {

namespace fs = std::filesystem;

/// Importing what a file names may take long; the person sees progress meanwhile.
constexpr Millis apply_limit = minutes(60);

struct ClusterText {
  std::string name;  ///< for messages
  std::string text;
  std::string folder;  ///< absolute
};

Result<std::string> read_standard_input() {
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t n = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(net::system_error(errno, "read standard input"));
    if (n == 0) return text;
    text.append(buffer, static_cast<std::size_t>(n));
    if (text.size() > spec::largest_file)
      return fail(ErrorCode::invalid,
                  "standard input is larger than a cluster file may be (4 MiB)");
  }
}

Result<ClusterText> read_cluster(const std::string& file) {
  if (file == "-") {
    ZED_TRY(std::string text, read_standard_input());
    return ClusterText{"standard input", std::move(text), fs::current_path().string()};
  }
  // A folder, a pipe or a device is no cluster file; a pipe may be one (process substitution).
  std::error_code error;
  if (fs::is_directory(file, error))
    return fail(ErrorCode::invalid, file + " is a folder", "name the cluster file in it");
  auto text = proc::read_file(file, Bytes{static_cast<std::int64_t>(spec::largest_file)});
  if (!text) return fail(std::move(text).error());
  return ClusterText{file, std::move(*text), fs::absolute(file).parent_path().string()};
}

Value diagnostics_value(const ClusterText& cluster,
                        const std::vector<spec::Diagnostic>& diagnostics) {
  return Value::map()
      .set("schema", api::schema_version)
      .set("file", cluster.name)
      .set("ok", !spec::has_errors(diagnostics))
      .set("diagnostics", to_value(diagnostics));
}

/// What is wrong with a file is said here, where its name and text are, before anyone is asked.
/// Of one that passes, `warnings` gets the warnings: the controller knows no name of the file.
bool passes(Context& context, const ClusterText& cluster, std::vector<std::string>& warnings) {
  const spec::Checked checked = spec::check(cluster.text);
  for (const spec::Diagnostic& diagnostic : checked.diagnostics)
    warnings.push_back(spec::render({diagnostic}, cluster.name, cluster.text));
  if (checked.cluster) return true;
  if (context.options().json)
    context.print(to_json(diagnostics_value(cluster, checked.diagnostics)) + "\n");
  else
    context.note(spec::render(checked.diagnostics, cluster.name, cluster.text));
  return false;
}

/// For a spreadsheet: a row a change.
Value changes_of(const std::optional<Plan>& plan) {
  return Value::map().set("changes", to_value(plan ? plan->changes : std::vector<Change>{}));
}

bool has_changes(const api::PlanReply& reply) {
  if (!reply.plan) return false;
  const auto& changes = reply.plan->changes;
  return !reply.plan->steps.empty() ||
         std::any_of(changes.begin(), changes.end(),
                     [](const Change& change) { return change.kind != Change::Kind::note; });
}

bool destroys_data(const api::PlanReply& reply) {
  const auto& changes = reply.plan->changes;
  const auto& steps = reply.plan->steps;
  return std::any_of(changes.begin(), changes.end(),
                     [](const Change& change) { return change.destroys; }) ||
         std::any_of(steps.begin(), steps.end(),
                     [](const PlanStep& step) { return destroys(step.action); });
}

Result<api::ApplyReply> apply(Context& context, const ClusterText& cluster,
                              std::optional<std::uint64_t> revision) {
  ZED_TRY(http::Client * client, context.client());
  client->set_time_limit(apply_limit);
  api::Apply request;
  request.text = cluster.text;
  request.folder = cluster.folder;
  request.expected_revision = revision;
  Narrator narrator(context, "");
  return client->call(request, {seconds(1), [&narrator] { narrator.tell_elapsed("applying"); }});
}

Status write_in_place(const std::string& file, const std::string& text) {
  // A link is followed, so that what it points to changes and not the link.
  std::error_code error;
  const fs::path target = fs::canonical(file, error);
  if (error) return fail(ErrorCode::not_found, "cannot find " + file + ": " + error.message());
  struct stat before {};
  const bool known = ::stat(target.c_str(), &before) == 0;
  ZED_CHECK(proc::write_file_durably(target, text));
  if (known && ::chmod(target.c_str(), before.st_mode & 07777) != 0)
    return fail(net::system_error(errno, "give " + file + " its mode back"));
  return {};
}

}  // namespace

Result<ExitCode> carry_out(Context& context, const CheckFile& command) {
  ZED_TRY(ClusterText cluster, read_cluster(command.file));
  const spec::Checked checked = spec::check(cluster.text);
  if (context.options().json)
    context.print(to_json(diagnostics_value(cluster, checked.diagnostics)) + "\n");
  else if (!checked.diagnostics.empty())
    context.note(spec::render(checked.diagnostics, cluster.name, cluster.text));
  if (!checked.cluster) return ExitCode::error;
  if (!context.options().json) context.print(cluster.name + " is good\n");
  return ExitCode::done;
}

Result<ExitCode> carry_out(Context& context, const FormatFile& command) {
  ZED_TRY(ClusterText cluster, read_cluster(command.file));
  const spec::Formatted formatted = spec::format(cluster.text);
  if (!formatted.text) {
    if (context.options().json)
      context.print(to_json(diagnostics_value(cluster, formatted.diagnostics)) + "\n");
    else
      context.note(spec::render(formatted.diagnostics, cluster.name, cluster.text));
    return ExitCode::error;
  }
  const bool changed = *formatted.text != cluster.text;
  if (command.write && command.file == "-")
    return fail(ErrorCode::invalid, "standard input cannot be rewritten", "leave out --write");
  if (command.write && changed) ZED_CHECK(write_in_place(command.file, *formatted.text));
  if (context.options().json)
    context.print(to_json(diagnostics_value(cluster, formatted.diagnostics)
                              .set("changed", changed)
                              .set("text", *formatted.text)) +
                  "\n");
  else if (!command.check && !command.write)
    context.print(*formatted.text);
  if (!command.check || !changed) return ExitCode::done;
  if (!context.options().json)
    context.note(cluster.name + " is not in the canonical layout\n  next: zedctl fmt --write " +
                 command.file + "\n");
  return ExitCode::error;
}

Result<ExitCode> carry_out(Context& context, const PlanFile& command) {
  ZED_TRY(ClusterText cluster, read_cluster(command.file));
  std::vector<std::string> warnings;
  if (!passes(context, cluster, warnings)) return ExitCode::error;
  ZED_TRY(http::Client * client, context.client());
  const api::MakePlan request{cluster.text, cluster.folder};
  ZED_TRY(std::string text, client->call_text(api::MakePlan::tag, to_value(request)));
  ZED_TRY(auto reply, http::Client::read_reply<api::PlanReply>(text));
  if (reply.plan) reply.diagnostics = warnings;
  context.print(context.options().json  ? text
                : context.options().csv ? to_csv(changes_of(reply.plan))
                                        : render(reply, context.view()));
  if (!reply.plan) return ExitCode::error;
  return has_changes(reply) ? ExitCode::changes_pending : ExitCode::done;
}

Result<ExitCode> carry_out(Context& context, const ApplyFile& command) {
  ZED_TRY(ClusterText cluster, read_cluster(command.file));
  std::vector<std::string> warnings;
  if (!passes(context, cluster, warnings)) return ExitCode::error;
  std::optional<std::uint64_t> revision;
  if (!context.options().yes) {
    ZED_TRY(http::Client * client, context.client());
    ZED_TRY(auto plan, client->call(api::MakePlan{cluster.text, cluster.folder}));
    if (plan.plan) plan.diagnostics = warnings;
    // What was shown is what is applied, or nothing is.
    if (plan.plan) revision = plan.plan->base_revision;
    const bool asks =
        plan.plan && has_changes(plan) && (destroys_data(plan) || context.terminal().input);
    if (asks) {
      context.note(render(plan, context.error_view()));
      ZED_TRY(bool agreed, context.confirm("Apply this?"));
      if (!agreed) return fail(ErrorCode::refused, "nothing was applied", "as you said");
    }
  }
  ZED_TRY(auto reply, apply(context, cluster, revision));
  if (!context.options().json) reply.diagnostics = warnings;
  context.print(context.options().json ? to_json(api::encode_reply(reply)) + "\n"
                : context.options().csv
                    ? to_csv(Value::map().set("changes", to_value(reply.changes)))
                    : render(reply, context.view()));
  return ExitCode::done;
}

}  // namespace zed::cli
