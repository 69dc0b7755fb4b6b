#include "bin/machine_facts.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "base/text.hpp"

namespace zed::bin {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t longest_file = std::size_t{64} << 10;
constexpr std::size_t longest_fact = 120;

std::string os_name(const std::string& system) {
  return system == "darwin" ? "macos" : system;
}

/// The beginning of a small file; empty if there is none.
std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(longest_file, '\0');
  file.read(text.data(), static_cast<std::streamsize>(longest_file));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount())));
  return text;
}

std::string fact(std::string_view text) {
  text = trim(text).substr(0, longest_fact);
  return is_valid_utf8(text) ? std::string(text) : std::string();
}

/// What stands behind `key` at a line's beginning, up to the line's end.
std::string value_of(const std::string& text, std::string_view key) {
  for (const std::string& line : split(text, '\n'))
    if (std::string_view(line).starts_with(key)) return fact(line.substr(key.size()));
  return {};
}

std::string os_version(const fs::path& root, const utsname& system) {
  std::string name = value_of(text_of(root / "etc/os-release"), "PRETTY_NAME=");
  std::erase(name, '"');
  std::string kernel = fact(system.release);
  return name.empty() ? kernel : name + ", kernel " + kernel;
}

/// x86 names itself; of ARM boards the device tree has a name.
std::string cpu_model(const fs::path& root) {
  std::string text = text_of(root / "proc/cpuinfo");
  for (const char* key : {"model name", "Hardware", "cpu model"}) {
    std::string value = value_of(text, key);
    if (std::size_t colon = value.find(':'); colon != std::string::npos)
      return fact(value.substr(colon + 1));
  }
  std::string board = text_of(root / "proc/device-tree/model");
  return fact(board.substr(0, board.find('\0')));
}

/// "mains" or "battery" where there is a battery that powers the machine; one of a mouse has the
/// scope "Device".
std::string power_source(const fs::path& root) {
  bool battery = false;
  bool mains = false;
  std::error_code error;
  for (fs::directory_iterator entry(root / "sys/class/power_supply", error), end;
       !error && entry != end; entry.increment(error)) {
    std::string kind = fact(text_of(entry->path() / "type"));
    if (fact(text_of(entry->path() / "scope")) == "Device") continue;
    bool online = fact(text_of(entry->path() / "online")) == "1";
    battery = battery || kind == "Battery";
    mains = mains || (online && (kind == "Mains" || kind.starts_with("USB")));
  }
  if (!battery) return {};
  return mains ? "mains" : "battery";
}

}  // namespace

NodeFacts machine_facts(const fs::path& root) {
  NodeFacts facts;
  facts.version = ZED_VERSION;
  utsname system{};
  if (::uname(&system) == 0) {
    facts.os = os_name(lower(system.sysname));
    facts.os_version = os_version(root, system);
    facts.cpu_arch = system.machine;
  }
  facts.cpu_model = cpu_model(root);
  facts.cpus = ::sysconf(_SC_NPROCESSORS_ONLN);
  facts.memory = {std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE)};
  facts.power = power_source(root);
  facts.rocm = fact(text_of(root / "opt/rocm/.info/version"));
  return facts;
}

}  // namespace zed::bin
