// macOS and FreeBSD.
#include <array>
#include <cerrno>
#include <cstdint>
#include <string>

#include <fcntl.h>
#include <signal.h>
#include <sys/event.h>
#include <unistd.h>
#if defined(__FreeBSD__)
#include <sys/procctl.h>
#endif

#include "proc/children.hpp"

namespace zed::proc {
namespace {

struct kevent change_of(std::uintptr_t ident, std::int16_t filter, std::uint32_t notes = 0) {
  struct kevent change {};
  EV_SET(&change, ident, filter, EV_ADD | EV_CLEAR, notes, 0, nullptr);
  return change;
}

bool add(const net::Fd& queue, const struct kevent& change) {
  return ::kevent(queue.get(), &change, 1, nullptr, 0, nullptr) == 0;
}

net::Fd new_queue() {
  net::Fd queue(::kqueue());
  if (queue) ::fcntl(queue.get(), F_SETFD, FD_CLOEXEC);
  return queue;
}

void nothing(int) {}

}  // namespace

Status SignalWatch::open(std::initializer_list<int> signals) {
  fd_ = new_queue();
  if (!fd_) return fail(net::system_error(errno, "watch signals"));
  sigset_t watched;
  sigemptyset(&watched);
  for (int signal : signals) {
    // kqueue(2): a signal is seen though it is blocked, but SIGCHLD only if it is not ignored,
    // which is what its default amounts to.
    struct sigaction action {};
    action.sa_handler = nothing;
    action.sa_flags = SA_RESTART;
    ::sigaction(signal, &action, nullptr);
    sigaddset(&watched, signal);
    if (!add(fd_, change_of(static_cast<std::uintptr_t>(signal), EVFILT_SIGNAL)))
      return fail(net::system_error(errno, "watch signal " + std::to_string(signal)));
  }
  ::sigprocmask(SIG_BLOCK, &watched, nullptr);
  return {};
}

std::vector<int> SignalWatch::take() {
  std::array<struct kevent, 16> events{};
  const timespec at_once{};
  const int n = ::kevent(fd_.get(), nullptr, 0, events.data(), events.size(), &at_once);
  std::vector<int> taken;
  for (int i = 0; i < n; ++i)
    taken.push_back(static_cast<int>(events[static_cast<std::size_t>(i)].ident));
  return taken;
}

net::Fd watch_end(pid_t child) {
  net::Fd queue = new_queue();
  if (!queue || add(queue, change_of(static_cast<std::uintptr_t>(child), EVFILT_PROC, NOTE_EXIT)))
    return queue;
  if (errno != ESRCH) return {};
  // It ended before we looked. An event of our own stands for it.
  constexpr std::uintptr_t own = 1;
  if (!add(queue, change_of(own, EVFILT_USER)) ||
      !add(queue, change_of(own, EVFILT_USER, NOTE_TRIGGER)))
    return {};
  return queue;
}

bool end_with(pid_t parent) {
#if defined(__FreeBSD__)
  int signal = SIGKILL;
  if (::procctl(P_PID, 0, PROC_PDEATHSIG_CTL, &signal) != 0) return false;
#endif
  if (::getppid() != parent) ::_exit(127);  // it is gone already
  return true;
}

}  // namespace zed::proc
