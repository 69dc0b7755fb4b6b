#pragma once
// Connections between agents and controllers: in order on each, with delays of their own, cut by
// partitions. Nothing is lost in the middle of a connection; its end swallows what was under way.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>

#include "core/message.hpp"
#include "sim/random.hpp"

namespace zed::sim {

class World;

class Network {
public:
  explicit Network(World& world);

  /// Whether a packet would get through just now: both machines are up and no cut is between them.
  bool reachable(std::size_t from, std::size_t to) const;
  /// Cuts two machines off from one another until heal_all() or the matching join().
  void cut(std::size_t a, std::size_t b);
  void join(std::size_t a, std::size_t b);
  void heal_all();
  Millis latency();
  /// While slow, latencies are up to two seconds.
  void be_slow(bool slow) { slow_ = slow; }

  /// The agent of that machine dials a controller process; both hear of it a latency later.
  void dial(std::size_t machine, std::uint64_t agent_run, std::uint64_t controller_run,
            std::size_t controller_machine);
  bool is_dialling_or_linked(std::uint64_t agent_run, std::uint64_t controller_run) const;

  void to_controller(std::uint64_t link, AgentMessage message);
  void to_agent(std::uint64_t link, ControllerMessage message);
  /// One side lets go; the other hears of it later.
  void close_from_agent(std::uint64_t link);
  void close_from_controller(std::uint64_t link);
  /// A program died: all of its connections end.
  void agent_died(std::uint64_t agent_run);
  void controller_died(std::uint64_t controller_run);

private:
  struct Link {
    std::uint64_t id = 0;
    std::size_t machine = 0;
    std::uint64_t agent_run = 0;
    std::size_t controller_machine = 0;
    std::uint64_t controller_run = 0;
    bool agent_open = false;
    bool controller_open = false;
    bool closing = false;
    std::deque<AgentMessage> up;
    std::deque<ControllerMessage> down;
    Instant up_last;
    Instant down_last;
    Instant stalled_since;
    bool stalled = false;
    Millis patience;
  };
  using LinkPtr = std::shared_ptr<Link>;

  LinkPtr find(std::uint64_t id) const;
  void pump_up(const LinkPtr& link);
  void pump_down(const LinkPtr& link);
  bool passes(const LinkPtr& link);
  void break_link(const LinkPtr& link);
  void tell_agent_gone(const LinkPtr& link, Millis after);
  void tell_controller_gone(const LinkPtr& link, Millis after);
  void forget_if_over(const LinkPtr& link);

  World& world_;
  Random random_;
  bool slow_ = false;
  std::map<std::pair<std::size_t, std::size_t>, int> cuts_;
  std::map<std::uint64_t, LinkPtr> links_;
  std::uint64_t next_link_ = 1;
};

}  // namespace zed::sim
