#include "net/system.hpp"

#include <array>
#include <cerrno>
#include <climits>
#include <ctime>

#include <mach-o/dyld.h>
#include <unistd.h>

namespace zed::net {
namespace {

Instant read_clock(clockid_t clock) {
  constexpr std::uint64_t nanoseconds_a_millisecond = 1'000'000;
  return {static_cast<std::int64_t>(::clock_gettime_nsec_np(clock) / nanoseconds_a_millisecond)};
}

}  // namespace

void quiet(int socket) {
  ::fcntl(socket, F_SETFD, FD_CLOEXEC);
  const int on = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
}

// There is no accept4: a child that another thread starts at this moment inherits the socket.
Fd accept_now(int listener) {
  Fd fd(::accept(listener, nullptr, nullptr));
  if (!fd) return fd;
  quiet(fd.get());
  ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
  return fd;
}

// fsync(2) of macOS says: "for applications that require tighter guarantees about the integrity of
// their data, Mac OS X provides the F_FULLFSYNC fcntl". Shares and some disks do not know it.
int sync_file(int fd) {
  if (::fcntl(fd, F_FULLFSYNC) == 0) return 0;
  return errno == ENOTSUP || errno == EINVAL || errno == ENOTTY ? ::fsync(fd) : -1;
}

int sync_data(int fd) {
  return sync_file(fd);
}

Result<std::filesystem::path> own_program() {
  std::array<char, PATH_MAX> path{};
  std::uint32_t size = path.size();
  if (::_NSGetExecutablePath(path.data(), &size) != 0)
    return fail(ErrorCode::unsupported, "find the own program: its path is too long",
                "install it in a folder nearer to the root");
  std::error_code error;
  auto real = std::filesystem::canonical(path.data(), error);
  return error ? std::filesystem::path(path.data()) : real;
}

// clock_gettime(3) of macOS: both MONOTONIC clocks go on while the system sleeps, UPTIME does not.
Instant clock_through_sleep() {
  return read_clock(CLOCK_MONOTONIC_RAW);
}

Instant clock_while_awake() {
  return read_clock(CLOCK_UPTIME_RAW);
}

}  // namespace zed::net
