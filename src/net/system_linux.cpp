#include "net/system.hpp"

#include <cerrno>
#include <ctime>

#include <sys/random.h>
#include <unistd.h>

namespace zed::net {
namespace {

Instant read_clock(clockid_t clock) {
  std::timespec time{};
  ::clock_gettime(clock, &time);
  return {time.tv_sec * 1000 + time.tv_nsec / 1'000'000};
}

}  // namespace

void fill_random(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::getrandom(bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    ZED_ASSERT(got > 0);
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

Result<std::filesystem::path> own_program() {
  std::error_code error;
  auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error)
    return fail(ErrorCode::unsupported, "find the own program: " + error.message(), "mount /proc");
  return path;
}

Instant clock_through_sleep() {
  return read_clock(CLOCK_BOOTTIME);
}

Instant clock_while_awake() {
  return read_clock(CLOCK_MONOTONIC);
}

}  // namespace zed::net
