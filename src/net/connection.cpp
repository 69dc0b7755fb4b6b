#include "net/connection.hpp"

#include <algorithm>
#include <cerrno>
#include <deque>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "net/asio.hpp"
#include "net/system.hpp"

namespace zed::net {
namespace {

using Wait = boost::asio::posix::descriptor_base;

void prepare(int fd) {
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  // Small messages must not wait for one another; fails harmlessly on a UNIX socket.
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  quiet(fd);
}

}  // namespace

// Waits for readiness and reads and writes by hand, so that an idle connection needs no buffer and
// a small message to an idle peer leaves in the call that sends it.
struct Connection::State : std::enable_shared_from_this<Connection::State> {
  State(Loop& owner, Fd fd, Bytes limit)
      : loop(owner), socket(context(owner), fd.release()),
        max_queued(static_cast<std::size_t>(limit.value)), last_words(owner) {}

  void wait_readable() {
    if (reading || paused || !open || finishing) return;
    reading = true;
    socket.async_wait(Wait::wait_read,
                      [self = shared_from_this()](const boost::system::error_code& error) {
                        self->reading = false;
                        if (!error && self->open && !self->paused && !self->finishing) self->read();
                      });
  }

  void read() {
    auto& buffer = loop.internals().read_buffer;
    const ssize_t got = ::recv(socket.native_handle(), buffer.data(), buffer.size(), 0);
    if (got > 0) {
      const std::span<const std::uint8_t> bytes(buffer.data(), static_cast<std::size_t>(got));
      if (tls)
        decrypt(bytes);
      else
        handlers.on_bytes(bytes);
    } else if (got == 0) {
      return end(Error{ErrorCode::unavailable, "the other side closed the connection", {}, {}});
    } else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
      return end(system_error(errno, "read"));
    }
    wait_readable();
  }

  /// Hands over what the bytes of the wire mean, in pieces as large as the buffer.
  void decrypt(std::span<const std::uint8_t> wire) {
    auto& buffer = loop.internals().plain_buffer;
    tls->feed(wire);
    for (bool more = true; more && open && tls;) {
      std::size_t filled = 0;
      std::optional<Error> failed;
      while (more && filled < buffer.size()) {
        auto got = tls->read(std::span(buffer).subspan(filled));
        more = got && *got > 0;
        filled += got ? *got : 0;
        if (!got) failed = std::move(got).error();
      }
      send_wire();
      if (open && tls->is_open() && !secured && !secure()) return;
      if (filled > 0 && open) handlers.on_bytes({buffer.data(), filled});
      if (failed) return end(std::move(*failed));
    }
  }

  /// The handshake is done: the owner looks at the certificate, then what waited may go.
  bool secure() {
    secured = true;
    const auto& peer = tls->peer();
    if (auto fine = check ? check(peer ? &*peer : nullptr) : Status(); !fine) {
      end(std::move(fine).error());
      return false;
    }
    if (!open) return false;
    queued -= unsent.size();
    // A session that is over already says so by its next read.
    (void)encrypt(std::exchange(unsent, {}));
    if (open && queue.empty() && handlers.on_drained) handlers.on_drained();
    return open;
  }

  Status encrypt(const std::string& plain) {
    ZED_CHECK(tls->write({reinterpret_cast<const std::uint8_t*>(plain.data()), plain.size()}));
    send_wire();
    return {};
  }

  void send_wire() {
    std::string bytes = tls->take_output();
    if (!bytes.empty() && open) push(std::move(bytes));
  }

  /// Hands to the kernel what it takes. False after a failure.
  bool flush() {
    while (!queue.empty()) {
      const std::string& front = queue.front();
      const ssize_t sent = ::send(socket.native_handle(), front.data() + front_sent,
                                  front.size() - front_sent, no_signal);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
      queued -= static_cast<std::size_t>(sent);
      front_sent += static_cast<std::size_t>(sent);
      if (front_sent < front.size()) return true;
      queue.pop_front();
      front_sent = 0;
    }
    return true;
  }

  void wait_writable() {
    if (writing || !open || queue.empty()) return;
    writing = true;
    socket.async_wait(Wait::wait_write,
                      [self = shared_from_this()](const boost::system::error_code& error) {
                        self->writing = false;
                        if (!error && self->open) self->continue_writing();
                      });
  }

  void continue_writing() {
    if (!flush()) return end(system_error(errno, "write"));
    if (!queue.empty()) return wait_writable();
    if (finishing) return close();
    if (handlers.on_drained) handlers.on_drained();
  }

  Status send(std::string bytes) {
    if (!open || finishing || broken)
      return fail(ErrorCode::unavailable, "the connection is closed");
    if (bytes.empty()) return {};
    if (bytes.size() > max_queued - std::min(queued, max_queued))
      return fail(ErrorCode::busy,
                  std::to_string(queued) + " bytes already wait for a slow receiver");
    if (tls && !secured) {
      queued += bytes.size();
      unsent += bytes;
      return {};
    }
    if (tls) return encrypt(bytes);
    push(std::move(bytes));
    return {};
  }

  void push(std::string bytes) {
    queued += bytes.size();
    queue.push_back(std::move(bytes));
    if (queue.size() > 1) return;
    if (flush()) return wait_writable();
    // Reported from the loop: the caller is not prepared for its own end inside send().
    broken = true;
    loop.post(
        [self = shared_from_this(), number = errno] { self->end(system_error(number, "write")); });
  }

  void end(Error error) {
    if (!open) return;
    const bool tell = !finishing;
    auto on_closed = handlers.on_closed;
    close();
    if (tell && on_closed) on_closed(std::move(error));
  }

  void close() {
    if (!open) return;
    open = false;
    last_words.cancel();
    boost::system::error_code ignored;
    socket.close(ignored);
    queue.clear();
    unsent.clear();
    queued = 0;
    // Not here: the handler that is running may be one of them.
    loop.post([self = shared_from_this()] {
      self->handlers = {};
      self->check = nullptr;
    });
  }

  Result<Released> release() {
    if (!open || finishing || broken)
      return fail(ErrorCode::unavailable, "the connection is closed");
    if (queued > 0) return fail(ErrorCode::busy, "bytes wait to be sent");
    Released released{Fd(socket.release()), std::move(tls)};
    tls.reset();
    close();
    return released;
  }

  void finish(Millis limit) {
    if (!open || finishing) return;
    if (tls && secured) {
      tls->close();
      send_wire();
    }
    finishing = true;
    if (queue.empty() || broken) return close();
    last_words.start(limit, [self = shared_from_this()] { self->close(); });
  }

  Loop& loop;
  boost::asio::posix::stream_descriptor socket;
  Handlers handlers;
  std::optional<TlsSession> tls;
  std::function<Status(const pki::CertificateInfo*)> check;
  bool secured = false;  ///< beneath TLS: the handshake is done and the owner has looked
  std::string unsent;    ///< plain, until then
  const std::size_t max_queued;
  std::deque<std::string> queue;
  std::size_t queued = 0;
  std::size_t front_sent = 0;
  Timer last_words;
  bool open = true;
  bool paused = false;
  bool reading = false;
  bool writing = false;
  bool broken = false;
  bool finishing = false;
};

Connection::Connection(Loop& loop, Fd socket, Bytes max_queued) {
  prepare(socket.get());
  state_ = std::make_shared<State>(loop, std::move(socket), max_queued);
}
Connection::Connection(Loop& loop, Fd socket, TlsEnd tls, Bytes max_queued)
    : Connection(loop, std::move(socket), max_queued) {
  state_->tls.emplace(std::move(tls.tls), tls.side, tls.peer);
  state_->check = std::move(tls.check);
}
Connection::~Connection() {
  close();
}
Connection::Connection(Connection&&) noexcept = default;
Connection& Connection::operator=(Connection&& other) noexcept {
  if (this == &other) return *this;
  close();
  state_ = std::move(other.state_);
  return *this;
}

void Connection::start(Handlers handlers) {
  ZED_ASSERT(state_ && handlers.on_bytes);
  state_->handlers = std::move(handlers);
  if (state_->tls) state_->send_wire();
  state_->wait_readable();
}

Status Connection::send(std::string bytes) {
  if (!state_) return fail(ErrorCode::unavailable, "there is no connection");
  return state_->send(std::move(bytes));
}

Bytes Connection::queued() const {
  return {state_ ? static_cast<std::int64_t>(state_->queued) : 0};
}

void Connection::pause() {
  if (state_) state_->paused = true;
}

void Connection::resume() {
  if (!state_) return;
  state_->paused = false;
  state_->wait_readable();
}

void Connection::close() {
  // A finishing connection outlives its handle: its last bytes are on their way.
  if (state_ && !state_->finishing) state_->close();
}

void Connection::finish(Millis limit) {
  if (state_) state_->finish(limit);
}

Result<Connection::Released> Connection::release() {
  if (!state_) return fail(ErrorCode::unavailable, "there is no connection");
  return state_->release();
}

bool Connection::is_open() const {
  return state_ && state_->open && !state_->finishing;
}

int Connection::fd() const {
  return is_open() ? state_->socket.native_handle() : -1;
}

namespace {

using boost::asio::ip::tcp;

struct Attempt : std::enable_shared_from_this<Attempt> {
  Attempt(Loop& owner, Endpoint target, ConnectOptions how, std::function<void(Result<Fd>)> then)
      : loop(owner), endpoint(std::move(target)), options(how), done(std::move(then)),
        resolver(context(owner)), socket(context(owner)), deadline(owner) {}

  void start() {
    deadline.start(options.deadline, [self = shared_from_this()] {
      self->finish(
          fail(ErrorCode::timeout,
               "no answer within " + std::to_string(self->options.deadline.value) + " ms"));
    });
    boost::system::error_code error;
    const std::string host = endpoint.host == "localhost" ? "127.0.0.1" : endpoint.host;
    const auto address = boost::asio::ip::make_address(host, error);
    if (!error) {
      addresses.push_back({address, endpoint.port});
      loop.post([self = shared_from_this()] { self->try_next(); });
      return;
    }
    resolver.async_resolve(host, std::to_string(endpoint.port), tcp::resolver::numeric_service,
                           [self = shared_from_this()](const boost::system::error_code& failed,
                                                       const tcp::resolver::results_type& results) {
                             if (failed)
                               return self->finish(
                                   fail(ErrorCode::not_found, "no address is known for that name",
                                        "check the host's name, or give its address"));
                             for (const auto& result : results)
                               self->addresses.push_back(result.endpoint());
                             self->try_next();
                           });
  }

  void try_next() {
    if (!done) return;
    if (next == addresses.size()) return finish(fail(std::move(last_error)));
    const tcp::endpoint address = addresses[next++];
    const Endpoint shown{address.address().to_string(), address.port()};
    if (auto allowed = check_exposure(shown, options.exposure); !allowed) {
      last_error = std::move(allowed).error();
      return try_next();
    }
    boost::system::error_code ignored;
    socket.close(ignored);
    // Opened by hand to be close-on-exec before the wait: children may be started meanwhile.
    boost::system::error_code unopened;
    socket.open(address.protocol(), unopened);
    if (unopened) return tried(unopened);
    ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
    socket.async_connect(address,
                         [self = shared_from_this()](const boost::system::error_code& error) {
                           self->tried(error);
                         });
  }

  void tried(const boost::system::error_code& error) {
    if (!done) return;
    if (error) {
      last_error = system_error(error.value(), "connect");
      last_error.frames.clear();
      return try_next();
    }
    finish(Fd(socket.release()));
  }

  void finish(Result<Fd> result) {
    if (!done) return;
    deadline.cancel();
    resolver.cancel();
    boost::system::error_code ignored;
    socket.close(ignored);
    auto call = std::exchange(done, nullptr);
    if (!result) return call(fail(std::move(result).error().with("connect to " + endpoint.str())));
    call(std::move(result));
  }

  Loop& loop;
  Endpoint endpoint;
  ConnectOptions options;
  std::function<void(Result<Fd>)> done;
  tcp::resolver resolver;
  tcp::socket socket;
  Timer deadline;
  std::vector<tcp::endpoint> addresses;
  std::size_t next = 0;
  Error last_error{ErrorCode::not_found, "the name has no address", {}, {}};
};

}  // namespace

void connect_tcp(Loop& loop, const Endpoint& endpoint, ConnectOptions options,
                 std::function<void(Result<Fd>)> done) {
  std::make_shared<Attempt>(loop, endpoint, options, std::move(done))->start();
}

boost::asio::ip::tcp::socket adopt_tcp(Loop& loop, Fd fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  const bool known = ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0;
  const bool v6 = known && address.ss_family == AF_INET6;
  prepare(fd.get());
  return {context(loop), v6 ? tcp::v6() : tcp::v4(), fd.release()};
}

boost::asio::local::stream_protocol::socket adopt_unix(Loop& loop, Fd fd) {
  prepare(fd.get());
  return {context(loop), boost::asio::local::stream_protocol(), fd.release()};
}

}  // namespace zed::net
