#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>

#include "base/number.hpp"
#include "base/text.hpp"
#include "proc/process_table.hpp"

namespace zed::proc {
namespace {

constexpr std::size_t longest = std::size_t{2} << 20;

std::string start_of(pid_t pid, const char* name) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/" + name, std::ios::binary);
  std::string text;
  std::array<char, 16384> part;
  while (text.size() < longest && file.read(part.data(), part.size()).gcount() > 0)
    text.append(part.data(), static_cast<std::size_t>(file.gcount()));
  return text;
}

/// Entries that NUL ends; one that was cut off is left out.
std::vector<std::string> entries_of(pid_t pid, const char* name) {
  std::string text = start_of(pid, name);
  text.resize(text.rfind('\0') == std::string::npos ? 0 : text.rfind('\0'));
  return text.empty() ? std::vector<std::string>{} : split(text, '\0');
}

std::optional<ProcessEntry> entry_of(pid_t pid) {
  const std::string text = start_of(pid, "stat");
  // "17 (name) S 1 …": the name may hold anything, parentheses too.
  const std::size_t name_end = text.rfind(')');
  char state = 0;
  int parent = 0;
  if (name_end == std::string::npos ||
      std::sscanf(text.c_str() + name_end + 1, " %c %d", &state, &parent) != 2)
    return std::nullopt;
  return ProcessEntry{pid, parent, std::string_view("TtZX").find(state) != std::string_view::npos};
}

}  // namespace

std::vector<ProcessEntry> all_processes() {
  namespace fs = std::filesystem;
  std::vector<ProcessEntry> processes;
  std::error_code error;
  for (auto entry = fs::directory_iterator("/proc", error); !error && entry != fs::end(entry);
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const auto pid = parse_number<pid_t>(name);
    if (!pid) continue;
    if (auto process = entry_of(*pid)) processes.push_back(*process);
  }
  return processes;
}

std::vector<std::string> arguments_of(pid_t pid) {
  return entries_of(pid, "cmdline");
}

std::vector<std::string> environment_of(pid_t pid) {
  return entries_of(pid, "environ");
}

}  // namespace zed::proc
