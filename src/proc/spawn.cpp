#include "proc/spawn.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "net/exec.hpp"
#include "net/spawn.hpp"
#include "proc/control.hpp"

namespace zed::proc {
namespace {

using net::Fd;
using net::system_error;

struct DetachedChild {
  const char* program;
  char* const* argv;
  int inherited;
  int null;
  int log;
  int failure;

  [[noreturn]] void give_up() const {
    int reason = errno;
    [[maybe_unused]] auto written = ::write(failure, &reason, sizeof reason);
    ::_exit(127);
  }

  // Only async-signal-safe calls: the parent may have threads.
  [[noreturn]] void run() const {
    if (::setsid() < 0) give_up();
    pid_t grandchild = ::fork();
    if (grandchild < 0) give_up();
    if (grandchild > 0) ::_exit(0);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    if (::dup2(null, 0) < 0 || ::dup2(log, 1) < 0 || ::dup2(log, 2) < 0) give_up();
    // dup2 onto itself would keep close-on-exec.
    if (inherited == 3 ? ::fcntl(3, F_SETFD, 0) < 0 : ::dup2(inherited, 3) < 0) give_up();
    ::execv(program, argv);
    give_up();
  }
};

}  // namespace

Status spawn_detached(const std::filesystem::path& program, std::vector<std::string> arguments,
                      const Fd& inherited, const std::filesystem::path& log) {
  std::string what = "start " + program.string();
  Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  Fd log_file(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!null || !log_file) return fail(system_error(errno, what));
  ZED_TRY(net::Pipe ends, net::make_pipe());
  // Descriptor 3 is overwritten by the inherited one: what must survive until exec stays above.
  Fd failure(::fcntl(ends.write.get(), F_DUPFD_CLOEXEC, 10));
  arguments.insert(arguments.begin(), program.string());
  std::vector<char*> argv = net::pointers_to(arguments);
  DetachedChild child{program.c_str(), argv.data(),    inherited.get(),
                      null.get(),      log_file.get(), failure.get()};
  pid_t pid = ::fork();
  if (pid < 0) return fail(system_error(errno, what));
  if (pid == 0) child.run();
  ends.write.reset();
  failure.reset();
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  int reason = 0;
  if (::read(ends.read.get(), &reason, sizeof reason) == sizeof reason)
    return fail(system_error(reason, what));
  return {};
}

Status spawn_leaving(const std::filesystem::path& program, std::vector<std::string> arguments,
                     const Fd& inherited, const std::filesystem::path& log) {
  std::string what = "start " + program.string();
  Fd log_file(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!log_file) return fail(system_error(errno, what));
  arguments.insert(arguments.begin(), program.string());
  net::Spawn spawn;
  spawn.give_null(0);
  spawn.give(log_file, 1);
  spawn.give(log_file, 2);
  // Last: what lies on this descriptor by chance has been placed by then.
  spawn.give(inherited, inherited_control_fd);
  ZED_TRY(pid_t pid, spawn.start(what, program.string(), std::move(arguments)));
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return fail(ErrorCode::io, what + ": it ended at once", "its last words are in " + log.string());
}

Status leave_for_background() {
  ::setsid();
  pid_t child = ::fork();
  if (child < 0) return fail(system_error(errno, "leave for the background"));
  if (child > 0) ::_exit(0);
  return {};
}

}  // namespace zed::proc
