#include "http/client.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/response_reader.hpp"
#include "http/status.hpp"
#include "net/socket.hpp"
#include "net/system.hpp"

namespace zed::http {
namespace {

using Clock = std::chrono::steady_clock;
/// Far enough to never come, near enough to add to.
constexpr std::chrono::hours never{24 * 365};

std::chrono::milliseconds chrono_of(Millis time) {
  return std::chrono::milliseconds(time.value);
}

Result<Channel> connect_here(const std::string& path) {
  auto socket = net::connect_unix(path);
  if (socket) {
    ::fcntl(socket->get(), F_SETFL, ::fcntl(socket->get(), F_GETFL) | O_NONBLOCK);
    return Channel{std::move(*socket), std::nullopt, {}};
  }
  Error error = std::move(socket).error();
  // A missing socket is a controller that does not run, not a thing that was not found.
  if (error.code == ErrorCode::not_found) error.code = ErrorCode::unavailable;
  return fail(std::move(error));
}

/// One exchange on one connection: what it waits with and until when.
struct Exchange {
  Channel& channel;
  int interrupt_fd;
  Clock::time_point deadline;
  const WhileWaiting& waiting;

  /// Until the socket is ready for `events`. Errors: `timeout`, `cancelled`.
  Status wait(short events) const {
    for (;;) {
      const auto now = Clock::now();
      if (now >= deadline)
        return fail(ErrorCode::timeout, "the controller did not answer in time",
                    "whether it was done is unknown: zedctl status and events tell");
      auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - now) +
                  std::chrono::milliseconds(1);
      if (waiting.act) left = std::min(left, chrono_of(waiting.tick));
      left = std::min(left, std::chrono::milliseconds(60'000));
      std::array<pollfd, 2> watched{{{channel.socket.get(), events, 0}, {interrupt_fd, POLLIN, 0}}};
      const int ready =
          ::poll(watched.data(), interrupt_fd >= 0 ? 2 : 1, static_cast<int>(left.count()));
      if (ready < 0 && errno != EINTR) return fail(net::system_error(errno, "wait for an answer"));
      if (ready > 0 && watched[1].revents != 0) return fail(ErrorCode::cancelled, "interrupted");
      if (ready > 0 && watched[0].revents != 0) return {};
      if (ready == 0 && waiting.act) waiting.act();
    }
  }

  Status send(std::string_view bytes) const {
    if (!channel.tls) return send_wire(bytes);
    ZED_CHECK(channel.tls->write(octets(bytes)));
    return send_wire(channel.tls->take_output());
  }

  Status send_wire(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = ::send(channel.socket.get(), bytes.data(), bytes.size(), net::no_signal);
      if (n > 0) {
        bytes.remove_prefix(static_cast<std::size_t>(n));
        continue;
      }
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK)
        return fail(net::system_error(errno, "send the request"));
      ZED_CHECK(wait(POLLOUT));
    }
    return {};
  }

  /// Some bytes, or none at the end of the connection.
  Result<std::string_view> receive(std::array<char, 16384>& buffer) const {
    while (channel.tls) {
      ZED_TRY(const std::size_t n, decrypt(buffer));
      if (n > 0) return std::string_view(buffer.data(), n);
      std::array<char, 16384> wire{};
      ZED_TRY(const std::string_view bytes, receive_wire(wire));
      if (bytes.empty()) return bytes;
      feed(bytes);
    }
    return receive_wire(buffer);
  }

  Result<std::size_t> decrypt(std::array<char, 16384>& buffer) const {
    auto got = channel.tls->read({reinterpret_cast<std::uint8_t*>(buffer.data()), buffer.size()});
    const std::string answer = channel.tls->take_output();
    if (!answer.empty()) (void)send_wire(answer);
    // Said goodbye: the end, as without TLS.
    if (!got && got.error().code == ErrorCode::unavailable) return std::size_t{0};
    return got;
  }

  Result<std::string_view> receive_wire(std::array<char, 16384>& buffer) const {
    for (;;) {
      const ssize_t n = ::recv(channel.socket.get(), buffer.data(), buffer.size(), 0);
      if (n >= 0) return std::string_view(buffer.data(), static_cast<std::size_t>(n));
      if (errno == EINTR) continue;
      if (errno == ECONNRESET) return std::string_view{};
      if (errno != EAGAIN && errno != EWOULDBLOCK)
        return fail(net::system_error(errno, "read the answer"));
      ZED_CHECK(wait(POLLIN));
    }
  }

  /// Until the certificates of both sides are verified; it must be a controller.
  Status shake_hands() const {
    ZED_CHECK(send_wire(channel.tls->take_output()));
    std::array<char, 16384> buffer{};
    for (;;) {
      ZED_CHECK(decrypt(buffer));
      if (channel.tls->is_open()) break;
      std::array<char, 16384> wire{};
      ZED_TRY(const std::string_view bytes, receive_wire(wire));
      if (bytes.empty())
        return fail(ErrorCode::unavailable, "it closed the connection",
                    "what listens there may be no controller");
      feed(bytes);
    }
    const auto& peer = channel.tls->peer();
    if (peer && peer->identity.role == pki::Role::controller) return {};
    return fail(ErrorCode::refused, "what listens there is no controller", "check the address");
  }

  /// Kept beside the session, which may read only a part of it now.
  void feed(std::string_view bytes) const {
    channel.wire.assign(bytes.begin(), bytes.end());
    channel.tls->feed(channel.wire);
  }

  static std::span<const std::uint8_t> octets(std::string_view bytes) {
    return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
  }
};

Result<Channel> connect(const ClientOptions& options, Clock::time_point deadline,
                        const WhileWaiting& waiting) {
  if (!options.remote) return connect_here(options.socket_path);
  const RemoteDoor& door = *options.remote;
  ZED_TRY(net::Fd socket, net::dial_tcp(door.endpoint, net::Exposure::encrypted, seconds(5)));
  Channel channel{std::move(socket), net::TlsSession(door.tls, net::TlsSide::client), {}};
  const Exchange exchange{channel, options.interrupt_fd, deadline, waiting};
  if (auto secured = exchange.shake_hands(); !secured)
    return fail(std::move(secured).error().with("connect to " + door.endpoint.str()));
  return channel;
}

std::string request_text(const std::string& path, const std::string& body) {
  return "POST " + path +
         " HTTP/1.1\r\nHost: zed\r\nContent-Type: application/json\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

/// Reads one response to its end. `touched` says whether a byte of it came.
Status read_response(const Exchange& exchange, ResponseReader& reader, bool& touched) {
  std::array<char, 16384> buffer{};
  while (!reader.is_complete()) {
    ZED_TRY(std::string_view bytes, exchange.receive(buffer));
    if (bytes.empty()) return reader.feed_end();
    touched = true;
    ZED_CHECK(reader.feed(bytes));
  }
  return {};
}

/// Whether an idle connection has been closed by the other side meanwhile.
bool is_stale(int fd) {
  pollfd watched{fd, POLLIN, 0};
  return ::poll(&watched, 1, 0) != 0;
}

Result<api::FleetEvent> read_event(const StreamEvent& event) {
  ZED_TRY(auto value, parse_json(event.data));
  if (event.kind == "fleet") return from_value<api::FleetEvent>(value);
  return fail(error_of(503, event.data));
}

}  // namespace

Result<std::string> Client::post(const std::string& path, const Value& body,
                                 const WhileWaiting& waiting) {
  const auto deadline = Clock::now() + chrono_of(options_.time_limit);
  const std::string request = request_text(path, to_json(body));
  if (channel_ && is_stale(channel_.socket.get())) channel_ = {};
  if (!channel_) {
    ZED_TRY(channel_, connect(options_, deadline, waiting));
  }
  Channel channel = std::exchange(channel_, Channel{});
  const Exchange exchange{channel, options_.interrupt_fd, deadline, waiting};
  const Status sent = exchange.send(request);
  // A server that refuses a large request may answer and close before it has read it all.
  const bool may_be_answered =
      sent || sent.error().code == ErrorCode::unavailable || sent.error().code == ErrorCode::io;
  if (!may_be_answered) return fail(sent.error());
  ResponseReader reader;
  bool touched = false;
  const Status read = read_response(exchange, reader, touched);
  if (!sent && !touched) return fail(sent.error());
  if (!read) return fail(read.error());
  if (reader.stays_open()) channel_ = std::move(channel);
  std::string answer = reader.take_body();
  if (reader.status() == 200) return answer;
  return fail(error_of(reader.status(), answer));
}

Status Client::follow(std::optional<std::uint64_t> after,
                      const std::function<bool(const api::FleetEvent&)>& on_event,
                      std::optional<Millis> limit) {
  const WhileWaiting quietly;
  const auto deadline =
      Clock::now() + (limit ? chrono_of(*limit) : std::chrono::milliseconds(never));
  ZED_TRY(Channel channel,
          connect(options_, Clock::now() + chrono_of(options_.time_limit), quietly));
  const Exchange exchange{channel, options_.interrupt_fd, deadline, quietly};
  ZED_CHECK(exchange.send("GET /v1/events" + (after ? "?after=" + std::to_string(*after) : "") +
                          " HTTP/1.1\r\nHost: zed\r\nAccept: text/event-stream\r\n\r\n"));
  ResponseReader reader;
  EventStreamReader events;
  std::array<char, 16384> buffer{};
  while (!reader.is_complete()) {
    ZED_TRY(std::string_view bytes, exchange.receive(buffer));
    if (bytes.empty())
      ZED_CHECK(reader.feed_end());
    else
      ZED_CHECK(reader.feed(bytes));
    if (reader.status() != 200) continue;
    ZED_TRY(auto complete, events.feed(reader.take_body()));
    for (const StreamEvent& event : complete) {
      ZED_TRY(auto fleet_event, read_event(event));
      if (!on_event(fleet_event)) return {};
    }
  }
  if (reader.status() != 200) return fail(error_of(reader.status(), reader.take_body()));
  return fail(ErrorCode::unavailable, "the controller ended the stream of events",
              "it may have been stopped or restarted");
}

}  // namespace zed::http
