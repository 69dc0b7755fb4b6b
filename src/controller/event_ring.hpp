#pragma once
// The last fleet events, for `zedctl events` and for those who follow them.

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "api/replies.hpp"
#include "controller/effects.hpp"

namespace zed::controller {

class EventRing {
public:
  static constexpr std::size_t capacity = 10'000;

  /// Keeps the event and publishes it.
  void add(std::string kind, std::string subject, std::string text, WallTime at,
           std::vector<Effect>& out);
  /// Of those numbered above `after`, the newest `limit`, oldest first.
  std::vector<api::FleetEvent> since(std::uint64_t after, std::int64_t limit) const;

private:
  std::deque<api::FleetEvent> events_;
  std::uint64_t next_ = 1;
};

}  // namespace zed::controller
