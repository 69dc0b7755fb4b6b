#pragma once
// INTERNAL to src/http: a connection whose request was for the fleet's events, as they come
// ("text/event-stream").

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/beast/core/basic_stream.hpp>

#include "http/follower_queue.hpp"
#include "http/session.hpp"
#include "net/loop.hpp"

namespace zed::http {

using SocketStream = boost::beast::basic_stream<boost::asio::generic::stream_protocol>;

/// Sends events to one follower until it leaves, or falls too far behind. Lives in the session
/// whose connection it writes to, and keeps that alive while something is under way.
class EventStream final : public Follower {
public:
  EventStream(std::weak_ptr<Session> session, std::shared_ptr<Core> core, SocketStream& socket);
  ~EventStream() override { leave(); }
  EventStream(const EventStream&) = delete;
  EventStream& operator=(const EventStream&) = delete;

  /// The head of the answer, and the events after number `after` if there is one, asked for as
  /// `caller`.
  void begin(const api::Caller& caller, std::optional<std::uint64_t> after);
  void push(std::uint64_t number, std::shared_ptr<const std::string> text) override;
  /// The session closes.
  void stop();

private:
  bool is_over() const;
  void leave() { core_->followers.erase(this); }
  void close();
  void ask_for_backlog(const api::Caller& caller, std::uint64_t after);
  void on_backlog(const Result<Value>& backlog);
  void say(std::string text);
  void write_next();
  void on_written();
  void drop();
  void end_with(std::string last_words);
  void comment_later();
  void read_and_forget();

  std::weak_ptr<Session> session_;
  std::shared_ptr<Core> core_;
  SocketStream& socket_;
  net::Timer comment_timer_;
  FollowerQueue queue_;
  std::array<char, 4096> scratch_{};
  bool is_writing_ = false;
};

}  // namespace zed::http
