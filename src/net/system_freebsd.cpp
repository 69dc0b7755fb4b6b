#include "net/system.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <ctime>
#include <limits>

#include <sys/sysctl.h>
#include <unistd.h>

namespace zed::net {
namespace {

Instant read_clock(clockid_t clock) {
  std::timespec time{};
  ::clock_gettime(clock, &time);
  return {time.tv_sec * 1000 + time.tv_nsec / 1'000'000};
}

}  // namespace

Result<std::filesystem::path> own_program() {
  std::array<int, 4> name{CTL_KERN, KERN_PROC, KERN_PROC_PATHNAME, -1};
  std::array<char, PATH_MAX> path{};
  std::size_t size = path.size();
  if (::sysctl(name.data(), name.size(), path.data(), &size, nullptr, 0) != 0 || size < 2)
    return fail(system_error(errno, "find the own program"));
  return std::filesystem::path(path.data());
}

// No clock of FreeBSD counts the time of a sleep but the wall clock, which is set again after it. A
// step forward of that one passes for a sleep too: a lease then ends early, never late.
Instant clock_through_sleep() {
  static std::atomic<std::int64_t> ahead{std::numeric_limits<std::int64_t>::min()};
  const Instant awake = clock_while_awake();
  const std::int64_t now_ahead = read_clock(CLOCK_REALTIME).ms - awake.ms;
  std::int64_t most = ahead.load();
  while (now_ahead > most && !ahead.compare_exchange_weak(most, now_ahead)) {
  }
  return {awake.ms + std::max(most, now_ahead)};
}

Instant clock_while_awake() {
  return read_clock(CLOCK_UPTIME);
}

}  // namespace zed::net
