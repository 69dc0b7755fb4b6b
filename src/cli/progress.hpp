#pragma once
// One line on standard error that says what is going on, for anything over a second.

#include <cstdint>
#include <string>

#include "cli/context.hpp"

namespace zed::cli {

/// On a terminal the line is rewritten in place; elsewhere it is printed when it changed and ten
/// seconds have passed. Gone when destroyed.
class Progress {
public:
  explicit Progress(const Context& context) : context_(context) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(const std::string& line);
  /// A line that stays: text with its line break.
  void keep(const std::string& text);

private:
  void clear();

  const Context& context_;
  std::string shown_;
  std::int64_t last_ms_ = 0;
};

/// What moves and happens, told while something else is waited for: asks the controller by a
/// connection of its own.
class Narrator {
public:
  /// Events that happened before are not told. `subject`: only what is about that job ("" for all).
  Narrator(Context& context, std::string subject);
  /// Asks again and shows; failures are passed over in silence, the caller's wait will tell.
  void tell(const std::string& line);
  /// The same with "12 s" since the start.
  void tell_elapsed(const std::string& line);

private:
  bool concerns(const api::FleetEvent& event) const;
  /// What the subject waits for, or what copies it.
  bool concerns(const api::TransferRow& transfer) const;

  Context& context_;
  std::string subject_;
  std::optional<http::Client> client_;
  Progress progress_;
  std::uint64_t last_event_ = 0;
  std::int64_t began_ms_ = 0;
};

}  // namespace zed::cli
