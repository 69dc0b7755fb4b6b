#include "cli/context.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "cli/dev_fleet.hpp"
#include "cli/fleets.hpp"
#include "cli/render.hpp"
#include "http/status.hpp"

namespace zed::cli {
namespace {

constexpr std::size_t narrowest_terminal = 40;

/// Written by the signal's handler: nothing else may touch it.
int interrupt_pipe = -1;

extern "C" void on_interrupt(int) {
  const int saved = errno;
  [[maybe_unused]] auto written = ::write(interrupt_pipe, "x", 1);
  errno = saved;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Where a controller puts its socket if nobody says where (bin/init.hpp default_state).
std::vector<std::string> usual_sockets() {
  std::string state = environment("XDG_STATE_HOME");
  if (state.empty()) state = environment("HOME") + "/.local/state";
  return {"/run/zed/controller.sock", "/var/lib/zed/controller/controller.sock",
          state + "/zed/controller/controller.sock"};
}

WallTime wall_now() {
  timeval now{};
  ::gettimeofday(&now, nullptr);
  return {std::int64_t{now.tv_sec} * 1000 + now.tv_usec / 1000};
}

std::int64_t utc_offset_of(WallTime time) {
  const std::time_t seconds_since_epoch = time.ms / 1000;
  std::tm local{};
  ::localtime_r(&seconds_since_epoch, &local);
  return local.tm_gmtoff;
}

/// The next command for errors that come without one.
std::string usual_hint(ErrorCode code) {
  switch (code) {
  case ErrorCode::unavailable: return "zedctl dev status, or name a controller by --socket";
  case ErrorCode::timeout: return "zedctl status and zedctl events tell whether it was done";
  case ErrorCode::stale: return "the fleet has moved on: look again and repeat the command";
  case ErrorCode::busy: return "try again in a moment";
  case ErrorCode::no_space: return "zedctl nodes shows the free space of each";
  case ErrorCode::unplaceable: return "zedctl match --requires KEY=VALUE shows what there is";
  case ErrorCode::cancelled: return "what was asked may go on: zedctl jobs and zedctl events tell";
  case ErrorCode::internal: return "this is a bug in Zed: please report it with zedctl version";
  case ErrorCode::invalid:
  case ErrorCode::not_found:
  case ErrorCode::exists:
  case ErrorCode::refused:
  case ErrorCode::conflict:
  case ErrorCode::io:
  case ErrorCode::corrupt:
  case ErrorCode::unsupported: return "";
  }
  return "";
}

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      // A full disk must not look like success; a closed pipe has ended us by its signal.
      if (fd == STDOUT_FILENO) std::_Exit(static_cast<int>(ExitCode::error));
      return;
    }
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

}  // namespace

Terminal Terminal::detect() {
  Terminal terminal;
  terminal.input = ::isatty(STDIN_FILENO) == 1;
  terminal.output = ::isatty(STDOUT_FILENO) == 1;
  terminal.error = ::isatty(STDERR_FILENO) == 1;
  const std::string term = environment("TERM");
  terminal.colour = environment("NO_COLOR").empty() && !term.empty() && term != "dumb";
  winsize size{};
  if (terminal.output && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    terminal.width = std::max<std::size_t>(size.ws_col, narrowest_terminal);
  else if (terminal.output)
    terminal.width = 80;
  return terminal;
}

Interrupt::Interrupt() {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return;
  for (int end : ends) {
    ::fcntl(end, F_SETFD, FD_CLOEXEC);
    ::fcntl(end, F_SETFL, O_NONBLOCK);
  }
  fd_ = ends[0];
  interrupt_pipe = ends[1];
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  // A second Ctrl-C ends us the usual way, should the first one not.
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
}

bool Interrupt::pending() const {
  pollfd watched{fd_, POLLIN, 0};
  return fd_ >= 0 && ::poll(&watched, 1, 0) > 0;
}

bool Interrupt::sleep(Millis time) const {
  pollfd watched{fd_, POLLIN, 0};
  ::poll(&watched, fd_ >= 0 ? 1 : 0, static_cast<int>(time.value));
  return !pending();
}

Result<http::ClientOptions> find_controller(const std::string& asked) {
  const auto at_socket = [](std::string path) {
    http::ClientOptions options;
    options.socket_path = std::move(path);
    return options;
  };
  if (!asked.empty()) return at_socket(asked);
  if (std::string named = environment("ZED_CONTROLLER"); !named.empty()) return at_socket(named);
  ZED_TRY(const auto fleet, current_fleet());
  if (fleet) {
    http::ClientOptions options;
    ZED_TRY(options.remote, door_of(*fleet));
    return options;
  }
  if (auto dev = current_dev_fleet()) return at_socket(dev->socket);
  for (const std::string& path : usual_sockets()) {
    struct stat info {};
    if (::stat(path.c_str(), &info) == 0) return at_socket(path);
  }
  return fail(ErrorCode::unavailable, "no controller is known on this machine",
              "zedctl dev up starts a development fleet, zedctl login uses one elsewhere; "
              "ZED_CONTROLLER or --socket name a socket");
}

Context::Context(Common options, Terminal terminal, const Interrupt& interrupt)
    : options_(std::move(options)), terminal_(terminal), interrupt_(interrupt) {
  if (options_.no_color) terminal_.colour = false;
}

View Context::view() const {
  const WallTime now = wall_now();
  return {terminal_.width, terminal_.output && terminal_.colour, options_.wide, now,
          utc_offset_of(now)};
}

View Context::error_view() const {
  View view = this->view();
  view.colour = terminal_.error && terminal_.colour;
  return view;
}

Result<http::Client*> Context::client() {
  if (!client_) {
    ZED_TRY(http::ClientOptions options, find_controller(options_.socket));
    options.interrupt_fd = interrupt_.fd();
    client_.emplace(std::move(options));
  }
  return &*client_;
}

void Context::print(std::string_view text) const {
  write_all(STDOUT_FILENO, text);
}

void Context::note(std::string_view text) const {
  write_all(STDERR_FILENO, text);
}

ExitCode Context::report(Error error) const {
  if (error.hint.empty()) error.hint = usual_hint(error.code);
  if (options_.json)
    print(http::error_body(error));
  else
    note(render(error, error_view()));
  return exit_code_of(error.code);
}

Result<bool> Context::confirm(std::string_view question) const {
  if (options_.yes) return true;
  if (!terminal_.input || !terminal_.error)
    return fail(ErrorCode::refused, "nobody is at a terminal to confirm this",
                "look at what it says above, then add --yes");
  note(std::string(question) + " [y/N] ");
  std::string answer;
  char c = 0;
  while (c != '\n' && answer.size() < 16) {
    std::array<pollfd, 2> watched{{{STDIN_FILENO, POLLIN, 0}, {interrupt_.fd(), POLLIN, 0}}};
    if (::poll(watched.data(), watched.size(), -1) < 0 && errno == EINTR) continue;
    if (interrupt_.pending())
      return fail(ErrorCode::cancelled, "nothing was done", "the same command asks again");
    if (::read(STDIN_FILENO, &c, 1) != 1) break;
    if (c != '\n') answer += c;
  }
  return answer == "y" || answer == "yes" || answer == "Y";
}

}  // namespace zed::cli
