#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <libproc.h>
#include <sys/proc.h>
#include <sys/sysctl.h>

#include "proc/process_table.hpp"
#include "proc/process_table_bsd.hpp"

namespace zed::proc {
namespace {

struct Words {
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
};

/// KERN_PROCARGS2: the number of arguments, the program's path, padding of NULs, the arguments, the
/// environment, each ended by NUL. Of programs that the system protects it leaves out the
/// environment.
Words read_words(pid_t pid) {
  std::array<int, 3> name{CTL_KERN, KERN_PROCARGS2, pid};
  int most = 0;
  std::size_t size = sizeof most;
  if (::sysctlbyname("kern.argmax", &most, &size, nullptr, 0) != 0 || most <= 0) return {};
  std::string text(static_cast<std::size_t>(std::min(most, 2 << 20)), '\0');
  size = text.size();
  int count = 0;
  if (::sysctl(name.data(), name.size(), text.data(), &size, nullptr, 0) != 0 ||
      size < sizeof count)
    return {};
  std::memcpy(&count, text.data(), sizeof count);
  std::vector<std::string> all =
      words_of(std::string_view(text).substr(sizeof count, size - sizeof count));
  if (all.empty() || count < 0) return {};
  const auto first = all.begin() + 1;  // behind the path
  const auto end = first + std::min<std::ptrdiff_t>(count, all.end() - first);
  return {{first, end}, {end, all.end()}};
}

}  // namespace

std::vector<ProcessEntry> all_processes() {
  const int expected = ::proc_listallpids(nullptr, 0);
  if (expected <= 0) return {};
  std::vector<pid_t> pids(static_cast<std::size_t>(expected) + 256);
  const int found = ::proc_listallpids(pids.data(), static_cast<int>(pids.size() * sizeof(pid_t)));
  pids.resize(static_cast<std::size_t>(std::clamp<int>(found, 0, static_cast<int>(pids.size()))));
  std::vector<ProcessEntry> processes;
  processes.reserve(pids.size());
  for (pid_t pid : pids) {
    proc_bsdshortinfo info{};
    if (::proc_pidinfo(pid, PROC_PIDT_SHORTBSDINFO, 0, &info, sizeof info) != sizeof info) continue;
    processes.push_back({pid, static_cast<pid_t>(info.pbsi_ppid),
                         info.pbsi_status == SSTOP || info.pbsi_status == SZOMB});
  }
  return processes;
}

std::vector<std::string> arguments_of(pid_t pid) {
  return std::move(read_words(pid).arguments);
}

std::vector<std::string> environment_of(pid_t pid) {
  return std::move(read_words(pid).environment);
}

}  // namespace zed::proc
