#include "stream/frame.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/describe.hpp"
#include "base/json.hpp"

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

FrameSocket::FrameSocket(net::Fd socket, Millis silence) : socket_(std::move(socket)) {
  int flags = ::fcntl(socket_.get(), F_GETFL);
  ::fcntl(socket_.get(), F_SETFL, flags & ~O_NONBLOCK);
  timeval limit{silence.value / 1000, (silence.value % 1000) * 1000};
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
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
    ssize_t n = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(failure(errno, "read from the other end of the transfer"));
    if (n == 0) {
      if (stopped_) return fail(failure(0, ""));
      return fail(ErrorCode::unavailable, "the other end closed the connection");
    }
    buffer = buffer.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

Status FrameSocket::write_all(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t n = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(failure(errno, "write to the other end of the transfer"));
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

Status FrameSocket::send(FrameKind kind, std::span<const std::byte> payload) {
  ZED_ASSERT(payload.size() <= longest(kind));
  auto header = encode_header(kind, payload.size());
  // One system call for header and payload together in the common case.
  iovec parts[2] = {{header.data(), header.size()},
                    {const_cast<std::byte*>(payload.data()), payload.size()}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  ssize_t n = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
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
  if (::poll(&watched, 1, 0) <= 0) return {};
  Frame frame;
  ZED_CHECK(receive(frame));
  return fail(ErrorCode::corrupt, "the other end spoke out of turn");
}

Status FrameSocket::receive(Frame& frame) {
  std::array<std::byte, header_size> header{};
  ZED_CHECK(read_exactly(header));
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
