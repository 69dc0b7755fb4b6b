#pragma once
// Data connections between machines: two ends that showed one ticket, and the bytes between them.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "agent/effects.hpp"
#include "env/store.hpp"
#include "sim/random.hpp"

namespace zed::sim {

class World;

class Transfers {
public:
  explicit Transfers(World& world);

  void start(std::size_t machine, std::uint64_t agent_run, agent::StartTransfer effect);
  void cancel(std::size_t machine, std::uint64_t agent_run, const StepId& step);
  /// Ends of a dead agent end with it; what a receive has got stays, resumable.
  void agent_died(std::uint64_t agent_run);
  /// The machine that hands bytes on just now, while it still receives them; none if none does.
  std::optional<std::size_t> passes_on() const;
  /// Snapshots that have arrived by way of a node that was still receiving them.
  std::size_t passed_on() const { return passed_on_; }

private:
  struct End {
    std::size_t machine = 0;
    std::uint64_t run = 0;
    agent::StartTransfer effect;
    bool over = false;
  };
  /// The relay point of a chain: what one transfer's receiving half hands to the next one's sending
  /// half, on one machine.
  struct Feed {
    std::deque<std::byte> bytes;
    Properties properties;  ///< of the snapshot, as the stream's header brings them
    bool ready = false;     ///< the sending half has met its receiver
    bool gone = false;      ///< it takes nothing any more
    bool begun = false;
    bool ended = false;   ///< everything is in `bytes`
    bool failed = false;  ///< nothing more comes
    std::optional<Instant> full_since;
  };
  struct Transfer {
    std::optional<End> sender;
    std::optional<End> receiver;
    bool moving = false;
    std::unique_ptr<env::SendStream> from;
    std::unique_ptr<env::ReceiveStream> to;
    Bytes moved;
    Instant stalled_since;
    bool stalled = false;
    std::shared_ptr<Feed> fed;    ///< where the bytes come from, if not from a store
    std::shared_ptr<Feed> feeds;  ///< where they also go
    Instant waits_since;
  };
  using TransferPtr = std::shared_ptr<Transfer>;

  std::shared_ptr<Feed> feed_of(std::uint64_t run, const TransferId& sent);
  void begin(const TransferPtr& transfer);
  void begin_from_store(const TransferPtr& transfer, const std::string& token);
  void wait_for_next_hop(const TransferPtr& transfer);
  void wait_for_feed(const TransferPtr& transfer);
  bool open_target(const TransferPtr& transfer, const Properties& header);
  void start_moving(const TransferPtr& transfer);
  Result<std::size_t> read(const TransferPtr& transfer, std::span<std::byte> buffer);
  /// Whether the next hop has no room; one that has none for long is spliced out.
  bool is_held_up(const TransferPtr& transfer);
  void move(const TransferPtr& transfer);
  void finish(const TransferPtr& transfer);
  void fail_both(const TransferPtr& transfer, const Error& sender, const Error& receiver);
  void end(const TransferPtr& transfer, bool sender, Result<agent::TransferOutcome> outcome);
  void give_up(const TransferPtr& transfer);
  bool cut(const TransferPtr& transfer);
  void land_late(const TransferPtr& transfer);

  World& world_;
  Random random_;
  std::map<TransferId, TransferPtr> open_;
  std::size_t passed_on_ = 0;
  /// By the agent's run and the ticket of what is sent on.
  std::map<std::pair<std::uint64_t, TransferId>, std::weak_ptr<Feed>> feeds_;
};

}  // namespace zed::sim
