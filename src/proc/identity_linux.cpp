#include <charconv>
#include <fstream>
#include <sstream>

#include "proc/identity.hpp"

namespace zed::proc {
namespace {

std::string read_small_file(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  std::getline(file, text, '\0');
  return text;
}

}  // namespace

std::optional<ProcessIdentity> identity_of(pid_t pid) {
  std::string stat = read_small_file("/proc/" + std::to_string(pid) + "/stat");
  // "pid (name) S ppid …": the name may hold anything, so fields count from the last ')'.
  std::size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(stat.substr(name_end + 1));
  std::string state;
  fields >> state;
  if (state == "Z" || state == "X") return std::nullopt;
  std::string field;
  constexpr int fields_between_state_and_start_time = 18;
  for (int i = 0; i < fields_between_state_and_start_time; ++i)
    fields >> field;
  ProcessIdentity identity;
  identity.pid = pid;
  if (!(fields >> identity.start_ticks)) return std::nullopt;
  identity.boot = read_small_file("/proc/sys/kernel/random/boot_id");
  while (!identity.boot.empty() && identity.boot.back() == '\n')
    identity.boot.pop_back();
  return identity;
}

}  // namespace zed::proc
