#pragma once
// What waits for a peer to read it. Fragments of large messages take turns, so that a small message
// never waits for a large one to another process; to one process messages stay in order, as Erlang
// promises for two processes. Pure.

#include <cstddef>
#include <deque>
#include <list>
#include <map>
#include <string>
#include <vector>

namespace zed::beam {

class Outbox {
public:
  /// Appends one message's frames (a message that is not fragmented has one). `to` names the
  /// receiver: whatever is equal for two messages that must arrive in order.
  void add(const std::string& to, std::vector<std::string> frames);

  /// The next frames, at least one if there is any, and more while they are under `most` bytes
  /// together. Frames are never cut.
  std::string take(std::size_t most);

  bool empty() const { return size_ == 0; }
  /// Bytes of all frames.
  std::size_t size() const { return size_; }

private:
  /// Receivers with frames, each once, whose turn it is first.
  std::list<std::string> turns_;  // a list: an idle connection keeps no memory for it
  std::map<std::string, std::deque<std::string>> frames_;
  std::size_t size_ = 0;
};

}  // namespace zed::beam
