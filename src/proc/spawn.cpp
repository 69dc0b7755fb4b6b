#include "proc/spawn.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "net/exec.hpp"
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

namespace {

/// The pieces of a posix_spawn, freed together.
class SpawnPlan {
public:
  SpawnPlan() {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
  }
  ~SpawnPlan() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  /// 0 or an errno, as all of posix_spawn.
  int place(const Fd& from, int to) {
    return ::posix_spawn_file_actions_adddup2(&actions_, from.get(), to);
  }
  int clear_signals() {
    sigset_t none;
    sigemptyset(&none);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    return ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK);
  }
  int start(pid_t& pid, const char* program, char* const* argv) {
    return ::posix_spawn(&pid, program, &actions_, &attributes_, argv, environ);
  }

private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

}  // namespace

Status spawn_leaving(const std::filesystem::path& program, std::vector<std::string> arguments,
                     const Fd& inherited, const std::filesystem::path& log) {
  std::string what = "start " + program.string();
  Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  Fd log_file(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!null || !log_file) return fail(system_error(errno, what));
  arguments.insert(arguments.begin(), program.string());
  std::vector<char*> argv = net::pointers_to(arguments);
  SpawnPlan plan;
  pid_t pid = -1;
  int error = plan.clear_signals();
  if (error == 0) error = plan.place(null, 0);
  if (error == 0) error = plan.place(log_file, 1);
  if (error == 0) error = plan.place(log_file, 2);
  // Last: what lies on this descriptor by chance has been placed by then.
  if (error == 0) error = plan.place(inherited, inherited_control_fd);
  if (error == 0) error = plan.start(pid, program.c_str(), argv.data());
  if (error != 0) return fail(system_error(error, what));
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
