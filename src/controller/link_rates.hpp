#pragma once
// How fast data went from one node to another, as transfers themselves showed; nothing is sent to
// measure. In memory only, bounded.

#include <deque>
#include <map>
#include <utility>

#include "base/units.hpp"
#include "core/names.hpp"

namespace zed::controller {

class LinkRates {
public:
  static constexpr std::size_t most_links = 10'000;
  static constexpr std::size_t longest = 16;  ///< finished transfers that are kept of one link
  /// A transfer that moved less, or was faster, shows how long it takes to begin, not the link.
  static constexpr Bytes least_moved = mebibytes(4);
  static constexpr Millis least_time{200};

  struct Link {
    Bytes rate;                ///< per second; mostly the past, as one stalled second is not it
    std::deque<Bytes> recent;  ///< of each finished transfer, oldest first
    WallTime at;               ///< when the newest of them ended
  };

  /// What a transfer under way shows at this moment.
  void note(const NodeName& source, const NodeName& target, Bytes rate);
  /// A transfer has ended well.
  void finished(const NodeName& source, const NodeName& target, Bytes moved, Millis took,
                WallTime at);
  void forget(const NodeName& node);

  /// Bytes per second; 0 if nothing is known.
  Bytes rate(const NodeName& source, const NodeName& target) const;
  /// Of the fastest link to that node.
  Bytes best_to(const NodeName& target) const;
  /// Links that begin at a node, those that are known.
  std::map<NodeName, Link> from(const NodeName& source) const;
  /// Their rates.
  std::map<NodeName, Bytes> rates_from(const NodeName& source) const;

private:
  Link* link(const NodeName& source, const NodeName& target);
  std::map<std::pair<NodeName, NodeName>, Link> links_;
};

}  // namespace zed::controller
