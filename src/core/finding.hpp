#pragma once
// What `doctor` found out about a machine.

#include <array>
#include <string>
#include <vector>

#include "base/describe.hpp"

namespace zed {

struct Finding {
  enum class Level {
    ok,
    warn,  ///< works, but not all of it, or not for long
    fail,  ///< something that was asked for cannot work
  };
  Level level = Level::ok;
  std::string subject;  ///< "zfs", "pool tank", "port 4370"
  std::string what;     ///< one sentence without its full stop
  std::string todo;     ///< what to type or do; empty where nothing is to be done
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("level", self.level);
    visit("subject", self.subject);
    visit("what", self.what);
    visit("todo", self.todo);
  }
  friend bool operator==(const Finding&, const Finding&) = default;
};
constexpr auto enum_names(Finding::Level) {
  return std::array<std::string_view, 3>{"ok", "warn", "fail"};
}

/// The document of `zed-agent doctor --json`.
struct Findings {
  std::vector<Finding> findings;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("findings", self.findings);
  }
};

}  // namespace zed
