#pragma once
// INTERNAL: the loop's asio, for the .cpp files of rooms that perform effects (net, http, stream,
// proc). Never included by a public header: asio costs seconds a translation unit.

#include <array>
#include <cstdint>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>

#include "net/endpoint.hpp"
#include "net/fd.hpp"
#include "net/loop.hpp"

namespace zed::net {

struct Loop::Internals {
  boost::asio::io_context context{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{
      context.get_executor()};
  /// What every Connection reads into: handlers see it during their call only.
  std::array<std::uint8_t, std::size_t{64} << 10> read_buffer{};
  /// And what it decrypts into.
  std::array<std::uint8_t, std::size_t{64} << 10> plain_buffer{};
};

inline boost::asio::io_context& context(Loop& loop) {
  return loop.internals().context;
}

/// An asio socket that owns `fd`, a connected TCP or UNIX socket (Listener's and connect_tcp's).
boost::asio::ip::tcp::socket adopt_tcp(Loop& loop, Fd fd);
boost::asio::local::stream_protocol::socket adopt_unix(Loop& loop, Fd fd);

}  // namespace zed::net
