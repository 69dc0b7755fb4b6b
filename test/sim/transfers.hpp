#pragma once
// Data connections between machines: two ends that showed one ticket, and the bytes between them.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

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

private:
  struct End {
    std::size_t machine = 0;
    std::uint64_t run = 0;
    agent::StartTransfer effect;
    bool over = false;
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
  };
  using TransferPtr = std::shared_ptr<Transfer>;

  void begin(const TransferPtr& transfer);
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
};

}  // namespace zed::sim
