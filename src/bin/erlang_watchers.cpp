#include "bin/erlang_watchers.hpp"

#include <set>

#include "base/log.hpp"
#include "bin/erlang_door.hpp"

namespace zed::bin {
namespace {

/// As many as may follow by HTTP.
constexpr std::size_t most_watchers = 32;

}  // namespace

Status ErlangWatchers::add(const std::string& peer, const beam::Pid& process, std::uint64_t after) {
  auto known = watchers_.find({peer, process});
  if (known != watchers_.end()) {
    known->second = after;
    return {};
  }
  if (watchers_.size() >= most_watchers)
    return fail(ErrorCode::busy, "too many processes watch the events already",
                "end one of them, or ask for the operation `events` now and then");
  ZED_CHECK(node_.watch(peer, process));
  watchers_.emplace(std::make_pair(peer, process), after);
  return {};
}

void ErlangWatchers::remove(const std::string& peer, const beam::Pid& process) {
  if (watchers_.erase({peer, process}) > 0) node_.unwatch(peer, process);
}

void ErlangWatchers::drop(const std::string& peer) {
  for (auto entry = watchers_.begin(); entry != watchers_.end();)
    entry = entry->first.first == peer ? watchers_.erase(entry) : std::next(entry);
}

void ErlangWatchers::publish(const api::FleetEvent& event) {
  if (watchers_.empty()) return;
  const beam::Term message = event_term(event);
  std::set<std::string> slow;
  for (auto& [watcher, seen] : watchers_) {
    if (event.number <= seen) continue;
    seen = event.number;
    if (auto sent = node_.send(watcher.first, watcher.second, message); !sent) {
      log_warning("events to " + watcher.first + " ended: " + sent.error().describe());
      slow.insert(watcher.first);
    }
  }
  for (const std::string& peer : slow) {
    node_.disconnect(peer);
    drop(peer);
  }
}

}  // namespace zed::bin
