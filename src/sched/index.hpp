#pragma once
// The fleet, kept so that one placement reads a few groups of equal nodes instead of every node.

#include <memory>
#include <vector>

#include "core/fleet.hpp"
#include "sched/request.hpp"

namespace zed::sched {

class IndexState;

/// Owned and changed by one thread. A value: copies are deep.
class Index {
public:
  Index();
  explicit Index(const FleetView& view);
  Index(const Index& other);
  Index(Index&& other) noexcept;
  Index& operator=(const Index& other);
  Index& operator=(Index&& other) noexcept;
  ~Index();

  /// A node joined, changed, or its attempts did: replaces what was known of it. Reservations on it
  /// stay until release(); one whose job has a live attempt among `attempts` counts once.
  void update(const Node& node, const std::vector<Attempt>& attempts);
  void remove(const NodeName& node);
  /// A placement was decided; its attempt is not visible yet.
  void reserve(const Reservation& reservation);
  /// The reservations of that job end (its attempt is visible, or was given up).
  void release(const JobId& job);

  /// The same fleet with nothing running and nothing promised: what could ever be placed.
  Index idle() const;

  std::size_t node_count() const;
  const IndexState& state() const { return *state_; }

private:
  std::unique_ptr<IndexState> state_;
};

}  // namespace zed::sched
