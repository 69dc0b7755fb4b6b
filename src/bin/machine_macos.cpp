#include <mach/mach.h>
#include <sys/sysctl.h>
#include <unistd.h>

#include "bin/machine_bsd.hpp"
#include "net/tool.hpp"

namespace zed::bin {
namespace {
namespace fs = std::filesystem;
}  // namespace

std::string os_version(const fs::path&) {
  const std::string version = sysctl_word("kern.osproductversion");
  return version.empty() ? std::string() : "macOS " + version;
}

std::string cpu_model(const fs::path&) {
  return sysctl_word("machdep.cpu.brand_string");
}

// "Now drawing from 'Battery Power'", then a line for each battery. The answer of the frameworks,
// which only a Mac can link with.
std::string power_source(const fs::path&) {
  const auto said = net::run_tool({"pmset", "-g", "batt"}, seconds(5));
  if (!said || said->out.find("InternalBattery") == std::string::npos) return {};
  return said->out.find("'AC Power'") != std::string::npos ? "mains" : "battery";
}

Bytes free_memory() {
  vm_statistics64 pages{};
  mach_msg_type_number_t count = HOST_VM_INFO64_COUNT;
  const mach_port_t host = ::mach_host_self();
  const bool told =
      ::host_statistics64(host, HOST_VM_INFO64, reinterpret_cast<host_info64_t>(&pages), &count) ==
      KERN_SUCCESS;
  ::mach_port_deallocate(::mach_task_self(), host);
  if (!told) return {};
  const std::int64_t free = std::int64_t{pages.free_count} + pages.inactive_count;
  return {free * ::sysconf(_SC_PAGESIZE)};
}

}  // namespace zed::bin
