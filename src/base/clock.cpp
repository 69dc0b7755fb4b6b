#include "base/clock.hpp"

#include <chrono>

namespace zed {
namespace {

template <class Clock> std::int64_t milliseconds_of() {
  const auto since = Clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
}

}  // namespace

WallTime wall_now() {
  return {milliseconds_of<std::chrono::system_clock>()};
}

Instant monotonic_now() {
  return {milliseconds_of<std::chrono::steady_clock>()};
}

}  // namespace zed
