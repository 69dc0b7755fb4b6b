#include <sys/sysctl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdint>
#include <optional>

#include "bin/machine_bsd.hpp"

namespace zed::bin {
namespace {

namespace fs = std::filesystem;

/// Integers of sysctl have 4 or 8 bytes.
std::optional<std::int64_t> number(const char* name) {
  std::int64_t wide = 0;
  std::size_t size = sizeof wide;
  if (::sysctlbyname(name, &wide, &size, nullptr, 0) != 0) return std::nullopt;
  if (size == sizeof(std::int32_t)) {
    std::int32_t narrow = 0;
    size = sizeof narrow;
    if (::sysctlbyname(name, &narrow, &size, nullptr, 0) != 0) return std::nullopt;
    return narrow;
  }
  return size == sizeof wide ? std::optional(wide) : std::nullopt;
}

}  // namespace

std::string os_version(const fs::path&) {
  utsname system{};
  return ::uname(&system) == 0 ? fact(std::string("FreeBSD ") + system.release) : std::string();
}

std::string cpu_model(const fs::path&) {
  return sysctl_word("hw.model");
}

std::string power_source(const fs::path&) {
  const auto mains = number("hw.acpi.acline");
  if (!mains || number("hw.acpi.battery.units").value_or(0) == 0) return {};
  return *mains == 1 ? "mains" : "battery";
}

Bytes free_memory() {
  std::int64_t pages = 0;
  for (const char* name :
       {"vm.stats.vm.v_free_count", "vm.stats.vm.v_inactive_count", "vm.stats.vm.v_laundry_count"})
    pages += number(name).value_or(0);
  return {pages * ::sysconf(_SC_PAGESIZE)};
}

}  // namespace zed::bin
