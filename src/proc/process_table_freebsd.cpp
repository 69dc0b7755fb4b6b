#include <array>
#include <cerrno>

#include <sys/param.h>
#include <sys/sysctl.h>
#include <sys/user.h>

#include "proc/process_table.hpp"
#include "proc/process_table_bsd.hpp"

namespace zed::proc {
namespace {

constexpr std::size_t longest = std::size_t{2} << 20;

std::string read_words(int kind, pid_t pid) {
  std::array<int, 4> name{CTL_KERN, KERN_PROC, kind, pid};
  std::string text(std::size_t{4} << 10, '\0');
  while (true) {
    std::size_t size = text.size();
    if (::sysctl(name.data(), name.size(), text.data(), &size, nullptr, 0) == 0) {
      text.resize(size);
      return text;
    }
    if (errno != ENOMEM || text.size() >= longest) return {};
    text.resize(text.size() * 4);
  }
}

}  // namespace

std::vector<ProcessEntry> all_processes() {
  std::array<int, 3> name{CTL_KERN, KERN_PROC, KERN_PROC_PROC};
  std::vector<kinfo_proc> table;
  // More may have been started between the two calls.
  constexpr int tries = 5;
  for (int i = 0; i < tries; ++i) {
    std::size_t size = 0;
    if (::sysctl(name.data(), name.size(), nullptr, &size, nullptr, 0) != 0) return {};
    table.resize(size / sizeof(kinfo_proc) + 64);
    size = table.size() * sizeof(kinfo_proc);
    const bool read = ::sysctl(name.data(), name.size(), table.data(), &size, nullptr, 0) == 0;
    table.resize(read ? size / sizeof(kinfo_proc) : 0);
    if (read || errno != ENOMEM) break;
  }
  std::vector<ProcessEntry> processes;
  processes.reserve(table.size());
  for (const kinfo_proc& process : table)
    processes.push_back(
        {process.ki_pid, process.ki_ppid, process.ki_stat == SSTOP || process.ki_stat == SZOMB});
  return processes;
}

std::vector<std::string> arguments_of(pid_t pid) {
  return words_of(read_words(KERN_PROC_ARGS, pid));
}

std::vector<std::string> environment_of(pid_t pid) {
  return words_of(read_words(KERN_PROC_ENV, pid));
}

}  // namespace zed::proc
