#pragma once
// The data plane of one agent: sends and receives snapshots over connections of their own, each
// under a one-time ticket. Bytes never pass through the controller.

#include <functional>
#include <memory>

#include "core/plan.hpp"
#include "env/store.hpp"
#include "net/endpoint.hpp"
#include "net/loop.hpp"
#include "net/tls.hpp"
#include "stream/passing.hpp"

namespace zed::stream {

struct TransferRequest {
  StepId step;
  bool sends = true;
  Ticket ticket;
  PropertyChanges dataset_changes;  ///< receive: set together with the snapshot
  /// send: the bytes that the receive of that ticket gets here are passed on while they arrive.
  std::optional<TransferId> through = {};
  /// receive: they are also handed to the send of that ticket. Either may be started first.
  std::optional<TransferId> passes_to = {};
};

struct Outcome {
  Bytes moved;                       ///< over the wire by this transfer
  std::optional<Snapshot> snapshot;  ///< receive: what it made
};

struct TransferHandlers {
  std::function<void(const StepId&, Bytes done, Bytes total, Bytes rate)> progressed;
  /// Exactly once for every start(), after the transfer's thread and connection are gone.
  std::function<void(const StepId&, Result<Outcome>)> ended;
};

struct TransferOptions {
  net::Endpoint listen{"127.0.0.1", 0};
  net::Exposure exposure = net::Exposure::loopback_only;  ///< without `tls`
  std::shared_ptr<const net::Tls> tls;  ///< both ends show a certificate, that of the ticket's node
  std::size_t most_at_once = 8;         ///< more wait for their turn
  Millis silence = seconds(60);         ///< the longest wait for the other end once connected
  Millis meeting = seconds(60);         ///< the longest wait for the two ends to meet
  Millis second_dials_after = seconds(5);  ///< the end that the ticket does not tell to dial
  PassingLimits passing = {};              ///< of chains through this node
};

/// Loop's thread only; handlers run there. The store is called from worker threads.
class Transfers {
public:
  /// Errors: those of listening: `busy` (port in use), `refused` (not loopback).
  static Result<std::unique_ptr<Transfers>>
  open(net::Loop& loop, env::Store& store, TransferOptions options, TransferHandlers handlers);
  ~Transfers();

  /// Where data connections are accepted.
  net::Endpoint endpoint() const;
  void start(TransferRequest request);
  /// Ends it soon, with code `cancelled`; unknown steps are ignored.
  void cancel(const StepId& step);

private:
  struct Core;
  explicit Transfers(std::shared_ptr<Core> core);
  std::shared_ptr<Core> core_;
};

}  // namespace zed::stream
