#pragma once
// Hears of each change to a pool's datasets by `zpool events -f`, so that a store that is asked
// every few seconds what changed lists nothing while nothing did. OpenZFS writes an event for each
// snapshot, destruction, rollback, rename and property, whoever made it. (Root only: others list
// each time.)

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "store/zfs/command.hpp"

namespace zed::store::zfs {

/// Thread-safe.
class EventWatch {
public:
  /// Begins to listen; if it cannot, or the command ends later, is_listening() is false.
  EventWatch(Commands& commands, const std::string& pool);
  ~EventWatch();
  EventWatch(const EventWatch&) = delete;
  EventWatch& operator=(const EventWatch&) = delete;

  /// Read it before listing: what is heard of meanwhile is listed once more.
  std::uint64_t heard() const { return heard_; }
  bool is_listening() const { return listening_; }

private:
  void listen();

  std::unique_ptr<Child> child_;
  std::atomic<std::uint64_t> heard_{0};
  std::atomic<bool> listening_{false};
  std::thread thread_;
};

}  // namespace zed::store::zfs
