#include "proc/line_connection.hpp"

#include "base/json.hpp"

namespace zed::proc {

LineConnection::LineConnection(net::Loop& loop, net::Fd socket, std::size_t longest_line,
                               Handlers handlers)
    : connection_(loop, std::move(socket), mebibytes(1)), longest_line_(longest_line),
      handlers_(std::move(handlers)) {
  net::Connection::Handlers events;
  events.on_bytes = [this](std::span<const std::uint8_t> bytes) {
    received({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  };
  events.on_closed = [this](const Error&) {
    if (handlers_.on_closed) handlers_.on_closed();
  };
  connection_.start(std::move(events));
}

LineConnection::~LineConnection() {
  *alive_ = false;
}

void LineConnection::received(std::string_view bytes) {
  // A handler may destroy this object.
  std::shared_ptr<bool> alive = alive_;
  while (*alive && !bytes.empty()) {
    std::size_t end = bytes.find('\n');
    std::string_view piece = bytes.substr(0, end);
    bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
    bool too_long = partial_.size() + piece.size() > longest_line_;
    if (!too_long) partial_ += piece;
    if (too_long) {
      partial_.clear();
      handlers_.on_garbage({ErrorCode::invalid,
                            "a line is longer than " + std::to_string(longest_line_) + " bytes",
                            {},
                            {}});
    } else if (end != std::string_view::npos) {
      std::string line = std::move(partial_);
      partial_.clear();
      auto value = parse_json(line);
      if (value)
        handlers_.on_value(*value);
      else
        handlers_.on_garbage(std::move(value).error());
    }
  }
}

Status LineConnection::send(const Value& value) {
  return connection_.send(to_json(value) + "\n");
}

void LineConnection::close() {
  connection_.close();
}

}  // namespace zed::proc
