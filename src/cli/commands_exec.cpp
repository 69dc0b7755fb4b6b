// A command beside a running job, with our input and output.

#include <array>
#include <cerrno>

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/base64.hpp"
#include "cli/commands.hpp"
#include "cli/orders.hpp"

namespace zed::cli {
namespace {

/// With a person at the keyboard the next key is sent soon; else output is worth waiting for.
constexpr Millis typing_patience{30};
constexpr Millis usual_patience{250};
constexpr std::size_t most_input = 32 * 1024;
/// A controller that restarts is waited for.
constexpr int most_misses = 60;
constexpr Millis miss_pause{500};

/// Every key goes to the command, Ctrl-C too. Undone when destroyed.
class RawTerminal {
public:
  explicit RawTerminal(bool wanted) {
    if (!wanted || ::tcgetattr(STDIN_FILENO, &before_) != 0) return;
    termios raw = before_;
    ::cfmakeraw(&raw);
    active_ = ::tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
  }
  ~RawTerminal() {
    if (active_) ::tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
  }
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

private:
  termios before_{};
  bool active_ = false;
};

class Session {
public:
  Session(Context& context, http::Client& client, api::ExecReply started, bool is_terminal)
      : context_(context), client_(client), started_(std::move(started)),
        is_terminal_(is_terminal) {}

  Result<ExitCode> run() {
    for (int misses = 0;;) {
      if (context_.interrupt().pending()) return kill();
      read_input();
      auto reply = client_.call(turn());
      if (!reply && reply.error().code == ErrorCode::cancelled) return kill();
      if (!reply && reply.error().code == ErrorCode::unavailable && ++misses < most_misses) {
        context_.interrupt().sleep(miss_pause);
        continue;
      }
      if (!reply) return fail(std::move(reply).error());
      misses = 0;
      ZED_CHECK(take(reply->state));
      if (reply->state.over) return static_cast<ExitCode>(reply->state.status & 0xFF);
    }
  }

private:
  api::ExecTend turn() const {
    api::ExecTend request;
    request.node = started_.node;
    request.tend.command = started_.command;
    request.tend.offset = offset_;
    request.tend.input_offset = input_offset_;
    request.tend.input = to_base64(input_);
    request.tend.input_ends = input_ends_;
    request.tend.patience = is_terminal_ ? typing_patience : usual_patience;
    return request;
  }

  /// What is there to read now, without waiting.
  void read_input() {
    while (!input_ends_ && input_.size() < most_input) {
      pollfd watched{STDIN_FILENO, POLLIN, 0};
      if (::poll(&watched, 1, 0) <= 0) return;
      std::array<char, 4096> buffer{};
      const ssize_t n = ::read(STDIN_FILENO, buffer.data(), buffer.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0)
        input_ends_ = true;
      else
        input_.append(buffer.data(), static_cast<std::size_t>(n));
    }
  }

  Status take(const CommandState& state) {
    ZED_TRY(std::string bytes, from_base64(state.data, std::size_t{1} << 20));
    context_.print(bytes);
    offset_ = state.offset + static_cast<std::int64_t>(bytes.size());
    const std::int64_t taken = state.input_taken - input_offset_;
    if (taken > 0 && taken <= static_cast<std::int64_t>(input_.size())) {
      input_.erase(0, static_cast<std::size_t>(taken));
      input_offset_ = state.input_taken;
    }
    return {};
  }

  /// Ctrl-C ends the command, as it would at a terminal; the job goes on.
  Result<ExitCode> kill() {
    http::ClientOptions options = client_.options();
    options.time_limit = seconds(5);
    options.interrupt_fd = -1;
    http::Client last(std::move(options));
    api::ExecTend request = turn();
    request.tend.input.clear();
    request.tend.input_offset = input_offset_;
    request.tend.kill = true;
    if (auto reply = last.call(request); !reply)
      context_.note("\nthe command may go on for a minute: " + printable(reply.error().describe()) +
                    "\n");
    return ExitCode::interrupted;
  }

  Context& context_;
  http::Client& client_;
  api::ExecReply started_;
  bool is_terminal_;
  std::string input_;
  std::int64_t input_offset_ = 0;
  bool input_ends_ = false;
  std::int64_t offset_ = 0;
};

}  // namespace

Result<ExitCode> carry_out(Context& context, const ExecCommand& command) {
  if (command.argv.empty())
    return fail(ErrorCode::invalid, "there is no command to run beside " + command.job,
                "zedctl exec " + command.job + " -- nvidia-smi");
  api::Exec request;
  request.job = command.job;
  request.argv = command.argv;
  request.terminal = context.terminal().input && context.terminal().output;
  winsize size{};
  if (request.terminal && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
    request.rows = size.ws_row;
    request.columns = size.ws_col;
  }
  ZED_TRY(request.command, random_uuid());
  ZED_TRY(http::Client * client, context.client());
  ZED_TRY(auto started, client->call(request));
  const RawTerminal raw(request.terminal);
  return Session(context, *client, std::move(started), request.terminal).run();
}

}  // namespace zed::cli
