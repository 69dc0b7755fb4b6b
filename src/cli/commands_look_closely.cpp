// Metrics as curves, files as a list, and everything at once.

#include <unistd.h>

#include <algorithm>

#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/orders.hpp"
#include "cli/typed.hpp"

namespace zed::cli {
namespace {

constexpr Millis top_every{1000};
constexpr Millis metrics_every{2000};

/// A row a point, as a spreadsheet wants them.
std::string metrics_csv(const api::MetricsReply& reply) {
  std::string text = "metric,step,value\n";
  for (const MetricSeries& series : reply.series) {
    Value row = Value::map().set("metric", series.name);
    for (std::size_t i = 0; i < series.values.size(); ++i) {
      row.set("step", series.steps[i]).set("value", series.values[i]);
      const std::string line = to_csv(row);
      text += line.substr(line.find('\n') + 1);
    }
  }
  return text;
}

/// Refuses if one of the metrics that were asked for is not among what came.
Status all_are_there(const api::ReadMetrics& question, const api::MetricsReply& reply) {
  std::vector<std::string> known = reply.other_names, missing;
  for (const MetricSeries& series : reply.series)
    known.push_back(series.name);
  for (const std::string& name : question.names)
    if (std::find(known.begin(), known.end(), name) == known.end()) missing.push_back(name);
  if (missing.empty()) return {};
  std::sort(known.begin(), known.end());
  const auto nearest = nearest_word(missing.front(), known);
  return fail(ErrorCode::not_found, reply.job + " has logged no " + join(missing, ", "),
              known.empty() ? "it has logged nothing yet: zed.log(step=…, loss=…) in its script"
                            : "it logs " + join(known, ", ") +
                                  (nearest ? "; did you mean " + *nearest + "?" : ""));
}

Result<std::string> metrics_text(Context& context, const api::ReadMetrics& question) {
  ZED_TRY(http::Client * client, context.client());
  ZED_TRY(std::string json, client->call_text(api::ReadMetrics::tag, to_value(question)));
  ZED_TRY(auto reply, http::Client::read_reply<api::MetricsReply>(json));
  // Who watches waits for what is not there yet.
  if (!context.options().watch) ZED_CHECK(all_are_there(question, reply));
  if (context.options().json) return json;
  return context.options().csv ? metrics_csv(reply) : render(reply, context.view());
}

/// Shows what `look` gives, again and again, until Ctrl-C.
template <class Look> Result<ExitCode> repeat(Context& context, Millis every, Look&& look) {
  const bool redraws =
      context.terminal().output && !context.options().json && !context.options().csv;
  std::string last;
  for (;;) {
    auto text = look();
    const bool away = !text && is_retryable(text.error().code) && !last.empty();
    if (!text && text.error().code == ErrorCode::cancelled) return ExitCode::done;
    if (!text && !away) return fail(std::move(text).error());
    const std::string now = text ? *text : last;
    if (redraws)
      context.print("\x1b[H\x1b[2J" + now + (away ? "the controller is away\n" : ""));
    else if (now != last)
      context.print(now);
    last = now;
    if (!context.interrupt().sleep(every)) return ExitCode::done;
  }
}

/// Without colour, a heading is told from its table by a line of its own all the same.
std::string section(std::string_view name, const std::string& body, const View& view) {
  return "\n" + styled(name, Style::strong, view) + "\n" + body;
}

Result<std::string> everything(Context& context) {
  ZED_TRY(http::Client * client, context.client());
  ZED_TRY(auto status, client->call(api::GetStatus{}));
  ZED_TRY(auto nodes, client->call(api::ListNodes{}));
  ZED_TRY(auto gpus, client->call(api::ListGpus{}));
  ZED_TRY(auto jobs, client->call(api::ListJobs{}));
  ZED_TRY(auto events, client->call(api::ListEvents{0, 8}));
  const View view = context.view();
  std::string text = render(status, view) + section("NODES", render(nodes, view), view) +
                     section("GPUS", render(gpus, view), view) +
                     section("JOBS", render(jobs, view), view);
  if (!events.events.empty()) text += section("LATELY", render(events, view), view);
  return text;
}

}  // namespace

Result<ExitCode> carry_out(Context& context, const MetricsCommand& command) {
  ZED_TRY(JobAt target, parse_job_at(command.target));
  const api::ReadMetrics question{target.job, target.checkpoint, command.names, command.points};
  if (context.options().watch)
    return repeat(context, metrics_every, [&] { return metrics_text(context, question); });
  ZED_TRY(std::string text, metrics_text(context, question));
  context.print(text);
  return ExitCode::done;
}

Result<ExitCode> carry_out(Context& context, const FilesCommand& command) {
  ZED_TRY(FilesAt target, parse_files_at(command.target));
  return ask_and_print(
      context, api::ListFiles{target.of, target.checkpoint, target.path, {}, {}},
      [&context](const api::FilesReply& reply) { return render(reply, context.view()); });
}

Result<ExitCode> carry_out(Context& context, const TopCommand&) {
  if (context.options().json || context.options().csv)
    return fail(ErrorCode::invalid, "top is for people",
                "zedctl status, nodes, gpus, jobs and events have --json and -o csv");
  if (context.terminal().output)
    return repeat(context, top_every, [&context] { return everything(context); });
  ZED_TRY(std::string text, everything(context));  // into a file or a pipe: once
  context.print(text);
  return ExitCode::done;
}

}  // namespace zed::cli
