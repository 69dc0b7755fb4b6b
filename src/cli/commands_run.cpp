// A command as a job: submitted with the folder it needs, and followed until it ends.

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <unistd.h>

#include "base/json.hpp"
#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/orders.hpp"
#include "cli/typed.hpp"
#include "spec/quantity.hpp"

namespace zed::cli {
namespace {

namespace fs = std::filesystem;

constexpr Millis log_every{250};
constexpr int looks_until_state = 4;
/// A controller that restarts is waited for, this many looks of log_every.
constexpr int most_misses = 480;
constexpr int most_submits = 20;
constexpr Millis resend_after{500};

/// Whether the command names a file of the folder that we are in.
bool names_a_file(const std::vector<std::string>& argv) {
  return std::any_of(argv.begin(), argv.end(), [](const std::string& word) {
    std::error_code error;
    return !word.empty() && word.front() != '-' && fs::path(word).is_relative() &&
           fs::exists(word, error) && word != "." && word != "..";
  });
}

/// The folder to submit, absolute; empty: none.
Result<std::string> code_of(const RunCommand& command) {
  const bool submits = !command.code.empty() || (!command.no_code && names_a_file(command.argv));
  if (!submits && !command.code_on.empty())
    return fail(ErrorCode::invalid,
                "--code-on " + command.code_on +
                    " says whose disk the folder is on, and no folder "
                    "is submitted",
                "--code DIR names it; --prefer node=" + command.code_on +
                    " says where the job runs best");
  if (!submits) return std::string();
  std::error_code error;
  if (!command.code.empty()) {
    const fs::path folder = fs::absolute(command.code, error).lexically_normal();
    if (command.code_on.empty() && !fs::is_directory(folder, error))
      return fail(ErrorCode::not_found, "there is no folder " + folder.string(),
                  "--code DIR names one of this machine, --code-on NODE another's");
    return folder.string();
  }
  const fs::path here = fs::current_path(error);
  const char* home = std::getenv("HOME");
  if (error || here == here.root_path() || (home != nullptr && fs::equivalent(here, home, error)))
    return fail(ErrorCode::refused,
                "the command names a file here, and all of " + here.string() +
                    " would be submitted with it",
                "work in a folder of its own, or say --code DIR or --no-code");
  return here.string();
}

Result<std::map<std::string, std::string>> environment_of(const RunCommand& command) {
  std::map<std::string, std::string> environment;
  for (const std::string& text : command.env) {
    const std::size_t sign = text.find('=');
    const std::string name = text.substr(0, sign);
    const char* ours = std::getenv(name.c_str());
    if (name.empty())
      return fail(ErrorCode::invalid, "\"" + text + "\" names no variable", "--env NAME=VALUE");
    if (sign == std::string::npos && ours == nullptr)
      return fail(ErrorCode::invalid, "\"" + text + "\" is not set here",
                  "--env NAME=VALUE, or NAME for a variable of this shell");
    environment[name] = sign == std::string::npos ? ours : text.substr(sign + 1);
  }
  return environment;
}

Result<api::RunJob> request_of(const RunCommand& command) {
  if (command.argv.empty())
    return fail(ErrorCode::invalid, "there is no command to run",
                "zedctl run [OPTIONS] -- python3 train.py");
  api::RunJob request;
  request.name = command.name;
  request.argv = command.argv;
  request.node = command.code_on;
  request.setup = command.setup;
  request.model = command.model;
  request.data = command.data;
  request.checkpoint_every = command.checkpoint_every;
  request.retries = command.retries;
  request.priority = command.priority;
  ZED_TRY(request.uuid, random_uuid());
  ZED_TRY(request.code, code_of(command));
  ZED_TRY(request.env, environment_of(command));
  ZED_TRY(request.requirement, parse_requirement(command.requires_));
  ZED_TRY(request.prefer, parse_preference(command.prefer));
  if (!command.timeout.empty()) {
    ZED_TRY(request.timeout, spec::parse_duration(command.timeout));
  }
  if (!command.setup_timeout.empty()) {
    ZED_TRY(request.setup_timeout, spec::parse_duration(command.setup_timeout));
  }
  return request;
}

/// Sends it, again if the controller goes away before it answers: its uuid makes it one job.
Result<api::DispatchReply> submit(Context& context, const api::RunJob& request) {
  const std::string doing =
      request.code.empty() ? "submitting" : "submitting, with " + request.code;
  for (int attempt = 1;; ++attempt) {
    auto reply = order(context, request, doing);
    if (reply || reply.error().code != ErrorCode::unavailable || attempt == most_submits)
      return reply;
    const auto& frames = reply.error().frames;
    if (attempt == 1 && !frames.empty() && frames.front().substr(0, 10) == "connect to")
      return reply;
    if (!context.interrupt().sleep(resend_after))
      return fail(ErrorCode::cancelled, "whether it was submitted is unknown",
                  "zedctl jobs tells once the controller is back");
  }
}

/// The log of one job from its first line on, over all of its attempts.
class Follower {
public:
  Follower(Context& context, http::Client& client, api::JobRow job)
      : context_(context), client_(client), job_(std::move(job)), narrator_(context, job_.name) {}

  Result<ExitCode> run() {
    for (int looks = 0;; ++looks) {
      auto more = page();
      if (!more && more.error().code == ErrorCode::cancelled) return detach();
      if (more && *more) continue;
      if (looks % looks_until_state == 0) {
        if (Status seen = look(); !seen) {
          if (seen.error().code == ErrorCode::cancelled) return detach();
          return fail(std::move(seen).error());
        }
        if (is_over(job_.state) && !drained()) continue;
        if (is_over(job_.state)) return end();
      }
      if (!context_.interrupt().sleep(log_every)) return detach();
    }
  }

private:
  /// Prints one page of the log. Whether there was anything.
  Result<bool> page() {
    auto reply = client_.call(api::ReadJobLog{job_.name, offset_});
    // A job that waits has no log yet; one whose node went away has none now.
    if (!reply && reply.error().code != ErrorCode::cancelled) return false;
    if (!reply) return fail(std::move(reply).error());
    if (reply->lines.empty()) return false;
    offset_ = reply->end;
    show(*reply);
    printed_ = true;
    return true;
  }

  void show(const api::LogReply& page) const {
    if (context_.options().json) return context_.print(to_json(api::encode_reply(page)) + "\n");
    std::string text;
    for (const LogLine& line : page.lines)
      text += render(line, false, context_.view());
    context_.print(text);
  }

  /// Whether nothing more can come although the job is over: the log's last page may have become
  /// readable only after its end was known.
  bool drained() {
    if (drains_++ > 0) return true;
    auto more = page();
    return more && !*more;
  }

  /// What the job is now.
  Status look() {
    auto now = find_job(client_, job_.id);
    if (!now && is_retryable(now.error().code) && ++misses_ < most_misses) return {};
    if (!now) return fail(std::move(now).error());
    misses_ = 0;
    job_ = std::move(*now);
    if (!printed_) narrator_.tell_elapsed(sentence_of(job_));
    auto last = client_.call(api::ReadJobLog{job_.name, -1});
    // A rollback takes the log back with the job.
    if (last && last->end < offset_) offset_ = last->end;
    return {};
  }

  Result<ExitCode> detach() const {
    const std::string name = printable(job_.name);
    context_.note("\n" + name + " goes on without us.\n  next: zedctl logs -f " + name +
                  " follows it again, zedctl stop " + name + " stops it\n");
    return ExitCode::interrupted;
  }

  Result<ExitCode> end() const {
    context_.note(sentence_of(job_) + "\n");
    if (context_.options().json) print_reply(context_, api::JobReply{job_});
    return job_.state == JobState::succeeded ? ExitCode::done : ExitCode::error;
  }

  Context& context_;
  http::Client& client_;
  api::JobRow job_;
  Narrator narrator_;
  std::int64_t offset_ = 0;
  bool printed_ = false;
  int misses_ = 0;
  int drains_ = 0;
};

}  // namespace

Result<ExitCode> carry_out(Context& context, const RunCommand& command) {
  ZED_TRY(api::RunJob request, request_of(command));
  ZED_TRY(auto reply, submit(context, request));
  const bool follows = !command.detach && !context.options().csv;
  if (!follows || context.options().json) print_reply(context, reply);
  if (!follows) return ExitCode::done;
  const std::string name = printable(reply.job.name);
  context.note(name + " is submitted" + (request.code.empty() ? "" : " with " + request.code) +
               "; Ctrl-C leaves it running\n");
  ZED_TRY(http::Client * client, context.client());
  client->set_time_limit(seconds(30));
  return Follower(context, *client, reply.job).run();
}

}  // namespace zed::cli
