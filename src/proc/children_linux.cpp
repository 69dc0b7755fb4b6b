#include <array>
#include <cerrno>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proc/children.hpp"

namespace zed::proc {

Status SignalWatch::open(std::initializer_list<int> signals) {
  sigset_t watched;
  sigemptyset(&watched);
  for (int signal : signals)
    sigaddset(&watched, signal);
  ::sigprocmask(SIG_BLOCK, &watched, nullptr);
  fd_.reset(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_) return fail(net::system_error(errno, "watch signals"));
  return {};
}

std::vector<int> SignalWatch::take() {
  std::array<signalfd_siginfo, 16> infos{};
  const ssize_t n = ::read(fd_.get(), infos.data(), sizeof infos);
  std::vector<int> taken;
  for (std::size_t i = 0; n > 0 && i < static_cast<std::size_t>(n) / sizeof infos[0]; ++i)
    taken.push_back(static_cast<int>(infos[i].ssi_signo));
  return taken;
}

net::Fd watch_end(pid_t child) {
  return net::Fd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
}

bool end_with(pid_t parent) {
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return false;
  if (::getppid() != parent) ::_exit(127);  // it is gone already
  return true;
}

}  // namespace zed::proc
