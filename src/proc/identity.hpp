#pragma once
// Who a process is, across restarts of agent and machine: a pid alone is reused.

#include <cstdint>
#include <optional>
#include <string>

#include <sys/types.h>

namespace zed::proc {

struct ProcessIdentity {
  std::string boot;  ///< of the machine's current run
  std::int64_t pid = 0;
  std::int64_t start_ticks = 0;  ///< since boot, from the kernel: never wall time
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("boot", self.boot);
    visit("pid", self.pid);
    visit("start_ticks", self.start_ticks);
  }
  friend bool operator==(const ProcessIdentity&, const ProcessIdentity&) = default;
};

/// The identity of a process that exists (a zombie does not); nothing otherwise.
std::optional<ProcessIdentity> identity_of(pid_t pid);
inline bool is_alive(const ProcessIdentity& identity) {
  return identity_of(static_cast<pid_t>(identity.pid)) == identity;
}

}  // namespace zed::proc
