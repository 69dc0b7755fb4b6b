// Questions: one look, or look after look until Ctrl-C.

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/csv.hpp"
#include "cli/orders.hpp"
#include "cli/progress.hpp"
#include "cli/render.hpp"
#include "cli/render_models.hpp"
#include "cli/typed.hpp"

namespace zed::cli {
namespace {

constexpr Millis watch_every{1000};
constexpr Millis log_every{250};
/// After so many looks at a log that does not grow, whether it went back is asked.
constexpr int looks_until_doubt = 8;
/// How long a follower looks for a controller that went away, before it gives up.
constexpr Millis reconnect_limit = minutes(2);
constexpr Millis reconnect_every{1000};
constexpr Millis names_limit{800};  ///< a shell waits for these

/// As text, whatever the question is.
struct Answer {
  std::string json;
  std::string text;
};

template <class Operation> Result<Answer> answer_to(Context& context, const Operation& operation) {
  ZED_TRY(http::Client * client, context.client());
  ZED_TRY(std::string json, client->call_text(Operation::tag, to_value(operation)));
  if (context.options().json) return Answer{std::move(json), ""};
  if (context.options().csv) {
    ZED_TRY(Value value, parse_json(json, {std::size_t{64} << 20, 64}));
    // Not a list of anything: what it has of lists is besides.
    if (std::is_same_v<Operation, api::GetStatus>) return Answer{"", to_csv_row(value)};
    return Answer{"", to_csv(value)};
  }
  ZED_TRY(auto reply, http::Client::read_reply<typename Operation::Reply>(json));
  return Answer{"", render(reply, context.view())};
}

template <class Reply>
concept Rendered = requires(const Reply& reply, const View& view) {
  render(reply, view);
};

/// Only the questions that the grammar makes; the others have commands of their own.
struct Ask {
  Context& context;
  template <class Operation> Result<Answer> operator()(const Operation& operation) const {
    if constexpr (Operation::changes || std::is_same_v<Operation, api::ReadJobLog> ||
                  std::is_same_v<Operation, api::MakePlan> || !Rendered<typename Operation::Reply>)
      return fail(ErrorCode::internal, std::string(Operation::tag) + " is no question to look at");
    else
      return answer_to(context, operation);
  }
};

Result<ExitCode> watch(Context& context, const api::Request& question) {
  const bool plain = !context.options().json && !context.options().csv;
  const bool redraws = context.terminal().output && plain;
  std::string last;
  for (;;) {
    auto answer = std::visit(Ask{context}, question);
    // A controller that restarts is not the end of watching.
    const bool away = !answer && answer.error().code == ErrorCode::unavailable && !last.empty();
    if (!answer && !away) {
      if (answer.error().code == ErrorCode::cancelled) return ExitCode::done;
      return fail(std::move(answer).error());
    }
    const std::string now = away ? last : answer->json + answer->text;
    if (redraws)
      context.print("\x1b[H\x1b[2J" + now + (away ? "the controller is away\n" : ""));
    else if (now != last)
      context.print((last.empty() || !plain ? "" : "\n") + now);
    last = now;
    if (!context.interrupt().sleep(watch_every)) return ExitCode::done;
  }
}

struct LogReader {
  Context& context;
  const LogsCommand& command;
  std::int64_t offset;
  bool live = false;

  /// A rollback takes the log back with the job: then what comes next comes before `offset`.
  /// Whether that happened.
  Result<bool> go_back() {
    ZED_TRY(http::Client * client, context.client());
    ZED_TRY(auto last_line, client->call(api::ReadJobLog{command.job, -1}));
    live = last_line.live;
    if (last_line.end >= offset) return false;
    context.note("the log went back with its job\n");
    offset = last_line.end;
    return true;
  }

  /// Prints one page. Whether there was anything.
  Result<bool> page() {
    ZED_TRY(http::Client * client, context.client());
    const api::ReadJobLog question{command.job, offset};
    ZED_TRY(std::string json, client->call_text(api::ReadJobLog::tag, to_value(question)));
    ZED_TRY(auto reply, http::Client::read_reply<api::LogReply>(json));
    live = reply.live;
    const bool moved = reply.end != offset && !reply.lines.empty();
    offset = reply.end;
    if (context.options().json) {
      if (moved) context.print(json);
      return moved;
    }
    std::string text;
    for (const LogLine& line : reply.lines)
      text += render(line, command.times, context.view());
    context.print(text);
    return moved;
  }
};

/// A job that waits for a place, or for its files, has no log yet.
bool is_to_come(Context& context, const std::string& job) {
  auto client = context.client();
  if (!client) return false;
  auto why = (*client)->call(api::WhyJob{job});
  return why && !is_over(why->job.state);
}

/// The number of the newest event, 0 if there is none.
Result<std::uint64_t> newest_event(http::Client& client) {
  ZED_TRY(auto events, client.call(api::ListEvents{0, 1}));
  return events.events.empty() ? 0 : events.events.back().number;
}

Result<ExitCode> follow_events(Context& context, http::Client& client, std::uint64_t after) {
  auto print = [&](const api::FleetEvent& event) {
    after = event.number;
    context.print(context.options().json ? to_json(api::encode_reply(event)) + "\n"
                                         : render(event, context.view()));
    return true;
  };
  Millis away{0};
  for (;;) {
    const std::uint64_t before = after;
    Status done = client.follow(after, print);
    const ErrorCode code = done ? ErrorCode::cancelled : done.error().code;
    if (code == ErrorCode::cancelled) return ExitCode::done;
    if (code != ErrorCode::unavailable && code != ErrorCode::busy)
      return fail(std::move(done).error());
    if (after != before) away = {};
    if (away >= reconnect_limit) return fail(std::move(done).error());
    if (away.value == 0)
      context.note("the stream ended, following again after " + std::to_string(after) + "\n");
    if (!context.interrupt().sleep(reconnect_every)) return ExitCode::done;
    away += reconnect_every;
    // Numbers begin again with a new controller term.
    if (auto newest = newest_event(client); newest && *newest < after) after = 0;
  }
}

std::vector<std::string> names_of(http::Client& client, const std::string& kind) {
  std::vector<std::string> names;
  if (kind == "nodes")
    if (auto reply = client.call(api::ListNodes{}))
      for (const auto& row : reply->nodes)
        names.push_back(row.node.name.str());
  if (kind == "datasets")
    if (auto reply = client.call(api::ListDatasets{}))
      for (const auto& row : reply->datasets)
        names.push_back(row.dataset);
  if (kind == "models")
    if (auto reply = client.call(api::ListModels{}))
      for (const auto& row : reply->models)
        names.push_back(row.name);
  if (kind != "jobs" && kind != "checkpoints") return names;
  auto jobs = client.call(api::ListJobs{true});
  if (!jobs) return names;
  for (const auto& job : jobs->jobs) {
    names.push_back(job.name);
    if (kind == "jobs" || job.declared_only) continue;
    if (auto reply = client.call(api::ListCheckpoints{job.name}))
      for (const auto& row : reply->checkpoints)
        if (row.current) names.push_back(job.name + "@" + row.name);
  }
  return names;
}

}  // namespace

Result<ExitCode> carry_out(Context& context, const Look& command) {
  if (context.options().watch) return watch(context, command.question);
  ZED_TRY(Answer answer, std::visit(Ask{context}, command.question));
  context.print(answer.json + answer.text);
  return ExitCode::done;
}

Result<ExitCode> carry_out(Context& context, const MatchCommand& command) {
  api::MatchNodes question;
  ZED_TRY(question.requirement, parse_requirement(command.requires_));
  ZED_TRY(question.prefer, parse_preference(command.prefer));
  ZED_TRY(http::Client * client, context.client());
  ZED_TRY(std::string json, client->call_text(api::MatchNodes::tag, to_value(question)));
  ZED_TRY(auto reply, http::Client::read_reply<api::MatchReply>(json));
  context.print(context.options().json  ? json
                : context.options().csv ? to_csv(api::encode_reply(reply))
                                        : render(reply, context.view()));
  return reply.matches.empty() ? ExitCode::unplaceable : ExitCode::done;
}

Result<ExitCode> carry_out(Context& context, const LogsCommand& command) {
  LogReader reader{context, command, command.all ? 0 : -command.lines};
  Millis away{0};
  for (int idle = 0;;) {
    auto more = idle > 0 && idle % looks_until_doubt == 0 ? reader.go_back() : reader.page();
    const ErrorCode code = more ? ErrorCode::internal : more.error().code;
    if (!more && code == ErrorCode::cancelled) break;
    // A node or a controller that is away comes back, or the job goes on elsewhere.
    const bool may_come_back = is_retryable(code) && away < reconnect_limit;
    const bool waits =
        command.follow &&
        (may_come_back || (code == ErrorCode::not_found && is_to_come(context, command.job)));
    if (!more && !waits) return fail(std::move(more).error());
    if (!more && away.value == 0)
      context.note("the log cannot be read now: " + printable(more.error().describe()) +
                   "; trying on\n");
    away = more ? Millis{0} : away + reconnect_every;
    idle = more && *more ? 0 : idle + 1;
    if (idle == 0) continue;
    if (more && (!command.follow || !reader.live)) return ExitCode::done;
    if (!context.interrupt().sleep(more ? log_every : reconnect_every)) break;
  }
  if (command.follow)
    context.note("\nthe job goes on; zedctl logs -f " + command.job + " follows it again\n");
  return ExitCode::done;
}

namespace {

/// How many more happened than are shown; "" if none.
std::string earlier_events(const api::EventsReply& reply, const api::ListEvents& question) {
  if (reply.events.empty() || reply.events.front().number <= question.after + 1) return "";
  constexpr std::int64_t most = 1000;
  const std::uint64_t count = reply.events.front().number - question.after - 1;
  const std::string before = "(" + plural(count, "event") + " before these";
  if (question.limit >= most) return before + ")\n";
  return fmt::format("{}; --limit {} shows more)\n", before,
                     std::min<std::uint64_t>(most, count + reply.events.size()));
}

}  // namespace

Result<ExitCode> carry_out(Context& context, const EventsCommand& command) {
  ZED_TRY(http::Client * client, context.client());
  const api::ListEvents question{command.after.value_or(0), command.limit};
  if (!command.follow)
    return ask_and_print(context, question, [&](const api::EventsReply& reply) {
      return earlier_events(reply, question) + render(reply, context.view());
    });
  ZED_TRY(auto so_far, client->call(question));
  std::uint64_t last = command.after.value_or(0);
  for (const api::FleetEvent& event : so_far.events) {
    last = event.number;
    context.print(context.options().json ? to_json(api::encode_reply(event)) + "\n"
                                         : render(event, context.view()));
  }
  return follow_events(context, *client, last);
}

Result<ExitCode> carry_out(Context& context, const NamesCommand& command) {
  // A shell waits: no controller means no names, not an error on the person's prompt.
  ZED_TRY(http::ClientOptions options, find_controller(context.options().socket));
  options.time_limit = names_limit;
  options.interrupt_fd = context.interrupt().fd();
  http::Client client(std::move(options));
  std::string text;
  std::set<std::string> seen;
  for (const std::string& name : names_of(client, command.kind))
    if (seen.insert(name).second) text += printable(name) + "\n";
  context.print(text);
  return ExitCode::done;
}

}  // namespace zed::cli
