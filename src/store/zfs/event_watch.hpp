#pragma once
// Hears of each change to a pool's datasets by `zpool events -f`, so that a store that is asked
// every few seconds what changed lists nothing while nothing did. OpenZFS writes an event for each
// snapshot, destruction, rollback, rename and property, whoever made it. (Root only: others list
// each time.)

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "store/zfs/command.hpp"

namespace zed::store::zfs {

/// `zfs rollback` as the pool tells of it. Nothing else does where no snapshot had to go.
struct Rollback {
  std::string dataset;    ///< full name
  std::uint64_t txg = 0;  ///< what it went back to is older
  std::uint64_t eid = 0;  ///< number of the event: later ones have greater ones
};

/// Finds the rollbacks in what `zpool events -v` prints: an event is lines "name = value" up to an
/// empty one, and a rollback a swap with a clone named "%rollback". Pure.
class RollbackReader {
public:
  /// Takes the next piece of the text; the rollbacks that end in it.
  std::vector<Rollback> take(std::string_view text);
  /// The greatest number of an event so far, whatever it told of.
  std::uint64_t last_eid() const { return last_eid_; }

private:
  void take_line(std::string_view line);

  std::string rest_;  ///< of a line whose end has not come
  Rollback seen_;
  bool is_swap_ = false;
  std::uint64_t last_eid_ = 0;
  std::vector<Rollback> found_;
};

/// Thread-safe.
class EventWatch {
public:
  /// Begins to listen; if it cannot, or the command ends later, is_listening() is false.
  /// `on_rollback` hears of each rollback from now on, whoever made it, on a thread of the watch's
  /// own.
  EventWatch(Commands& commands, const std::string& pool,
             std::function<void(const Rollback&)> on_rollback);
  ~EventWatch();
  EventWatch(const EventWatch&) = delete;
  EventWatch& operator=(const EventWatch&) = delete;

  /// Read it before listing: what is heard of meanwhile is listed once more.
  std::uint64_t heard() const { return heard_; }
  bool is_listening() const { return listening_; }

private:
  void listen();

  std::function<void(const Rollback&)> on_rollback_;
  /// The command tells first what was before, of a store of an earlier process too. Clocks are
  /// set back and two processes share a second: events have numbers.
  std::uint64_t told_before_;
  std::unique_ptr<Child> child_;
  std::atomic<std::uint64_t> heard_{0};
  std::atomic<bool> listening_{false};
  std::thread thread_;
};

}  // namespace zed::store::zfs
