#pragma once
// Accepts connections on the loop.

#include <functional>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "net/endpoint.hpp"
#include "net/fd.hpp"
#include "net/loop.hpp"

namespace zed::net {

/// Calls `on_accept` with each connected, non-blocking socket; give it to a Connection or to asio.
/// Out of descriptors it waits 100 ms instead of spinning. Destroying it stops listening; a UNIX
/// socket's file is removed if it is still its own. Loop's thread only.
class Listener {
public:
  using OnAccept = std::function<void(Fd)>;

  /// Errors: those of listen_tcp.
  static Result<Listener> tcp(Loop& loop, const Endpoint& endpoint, Exposure exposure,
                              OnAccept on_accept);
  /// Mode 0600. Errors: those of listen_unix.
  static Result<Listener> local(Loop& loop, const std::string& path, OnAccept on_accept);

  ~Listener();
  Listener(Listener&&) noexcept;
  Listener& operator=(Listener&&) noexcept;

  /// The port that the kernel chose, when asked for 0; port 0 for a UNIX socket.
  Endpoint endpoint() const;

private:
  struct State;
  explicit Listener(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace zed::net
