#pragma once
// The other end of the door, for zedctl: a blocking client over the UNIX socket, or by TLS from
// another machine. Nothing but poll, read and write, so that a command costs a few milliseconds.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/operations.hpp"
#include "base/describe.hpp"
#include "base/json.hpp"
#include "base/result.hpp"
#include "base/units.hpp"
#include "net/endpoint.hpp"
#include "net/fd.hpp"
#include "net/tls.hpp"

namespace zed::http {

/// A controller on another machine.
struct RemoteDoor {
  net::Endpoint endpoint;
  std::shared_ptr<const net::Tls> tls;
};

struct ClientOptions {
  std::string socket_path;          ///< unless there is `remote`
  Millis time_limit = seconds(30);  ///< of one call, from its start to its whole answer
  /// Readable once the person wants out (Ctrl-C): every wait then ends with `cancelled`. -1: none.
  int interrupt_fd = -1;
  std::optional<RemoteDoor> remote = std::nullopt;
};

/// A connection that waits for nothing by itself: bytes beneath TLS, or as they are.
struct Channel {
  net::Fd socket;
  std::optional<net::TlsSession> tls;
  std::vector<std::uint8_t> wire;  ///< what `tls` reads from; stays where it is when moved
  explicit operator bool() const { return static_cast<bool>(socket); }
};

/// Called while an answer is awaited, every `tick`; for progress.
struct WhileWaiting {
  Millis tick{500};
  std::function<void()> act;
};

/// Keeps its connection between calls and makes a new one when the controller has closed it. A
/// request is sent a second time only if the first one cannot have been read.
class Client {
public:
  explicit Client(ClientOptions options) : options_(std::move(options)) {}

  /// The reply's JSON as it came. Errors: what the controller says; `unavailable` if none listens
  /// there, `timeout`, `cancelled`, `corrupt`.
  Result<std::string> call_text(std::string_view operation, const Value& arguments,
                                const WhileWaiting& waiting = {}) {
    return post("/v1/" + std::string(operation), arguments, waiting);
  }
  /// The same for any path.
  Result<std::string> post(const std::string& path, const Value& body,
                           const WhileWaiting& waiting = {});

  /// The same, typed: client.call(api::ListJobs{}).
  template <class Operation>
  Result<typename Operation::Reply> call(const Operation& operation,
                                         const WhileWaiting& waiting = {}) {
    ZED_TRY(auto text, call_text(Operation::tag, to_value(operation), waiting));
    return read_reply<typename Operation::Reply>(text);
  }

  template <class Reply> static Result<Reply> read_reply(std::string_view text) {
    ZED_TRY(auto value, parse_json(text, {std::size_t{64} << 20, 64}));
    auto reply = from_value<Reply>(value);
    if (!reply) return fail(std::move(reply).error().with("read the controller's answer"));
    return reply;
  }

  /// Calls `on_event` for each event after number `after` (none: from now on) until it returns
  /// false. Errors: `unavailable` when the stream ends, `busy` if we were too slow, `cancelled`;
  /// `timeout` when `limit` has passed (none: never).
  Status follow(std::optional<std::uint64_t> after,
                const std::function<bool(const api::FleetEvent&)>& on_event,
                std::optional<Millis> limit = std::nullopt);

  void set_time_limit(Millis limit) { options_.time_limit = limit; }
  const ClientOptions& options() const { return options_; }
  const std::string& socket_path() const { return options_.socket_path; }
  /// Who the controller is, by its certificate; nothing before a call, or without TLS.
  std::optional<pki::CertificateInfo> peer() const {
    return channel_.tls ? channel_.tls->peer() : std::nullopt;
  }

private:
  ClientOptions options_;
  Channel channel_;
};

}  // namespace zed::http
