#include "bin/machine_facts.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <string>

#include "base/text.hpp"
#include "bin/machine.hpp"
#include "net/files.hpp"

namespace zed::bin {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t longest_fact = 120;

std::string os_name(const std::string& system) {
  return system == "darwin" ? "macos" : system;
}

}  // namespace

std::string fact(std::string_view text) {
  text = trim(text).substr(0, longest_fact);
  return is_valid_utf8(text) ? std::string(text) : std::string();
}

NodeFacts machine_facts(const fs::path& root) {
  NodeFacts facts;
  facts.version = ZED_VERSION;
  utsname system{};
  if (::uname(&system) == 0) {
    facts.os = os_name(lower(system.sysname));
    facts.os_version = os_version(root);
    facts.cpu_arch = system.machine;
  }
  facts.cpu_model = cpu_model(root);
  facts.cpus = ::sysconf(_SC_NPROCESSORS_ONLN);
  facts.memory = {std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE)};
  facts.power = power_source(root);
  facts.rocm = fact(net::read_file(root / "opt/rocm/.info/version", kibibytes(4)).value_or(""));
  return facts;
}

}  // namespace zed::bin
