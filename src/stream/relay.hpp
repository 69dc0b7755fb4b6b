#pragma once
// The two halves of one transfer, each blocking on its thread.

#include <functional>

#include "env/store.hpp"
#include "stream/frame.hpp"
#include "stream/passing.hpp"
#include "stream/transfers.hpp"

namespace zed::stream {

/// Called now and then from the transfer's thread.
using ReportProgress = std::function<void(Bytes done, Bytes total)>;

/// Waits up to a duration, or until the transfer is cancelled: then false.
using Pause = std::function<bool(Millis)>;

/// Sends what the ticket names; returns when the other end has stored it.
Result<Outcome> send_snapshot(env::Store& store, const Ticket& ticket, FrameSocket& socket,
                              const ReportProgress& report, const Pause& pause);
/// The same with the bytes that another transfer receives, while it does. Errors beside: `conflict`
/// (the other end has a part already, so it would begin elsewhere), `unavailable` (the bytes did
/// not come, or stopped), `timeout` (this end was spliced out of the chain).
Result<Outcome> pass_on(Passing& passing, const Ticket& ticket, FrameSocket& socket,
                        const ReportProgress& report, const Pause& pause);
/// Receives what the ticket names, verifies and snapshots it; hands it on too if there is a
/// `passing`.
Result<Outcome> receive_snapshot(env::Store& store, const TransferRequest& request,
                                 FrameSocket& socket, const ReportProgress& report,
                                 Passing* passing);

}  // namespace zed::stream
