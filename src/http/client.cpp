#include "http/client.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/response_reader.hpp"
#include "http/status.hpp"
#include "net/socket.hpp"

namespace zed::http {
namespace {

using Clock = std::chrono::steady_clock;
/// Far enough to never come, near enough to add to.
constexpr std::chrono::hours never{24 * 365};

std::chrono::milliseconds chrono_of(Millis time) {
  return std::chrono::milliseconds(time.value);
}

Result<net::Fd> connect(const std::string& path) {
  auto socket = net::connect_unix(path);
  if (socket) {
    ::fcntl(socket->get(), F_SETFL, ::fcntl(socket->get(), F_GETFL) | O_NONBLOCK);
    return socket;
  }
  Error error = std::move(socket).error();
  // A missing socket is a controller that does not run, not a thing that was not found.
  if (error.code == ErrorCode::not_found) error.code = ErrorCode::unavailable;
  return fail(std::move(error));
}

/// One exchange on one connection: what it waits with and until when.
struct Exchange {
  int fd;
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
      std::array<pollfd, 2> watched{{{fd, events, 0}, {interrupt_fd, POLLIN, 0}}};
      const int ready =
          ::poll(watched.data(), interrupt_fd >= 0 ? 2 : 1, static_cast<int>(left.count()));
      if (ready < 0 && errno != EINTR) return fail(net::system_error(errno, "wait for an answer"));
      if (ready > 0 && watched[1].revents != 0) return fail(ErrorCode::cancelled, "interrupted");
      if (ready > 0 && watched[0].revents != 0) return {};
      if (ready == 0 && waiting.act) waiting.act();
    }
  }

  Status send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
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
    for (;;) {
      const ssize_t n = ::recv(fd, buffer.data(), buffer.size(), 0);
      if (n >= 0) return std::string_view(buffer.data(), static_cast<std::size_t>(n));
      if (errno == EINTR) continue;
      if (errno == ECONNRESET) return std::string_view{};
      if (errno != EAGAIN && errno != EWOULDBLOCK)
        return fail(net::system_error(errno, "read the answer"));
      ZED_CHECK(wait(POLLIN));
    }
  }
};

std::string request_text(std::string_view operation, const std::string& body) {
  return "POST /v1/" + std::string(operation) +
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

Result<std::string> Client::call_text(std::string_view operation, const Value& arguments,
                                      const WhileWaiting& waiting) {
  const auto deadline = Clock::now() + chrono_of(options_.time_limit);
  const std::string request = request_text(operation, to_json(arguments));
  if (socket_ && is_stale(socket_.get())) socket_.reset();
  if (!socket_) {
    ZED_TRY(socket_, connect(options_.socket_path));
  }
  net::Fd socket = std::move(socket_);
  const Exchange exchange{socket.get(), options_.interrupt_fd, deadline, waiting};
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
  if (reader.stays_open()) socket_ = std::move(socket);
  std::string body = reader.take_body();
  if (reader.status() == 200) return body;
  return fail(error_of(reader.status(), body));
}

Status Client::follow(std::optional<std::uint64_t> after,
                      const std::function<bool(const api::FleetEvent&)>& on_event,
                      std::optional<Millis> limit) {
  ZED_TRY(net::Fd socket, connect(options_.socket_path));
  const WhileWaiting quietly;
  const auto deadline =
      Clock::now() + (limit ? chrono_of(*limit) : std::chrono::milliseconds(never));
  const Exchange exchange{socket.get(), options_.interrupt_fd, deadline, quietly};
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
