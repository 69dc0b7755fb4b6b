#include "stream/frame.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/describe.hpp"
#include "base/json.hpp"
#include "net/system.hpp"

namespace zed::stream {
namespace {

constexpr std::string_view magic = "ZEDD";
constexpr char version = 1;
constexpr std::size_t header_size = 5;

std::size_t longest(FrameKind kind) {
  return kind == FrameKind::data ? longest_data_frame : longest_json_frame;
}

bool is_frame_kind(char c) {
  return c == 'J' || c == 'D' || c == 'E' || c == 'X';
}

constexpr std::size_t wire_buffer = std::size_t{128} << 10;

std::span<const std::uint8_t> octets(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

std::array<std::byte, header_size> encode_header(FrameKind kind, std::size_t size) {
  std::array<std::byte, header_size> header{};
  for (std::size_t i = 0; i < 4; ++i)
    header[i] = static_cast<std::byte>(size >> (24 - 8 * i));
  header[4] = static_cast<std::byte>(kind);
  return header;
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string_view text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::string encode_hello(const StreamHello& hello) {
  std::string bytes(magic);
  bytes += version;
  bytes += static_cast<char>(hello.end);
  bytes.append(2, '\0');
  for (std::uint8_t byte : hello.ticket.bytes)
    bytes += static_cast<char>(byte);
  return bytes;
}

Result<StreamHello> decode_hello(std::span<const std::byte> bytes) {
  if (bytes.size() != hello_size || std::memcmp(bytes.data(), magic.data(), magic.size()) != 0)
    return fail(ErrorCode::invalid, "a data connection began with something else than a hello");
  if (static_cast<char>(bytes[4]) != version)
    return fail(ErrorCode::unsupported, "a data connection of another version",
                "update zed-agent on the older of the two machines");
  char end = static_cast<char>(bytes[5]);
  if (end != 'S' && end != 'R')
    return fail(ErrorCode::invalid, "a data connection of neither sender nor receiver");
  StreamHello hello;
  hello.end = static_cast<End>(end);
  for (std::size_t i = 0; i < hello.ticket.bytes.size(); ++i)
    hello.ticket.bytes[i] = static_cast<std::uint8_t>(bytes[8 + i]);
  return hello;
}

FrameSocket::FrameSocket(net::Fd socket, Millis silence, std::optional<net::TlsSession> tls,
                         std::string already_read)
    : socket_(std::move(socket)), tls_(std::move(tls)), plain_(std::move(already_read)) {
  if (tls_) wire_.resize(wire_buffer);
  int flags = ::fcntl(socket_.get(), F_GETFL);
  ::fcntl(socket_.get(), F_SETFL, flags & ~O_NONBLOCK);
  timeval limit{};
  limit.tv_sec = silence.value / 1000;
  limit.tv_usec = static_cast<decltype(limit.tv_usec)>((silence.value % 1000) * 1000);
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

Status FrameSocket::introduce(const StreamHello& hello, const std::string& node) {
  const std::string text = encode_hello(hello);
  if (!tls_) return write_all(bytes_of(text));
  ZED_CHECK(flush_tls());
  while (!tls_->is_open())
    ZED_CHECK(decrypt_more(true));
  const auto& peer = tls_->peer();
  if (!peer || peer->identity.node != node)
    return fail(ErrorCode::refused,
                "the machine at the other end of the transfer is " +
                    (peer ? peer->identity.node : "unknown") + ", not " + node,
                "check the addresses of both machines");
  return write_all(bytes_of(text));
}

void FrameSocket::stop() {
  stopped_ = true;
  ::shutdown(socket_.get(), SHUT_RDWR);
}

Error FrameSocket::failure(int error_number, const char* what) const {
  if (stopped_) return {ErrorCode::cancelled, "the transfer was cancelled", {}, {}};
  if (error_number == EAGAIN || error_number == EWOULDBLOCK)
    return {ErrorCode::timeout, "the other end of the transfer fell silent", {}, {}};
  return net::system_error(error_number, what);
}

Status FrameSocket::read_exactly(std::span<std::byte> buffer) {
  while (!buffer.empty()) {
    ZED_TRY(const std::size_t n, read_some(buffer));
    buffer = buffer.subspan(n);
  }
  return {};
}

/// At least a byte.
Result<std::size_t> FrameSocket::read_some(std::span<std::byte> buffer) {
  if (!tls_ && plain_read_ == plain_.size()) return receive_wire(buffer, true);
  while (plain_read_ == plain_.size())
    ZED_CHECK(decrypt_more(true));
  const std::size_t count = std::min(buffer.size(), plain_.size() - plain_read_);
  std::memcpy(buffer.data(), plain_.data() + plain_read_, count);
  plain_read_ += count;
  return count;
}

/// What the kernel has; 0 only without `wait`, if there is nothing yet.
Result<std::size_t> FrameSocket::receive_wire(std::span<std::byte> buffer, bool wait) {
  for (;;) {
    ssize_t n = ::recv(socket_.get(), buffer.data(), buffer.size(), wait ? 0 : MSG_DONTWAIT);
    if (n > 0) return static_cast<std::size_t>(n);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && !wait && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::size_t{0};
    if (n < 0) return fail(failure(errno, "read from the other end of the transfer"));
    if (stopped_) return fail(failure(0, ""));
    return fail(ErrorCode::unavailable, "the other end closed the connection");
  }
}

/// One read of the wire into `plain_`; it may hold no plain byte, or end the handshake.
Status FrameSocket::decrypt_more(bool wait) {
  ZED_TRY(const std::size_t n, receive_wire(wire_, wait));
  if (n == 0) return {};
  plain_.erase(0, std::exchange(plain_read_, 0));
  tls_->feed(octets(std::span<const std::byte>(wire_).first(n)));
  for (;;) {
    const std::size_t filled = plain_.size();
    constexpr std::size_t record = std::size_t{16} << 10;
    plain_.resize(filled + record);
    auto got = tls_->read({reinterpret_cast<std::uint8_t*>(plain_.data()) + filled, record});
    plain_.resize(filled + (got ? *got : 0));
    // Words of farewell may stand before the end.
    if (!got && !plain_.empty()) return {};
    if (!got) {
      (void)flush_tls();
      return fail(std::move(got).error());
    }
    if (*got == 0) return flush_tls();
  }
}

/// What TLS itself has to say.
Status FrameSocket::flush_tls() {
  const std::string wire = tls_->take_output();
  return send_wire(bytes_of(wire));
}

Status FrameSocket::write_all(std::span<const std::byte> bytes) {
  if (!tls_) return send_wire(bytes);
  ZED_CHECK(tls_->write(octets(bytes)));
  return flush_tls();
}

Status FrameSocket::send_wire(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t n = ::send(socket_.get(), bytes.data(), bytes.size(), net::no_signal);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(failure(errno, "write to the other end of the transfer"));
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

Status FrameSocket::send(FrameKind kind, std::span<const std::byte> payload) {
  ZED_ASSERT(payload.size() <= longest(kind));
  auto header = encode_header(kind, payload.size());
  if (tls_) {
    ZED_CHECK(tls_->write(octets(header)));
    return write_all(payload);
  }
  // One system call for header and payload together in the common case.
  iovec parts[2] = {{header.data(), header.size()},
                    {const_cast<std::byte*>(payload.data()), payload.size()}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  ssize_t n = ::sendmsg(socket_.get(), &message, net::no_signal);
  if (n < 0) return fail(failure(errno, "write to the other end of the transfer"));
  auto sent = static_cast<std::size_t>(n);
  if (sent < header.size()) {
    ZED_CHECK(write_all(std::span<const std::byte>(header).subspan(sent)));
    return write_all(payload);
  }
  return write_all(payload.subspan(sent - header.size()));
}

Status FrameSocket::send_json(const Value& value) {
  std::string text = to_json(value);
  if (text.size() > longest_json_frame)
    return fail(ErrorCode::invalid, "the properties of this snapshot are too long to travel");
  return send(FrameKind::json, bytes_of(text));
}

void FrameSocket::send_error(const Error& error) {
  std::string text = to_json(to_value(error));
  if (text.size() > longest_json_frame || !send(FrameKind::error, bytes_of(text))) return;
  ::shutdown(socket_.get(), SHUT_WR);
  // Closing with unread bytes would reset the connection, and the error with it.
  timeval moment{1, 0};
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &moment, sizeof moment);
  std::array<std::byte, 65536> rest{};
  constexpr int most_reads = 4096;
  for (int i = 0; i < most_reads; ++i)
    if (::recv(socket_.get(), rest.data(), rest.size(), 0) <= 0) return;
}

Status FrameSocket::check_for_error() {
  pollfd watched{socket_.get(), POLLIN, 0};
  const auto nothing_read = [this] { return plain_read_ == plain_.size(); };
  // Beneath TLS the wire may hold what is no byte for us.
  if (tls_ && nothing_read()) ZED_CHECK(decrypt_more(false));
  if (nothing_read() && (tls_ || ::poll(&watched, 1, 0) <= 0)) return {};
  Frame frame;
  ZED_CHECK(receive(frame));
  return fail(ErrorCode::corrupt, "the other end spoke out of turn");
}

Status FrameSocket::receive(Frame& frame) {
  std::array<std::byte, header_size> header{};
  ZED_CHECK(read_exactly(header));
  heard_ = true;
  std::size_t size = 0;
  for (std::size_t i = 0; i < 4; ++i)
    size = size << 8 | static_cast<std::size_t>(header[i]);
  char kind = static_cast<char>(header[4]);
  if (!is_frame_kind(kind) || size > longest(static_cast<FrameKind>(kind)))
    return fail(ErrorCode::corrupt, "a frame of an unknown kind or length arrived");
  frame.kind = static_cast<FrameKind>(kind);
  frame.payload.resize(size);
  ZED_CHECK(read_exactly(frame.payload));
  if (frame.kind != FrameKind::error) return {};
  ZED_TRY(Value value, parse_json(text_of(frame.payload)));
  ZED_TRY(Error error, from_value<Error>(value));
  return fail(std::move(error).with("the other end"));
}

Result<Value> FrameSocket::receive_json() {
  Frame frame;
  ZED_CHECK(receive(frame));
  if (frame.kind != FrameKind::json)
    return fail(ErrorCode::corrupt, "expected a JSON frame from the other end");
  return parse_json(text_of(frame.payload));
}

}  // namespace zed::stream
