#pragma once
// A connection that speaks lines of JSON.

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/value.hpp"
#include "net/connection.hpp"

namespace zed::proc {

class LineConnection {
public:
  struct Handlers {
    /// Each line that is JSON.
    std::function<void(const Value&)> on_value;
    /// A line that is not JSON or longer than the limit. The connection stays open and is the
    /// caller's to close; what follows an overlong line's limit is read as a line of its own.
    std::function<void(Error)> on_garbage;
    std::function<void()> on_closed;
  };

  LineConnection(net::Loop& loop, net::Fd socket, std::size_t longest_line, Handlers handlers);
  ~LineConnection();
  /// `busy` if the other side does not read.
  Status send(const Value& value);
  void close();
  /// Takes no more and closes once what was sent is written; may be destroyed meanwhile.
  void finish() { connection_.finish(); }
  int fd() const { return connection_.fd(); }

private:
  void received(std::string_view bytes);

  net::Connection connection_;
  std::size_t longest_line_;
  Handlers handlers_;
  std::string partial_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace zed::proc
