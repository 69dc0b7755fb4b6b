#pragma once
// A byte stream on the loop (TCP, TLS over it, or UNIX): always reading, bounded writing.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/result.hpp"
#include "base/units.hpp"
#include "net/endpoint.hpp"
#include "net/fd.hpp"
#include "net/loop.hpp"
#include "net/tls.hpp"

namespace zed::net {

/// An idle connection holds no buffer: reading borrows the loop's. Handlers run on the loop's
/// thread, one at a time, and may destroy the connection from inside. Loop's thread only.
class Connection {
public:
  struct Handlers {
    /// Bytes as they came, at most 64 KiB a call, valid during the call only.
    std::function<void(std::span<const std::uint8_t>)> on_bytes;
    /// Called once, when the other side closed (`unavailable`) or the operating system failed.
    /// Never after close().
    std::function<void(Error)> on_closed;
    /// Optional: everything queued has been handed to the kernel.
    std::function<void()> on_drained;
  };

  Connection() = default;
  /// Adopts a connected stream socket of any family, and makes it non-blocking.
  Connection(Loop& loop, Fd socket, Bytes max_queued = mebibytes(8));
  /// The same beneath TLS. What is sent before the handshake is done waits for it; who waits how
  /// long for the other side's part of it is the owner's affair.
  Connection(Loop& loop, Fd socket, TlsEnd tls, Bytes max_queued = mebibytes(8));
  ~Connection();
  Connection(Connection&&) noexcept;
  Connection& operator=(Connection&&) noexcept;

  /// Begins to read. Once.
  void start(Handlers handlers);
  /// All of `bytes` or nothing. Errors: `busy` if the queue would exceed its cap, `unavailable`
  /// after the end. A failure of the operating system is reported by on_closed, later.
  Status send(std::string bytes);
  /// Bytes accepted by send() and not yet taken by the kernel.
  Bytes queued() const;
  /// Stops and resumes reading, for a receiver that must slow its sender.
  void pause();
  void resume();
  /// Ends now; what is queued is lost. No handler is called any more.
  void close();
  /// Takes no more from either side and closes once the queue is empty, or after `limit`.
  void finish(Millis limit = seconds(5));

  /// What a blocking thread goes on with, after pause() and in a turn of the loop of its own: bytes
  /// read so far have been handed over. Errors: `busy` while bytes are queued, `unavailable` after
  /// the end.
  struct Released {
    Fd socket;
    std::optional<TlsSession> tls;
  };
  Result<Released> release();

  bool is_open() const;
  /// The descriptor, for peer_credentials and the like; -1 after the end.
  int fd() const;

private:
  struct State;
  std::shared_ptr<State> state_;
};

struct ConnectOptions {
  Exposure exposure = Exposure::loopback_only;
  Millis deadline = seconds(5);  ///< for name resolution and connect together
};

/// Connects by TCP; `done` is called exactly once, on the loop, never inside this call. A name's
/// addresses are tried in order, those that `exposure` forbids never. Errors: `refused`,
/// `not_found` (no such name), `unavailable`, `timeout`.
void connect_tcp(Loop& loop, const Endpoint& endpoint, ConnectOptions options,
                 std::function<void(Result<Fd>)> done);

}  // namespace zed::net
