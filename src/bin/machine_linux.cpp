#include <sys/sysinfo.h>
#include <sys/utsname.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "base/number.hpp"
#include "base/text.hpp"
#include "bin/machine.hpp"

namespace zed::bin {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t longest_file = std::size_t{64} << 10;

/// The beginning of a small file; empty if there is none.
std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(longest_file, '\0');
  file.read(text.data(), static_cast<std::streamsize>(longest_file));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount())));
  return text;
}

/// What stands behind `key` at a line's beginning, up to the line's end.
std::string value_of(const std::string& text, std::string_view key) {
  for (const std::string& line : split(text, '\n'))
    if (std::string_view(line).starts_with(key)) return fact(line.substr(key.size()));
  return {};
}

}  // namespace

std::string os_version(const fs::path& root) {
  utsname system{};
  ::uname(&system);
  std::string name = value_of(text_of(root / "etc/os-release"), "PRETTY_NAME=");
  std::erase(name, '"');
  std::string kernel = fact(system.release);
  return name.empty() ? kernel : name + ", kernel " + kernel;
}

// x86 names itself; of ARM boards the device tree has a name.
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

// A battery of a mouse has the scope "Device".
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

Bytes free_memory() {
  const std::string available = value_of(text_of("/proc/meminfo"), "MemAvailable:");
  const auto kibibytes_left = parse_number<std::int64_t>(available.substr(0, available.find(' ')));
  if (kibibytes_left) return kibibytes(*kibibytes_left);
  struct sysinfo info {};
  if (::sysinfo(&info) != 0) return {};
  return {static_cast<std::int64_t>(info.freeram + info.bufferram) * info.mem_unit};
}

}  // namespace zed::bin
