#pragma once
// The event loop: one thread that owns a daemon's state. Everything in src/net calls its handlers
// on the thread that runs the loop; only `post` and `stop` may be called from another one.

#include <functional>
#include <memory>

#include "base/units.hpp"

namespace zed::net {

class Loop {
public:
  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// Runs handlers until stop(). Can be run again after it returned.
  void run();
  /// Runs handlers until `done()` holds (asked after each handler), stop() is called, or `limit`
  /// has passed. True if `done()` held. For tests, and for a program's last words while it shuts
  /// down.
  bool run_until(const std::function<bool()>& done, Millis limit);
  /// Makes run() return soon. Thread-safe, and safe before run().
  void stop();
  /// Calls `work` on the loop's thread, never inside this call. Thread-safe. Not bounded: a source
  /// that can outrun the loop bounds itself (WorkerPool does).
  void post(std::function<void()> work);

  /// The monotonic clock. Read anew by each call.
  Instant now() const;
  /// The monotonic clock and the wall clock, read together.
  Now clocks() const;

  struct Internals;  ///< net/asio.hpp
  Internals& internals() { return *internals_; }

private:
  std::unique_ptr<Internals> internals_;
};

/// One timer. Starting it again replaces what was pending; destroying it cancels. A cancelled
/// timer's function is never called, not even if its time had already come. Loop's thread only.
class Timer {
public:
  explicit Timer(Loop& loop);
  ~Timer();
  Timer(Timer&&) noexcept;
  Timer& operator=(Timer&&) noexcept;

  /// Calls `work` once, `delay` from now (at once in the next turn of the loop if 0 or less).
  void start(Millis delay, std::function<void()> work);
  void cancel();
  bool pending() const;

private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace zed::net
