#pragma once
// The virtual clock and everything that is about to happen.

#include <cstdint>
#include <functional>
#include <queue>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "sim/random.hpp"

namespace zed::sim {

/// Happenings in the order of their time; those of one millisecond in an order that the seed draws.
class Schedule {
public:
  using Action = std::function<void()>;

  explicit Schedule(std::uint64_t seed) : ties_(seed, "ties") {}

  Instant now() const { return now_; }
  /// `what` must outlive the schedule (a literal); it names the happening in traces.
  void after(Millis delay, std::string_view what, Action action);
  /// Lets the next thing happen, if it does so before `end`. False: nothing is left until then, and
  /// the clock stands at `end`.
  bool step(Instant end);

  /// Of everything that happened so far, in order. Two runs of one seed agree in it.
  std::uint64_t trace_hash() const { return hash_; }
  std::uint64_t happened() const { return count_; }

  /// Adds a detail to the hash, and to the printed trace if there is one.
  void note(std::string_view text);
  /// Whether details are worth the cost of writing them out.
  bool tracing() const { return static_cast<bool>(trace_); }
  void trace_to(std::function<void(const std::string&)> sink) { trace_ = std::move(sink); }

private:
  struct Entry {
    std::int64_t at = 0;
    std::uint64_t tie = 0;
    std::uint64_t sequence = 0;
    std::string_view what;
    Action action;
  };
  struct Later {
    bool operator()(const Entry& a, const Entry& b) const;
  };
  void mix(std::string_view text);

  Random ties_;
  Instant now_{0};
  std::priority_queue<Entry, std::vector<Entry>, Later> entries_;
  std::uint64_t sequence_ = 0;
  std::uint64_t count_ = 0;
  std::uint64_t hash_ = 0xcbf29ce484222325ULL;
  std::function<void(const std::string&)> trace_;
};

}  // namespace zed::sim
