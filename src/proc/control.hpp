#pragma once
// What agent and supervisor say to one another over the supervisor's control socket: JSON, a line
// each. The socket outlives agents; a supervisor tells everyone who connects where it stands.

#include <cstdint>
#include <string>
#include <variant>

#include "base/describe.hpp"
#include "core/job.hpp"
#include "core/plan.hpp"

namespace zed::proc {

// ---- agent -> supervisor

/// SIGTERM to everything, SIGKILL after the launch's grace.
struct StopOrder {
  static constexpr std::string_view tag = "stop";
  StopMode mode = StopMode::halt;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("mode", self.mode);
  }
};
struct FreezeOrder {
  static constexpr std::string_view tag = "freeze";
  bool frozen = true;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("frozen", self.frozen);
  }
};
struct LeaseOrder {
  static constexpr std::string_view tag = "lease";
  Millis lease;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("lease", self.lease);
  }
};
using Order = std::variant<StopOrder, FreezeOrder, LeaseOrder>;

// ---- supervisor -> agent

/// The job's first process has been started (exec succeeded).
struct StartedReport {
  static constexpr std::string_view tag = "started";
  std::int64_t pid = 0;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("pid", self.pid);
  }
};
/// The job's setup runs, or waits for another attempt's; the job itself has not begun. Orders are
/// obeyed from here on.
struct SetupReport {
  static constexpr std::string_view tag = "setup";
  template <class Self, class Visit> static void fields(Self&, Visit&&) {}
};
/// All processes are gone and exit.json is durable; the supervisor ends.
struct ExitedReport {
  static constexpr std::string_view tag = "exited";
  ExitRecord exit;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("exit", self.exit);
  }
};
/// Every process is stopped (or runs again).
struct FrozenReport {
  static constexpr std::string_view tag = "frozen";
  bool frozen = true;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("frozen", self.frozen);
  }
};
using Report = std::variant<StartedReport, ExitedReport, FrozenReport, SetupReport>;

/// Longest line either side accepts.
inline constexpr std::size_t longest_control_line = 64 * 1024;

/// The descriptor on which a new supervisor inherits its listening control socket.
inline constexpr int inherited_control_fd = 3;

}  // namespace zed::proc
