#include "proc/start_child.hpp"

#include <grp.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "net/exec.hpp"
#include "proc/children.hpp"

namespace zed::proc {
namespace {

/// The new process between fork and exec. Async-signal-safe calls only.
struct ChildSetup {
  const Launch& launch;
  const NewChild& child;
  char* const* argv;
  char* const* envp;
  int failure;  ///< an errno is written here if exec does not happen
  pid_t parent;

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

  bool take_streams() const {
    return ::dup2(child.input.get(), 0) >= 0 && ::dup2(child.output.get(), 1) >= 0 &&
           ::dup2(child.error.get(), 2) >= 0;
  }

  [[noreturn]] void run() const {
    if (!child.begin() || !become_user()) give_up();
    // After the change of the uid, which clears it.
    if (!end_with(parent)) give_up();
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::signal(SIGPIPE, SIG_DFL);
    if (!take_streams() || ::chdir(launch.directory.c_str()) != 0) give_up();
    // Its own PATH says where its program is, not ours.
    environ = const_cast<char**>(envp);
    ::execvp(argv[0], argv);
    give_up();
  }
};

/// 0 once the child has become its program, else the errno that it left. It is reaped then.
int wait_for_exec(net::Pipe& failure, pid_t child) {
  failure.write.reset();
  int reason = 0;
  ssize_t n = 0;
  do
    n = ::read(failure.read.get(), &reason, sizeof reason);
  while (n < 0 && errno == EINTR);
  if (n != sizeof reason) return 0;
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return reason;
}

}  // namespace

std::vector<std::string> environment_words(const Launch& launch) {
  std::vector<std::string> words;
  words.reserve(launch.environment.size());
  for (const auto& [name, value] : launch.environment)
    words.push_back(name + "=" + value);
  return words;
}

Result<pid_t> start_child(const Launch& launch, NewChild child) {
  const std::string what = "start \"" + child.argv.front() + "\" in " + launch.directory;
  std::vector<char*> argv = net::pointers_to(child.argv);
  std::vector<char*> envp = net::pointers_to(child.environment);
  ZED_TRY(net::Pipe failure, net::make_pipe());
  const ChildSetup setup{launch, child, argv.data(), envp.data(), failure.write.get(), ::getpid()};
  pid_t pid = ::fork();
  if (pid < 0) return fail(net::system_error(errno, what));
  if (pid == 0) setup.run();
  if (int reason = wait_for_exec(failure, pid)) return fail(net::system_error(reason, what));
  return pid;
}

}  // namespace zed::proc
