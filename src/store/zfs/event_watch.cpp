#include "store/zfs/event_watch.hpp"

#include <array>

#include "base/log.hpp"

namespace zed::store::zfs {

EventWatch::EventWatch(Commands& commands, const std::string& pool) {
  auto child = commands.start({"zpool", "events", "-f", "-H", pool}, Commands::Pipe::from_it);
  if (!child) {
    log_warning("store: changes made by hand are looked for each time: " +
                child.error().describe());
    return;
  }
  child_ = std::move(*child);
  listening_ = true;
  thread_ = std::thread([this] { listen(); });
}

EventWatch::~EventWatch() {
  if (!child_) return;
  child_->kill();  // it waits for events and would not notice that nobody reads
  thread_.join();
}

/// What an event says does not matter: that there was one does.
void EventWatch::listen() {
  std::array<std::byte, 4096> lines{};
  for (;;) {
    auto n = child_->read(lines);
    if (!n || *n == 0) break;
    ++heard_;
  }
  listening_ = false;
}

}  // namespace zed::store::zfs
