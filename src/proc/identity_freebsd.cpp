#include <array>

#include <sys/param.h>
#include <sys/sysctl.h>
#include <sys/time.h>
#include <sys/user.h>

#include "proc/identity.hpp"

namespace zed::proc {
namespace {

/// Random and new with each boot. Kernels that do not have it leave a process to be told by its
/// start alone, in microseconds since the boot.
std::string boot_id() {
  std::array<char, 64> text{};
  std::size_t size = text.size() - 1;
  if (::sysctlbyname("kern.boot_id", text.data(), &size, nullptr, 0) != 0) return "unknown";
  return text.data();
}

std::int64_t microseconds(const timeval& time) {
  return std::int64_t{time.tv_sec} * 1'000'000 + time.tv_usec;
}

}  // namespace

std::optional<ProcessIdentity> identity_of(pid_t pid) {
  std::array<int, 4> name{CTL_KERN, KERN_PROC, KERN_PROC_PID, pid};
  kinfo_proc process{};
  std::size_t size = sizeof process;
  if (::sysctl(name.data(), name.size(), &process, &size, nullptr, 0) != 0 ||
      size < sizeof process || process.ki_stat == SZOMB)
    return std::nullopt;
  // The kernel keeps the start since the boot and adds the wall time of the boot, which moves when
  // somebody sets the clock; taken off again, what is left stays the same.
  timeval boot{};
  std::size_t boot_size = sizeof boot;
  if (::sysctlbyname("kern.boottime", &boot, &boot_size, nullptr, 0) != 0) return std::nullopt;
  return ProcessIdentity{boot_id(), pid, microseconds(process.ki_start) - microseconds(boot)};
}

}  // namespace zed::proc
