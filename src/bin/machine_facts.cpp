#include "bin/machine_facts.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include "base/text.hpp"

namespace zed::bin {
namespace {

std::string os_name(const std::string& system) {
  return system == "darwin" ? "macos" : system;
}

}  // namespace

NodeFacts machine_facts() {
  NodeFacts facts;
  facts.version = ZED_VERSION;
  utsname system{};
  if (::uname(&system) == 0) {
    facts.os = os_name(lower(system.sysname));
    facts.cpu_arch = system.machine;
  }
  facts.cpus = ::sysconf(_SC_NPROCESSORS_ONLN);
  facts.memory = {std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE)};
  return facts;
}

}  // namespace zed::bin
