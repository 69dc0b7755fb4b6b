#pragma once
// Processes of shells that follow the fleet's events: each event is a message {:zed_event, map}.

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "api/replies.hpp"
#include "beam/node.hpp"

namespace zed::bin {

/// Loop's thread only. A process that ends, or whose node goes, is forgotten.
class ErlangWatchers {
public:
  /// `node` outlives this.
  explicit ErlangWatchers(beam::Node& node) : node_(node) {}

  /// Events of a number above `after` go to that process. One that watches already begins there
  /// anew. Errors: `busy` (so many watch already), those of beam::Node::watch.
  Status add(const std::string& peer, const beam::Pid& process, std::uint64_t after);
  void remove(const std::string& peer, const beam::Pid& process);
  /// The connection is gone.
  void drop(const std::string& peer);
  /// A shell that reads too slowly loses its connection, which it notices, rather than an event,
  /// which it would not.
  void publish(const api::FleetEvent& event);
  bool empty() const { return watchers_.empty(); }

private:
  beam::Node& node_;
  /// What each has seen.
  std::map<std::pair<std::string, beam::Pid>, std::uint64_t> watchers_;
};

}  // namespace zed::bin
