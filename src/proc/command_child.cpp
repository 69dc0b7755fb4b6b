#include "proc/command_child.hpp"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>

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

Status make_pipe(Fd& reads, Fd& writes) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail(system_error(errno, "make a pipe"));
  reads.reset(ends[0]);
  writes.reset(ends[1]);
  return {};
}

Result<Ends> pipe_ends() {
  Ends ends;
  ZED_CHECK(make_pipe(ends.input, ends.ours.input));
  ZED_CHECK(make_pipe(ends.ours.output, ends.output));
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

/// Between fork and exec: only async-signal-safe calls, since the agent has threads.
struct Setup {
  const Launch& launch;
  bool terminal;
  char* const* argv;
  char* const* envp;
  int input;
  int output;
  int failure;

  [[noreturn]] void give_up() const {
    int reason = errno;
    [[maybe_unused]] auto written = ::write(failure, &reason, sizeof reason);
    ::_exit(127);
  }

  bool become_user() const {
    if (!launch.uid) return true;
    auto gid = static_cast<gid_t>(launch.gid.value_or(*launch.uid));
    return ::setgroups(1, &gid) == 0 && ::setgid(gid) == 0 &&
           ::setuid(static_cast<uid_t>(*launch.uid)) == 0;
  }

  [[noreturn]] void run() const {
    if (::setsid() < 0) give_up();
    if (terminal && ::ioctl(input, TIOCSCTTY, 0) != 0) give_up();
    if (!become_user()) give_up();
    // After the uid change, which clears it: what beside a job ends with its agent.
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) give_up();
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::signal(SIGPIPE, SIG_DFL);
    if (::dup2(input, 0) < 0 || ::dup2(output, 1) < 0 || ::dup2(output, 2) < 0) give_up();
    if (::chdir(launch.directory.c_str()) != 0) give_up();
    ::execvpe(argv[0], argv, envp);
    give_up();
  }
};

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> environment_of(const Launch& launch, bool terminal) {
  std::vector<std::string> words;
  for (const auto& [name, value] : launch.environment)
    words.push_back(name + "=" + value);
  if (terminal && launch.environment.count("TERM") == 0) words.emplace_back("TERM=xterm-256color");
  return words;
}

Status make_nonblocking(const Fd& fd) {
  if (::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK) == 0) return {};
  return fail(system_error(errno, "prepare a pipe"));
}

}  // namespace

Result<CommandChild> start_command_child(const Launch& launch, const StartCommand& question) {
  std::vector<std::string> words = question.argv;
  if (words.empty() || words.front().empty() || words.size() > most_arguments)
    return fail(ErrorCode::invalid, "there is no command to run", "zedctl exec JOB -- COMMAND");
  const std::string what = "start " + words.front();
  auto made = question.terminal ? terminal_ends(question) : pipe_ends();
  if (!made) return fail(std::move(made).error());
  Ends ends = std::move(*made);
  ZED_CHECK(make_nonblocking(ends.ours.input));
  ZED_CHECK(make_nonblocking(ends.ours.output));
  Fd failed;
  Fd failure;
  ZED_CHECK(make_pipe(failed, failure));
  std::vector<std::string> environment = environment_of(launch, question.terminal);
  std::vector<char*> argv = pointers_to(words);
  std::vector<char*> envp = pointers_to(environment);
  const Setup setup{launch,           question.terminal, argv.data(),  envp.data(),
                    ends.input.get(), ends.output.get(), failure.get()};
  ends.ours.pid = ::fork();
  if (ends.ours.pid < 0) return fail(system_error(errno, what));
  if (ends.ours.pid == 0) setup.run();
  failure.reset();
  int reason = 0;
  if (::read(failed.get(), &reason, sizeof reason) != sizeof reason) {
    ends.ours.exit.reset(static_cast<int>(::syscall(SYS_pidfd_open, ends.ours.pid, 0)));
    return std::move(ends.ours);
  }
  while (::waitpid(ends.ours.pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return fail(system_error(reason, what));
}

}  // namespace zed::proc
