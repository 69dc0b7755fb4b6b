#include <array>

#include <libproc.h>
#include <sys/proc.h>
#include <sys/sysctl.h>

#include "proc/identity.hpp"

namespace zed::proc {
namespace {

std::string boot_id() {
  std::array<char, 64> text{};
  std::size_t size = text.size() - 1;
  if (::sysctlbyname("kern.bootsessionuuid", text.data(), &size, nullptr, 0) != 0) return "unknown";
  return text.data();
}

}  // namespace

std::optional<ProcessIdentity> identity_of(pid_t pid) {
  proc_bsdinfo info{};
  // Fails for a zombie. The start is what the clock showed then; setting the clock later does not
  // change what was noted.
  if (::proc_pidinfo(pid, PROC_PIDTBSDINFO, 0, &info, sizeof info) != sizeof info ||
      info.pbi_status == SZOMB)
    return std::nullopt;
  const auto start =
      static_cast<std::int64_t>(info.pbi_start_tvsec * 1'000'000 + info.pbi_start_tvusec);
  return ProcessIdentity{boot_id(), pid, start};
}

}  // namespace zed::proc
