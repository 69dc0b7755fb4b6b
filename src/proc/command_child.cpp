#include "proc/command_child.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>

#include "net/exec.hpp"
#include "proc/children.hpp"
#include "proc/start_child.hpp"

namespace zed::proc {
namespace {

using net::Fd;
using net::system_error;

constexpr std::size_t most_arguments = 1000;

/// The three ends that the command gets, and ours.
struct Ends {
  Fd input;  ///< the command's
  Fd output;
  CommandChild ours;
};

Result<Ends> pipe_ends() {
  ZED_TRY(net::Pipe in, net::make_pipe());
  ZED_TRY(net::Pipe out, net::make_pipe());
  Ends ends;
  ends.input = std::move(in.read);
  ends.ours.input = std::move(in.write);
  ends.ours.output = std::move(out.read);
  ends.output = std::move(out.write);
  return ends;
}

Result<Ends> terminal_ends(const StartCommand& question) {
  Ends ends;
  Fd master(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  std::array<char, 128> name{};
  if (!master || ::grantpt(master.get()) != 0 || ::unlockpt(master.get()) != 0 ||
      ::ptsname_r(master.get(), name.data(), name.size()) != 0)
    return fail(system_error(errno, "make a terminal"));
  ends.input.reset(::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  ends.output.reset(::fcntl(ends.input.get(), F_DUPFD_CLOEXEC, 0));
  ends.ours.input.reset(::fcntl(master.get(), F_DUPFD_CLOEXEC, 0));
  if (!ends.input || !ends.output || !ends.ours.input)
    return fail(system_error(errno, "open a terminal"));
  winsize size{};
  size.ws_row = static_cast<unsigned short>(std::clamp<std::int64_t>(question.rows, 1, 1000));
  size.ws_col = static_cast<unsigned short>(std::clamp<std::int64_t>(question.columns, 1, 1000));
  ::ioctl(master.get(), TIOCSWINSZ, &size);
  ends.ours.output = std::move(master);
  return ends;
}

std::vector<std::string> environment_of(const Launch& launch, bool terminal) {
  std::vector<std::string> words = environment_words(launch);
  if (terminal && launch.environment.count("TERM") == 0) words.emplace_back("TERM=xterm-256color");
  return words;
}

Status make_nonblocking(const Fd& fd) {
  if (::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK) == 0) return {};
  return fail(system_error(errno, "prepare a pipe"));
}

}  // namespace

Result<CommandChild> start_command_child(const Launch& launch, const StartCommand& question) {
  const std::vector<std::string>& words = question.argv;
  if (words.empty() || words.front().empty() || words.size() > most_arguments)
    return fail(ErrorCode::invalid, "there is no command to run", "zedctl exec JOB -- COMMAND");
  auto made = question.terminal ? terminal_ends(question) : pipe_ends();
  if (!made) return fail(std::move(made).error());
  Ends ends = std::move(*made);
  ZED_CHECK(make_nonblocking(ends.ours.input));
  ZED_CHECK(make_nonblocking(ends.ours.output));
  const int terminal = question.terminal ? ends.input.get() : -1;
  auto lead_session = [terminal] {
    return ::setsid() >= 0 && (terminal < 0 || ::ioctl(terminal, TIOCSCTTY, 0) == 0);
  };
  ZED_TRY(ends.ours.pid, start_child(launch, {words, environment_of(launch, question.terminal),
                                              ends.input, ends.output, ends.output, lead_session}));
  ends.ours.exit = watch_end(ends.ours.pid);
  return std::move(ends.ours);
}

}  // namespace zed::proc
