#include <boost/asio/write.hpp>

#include "base/json.hpp"
#include "http/event_stream_impl.hpp"
#include "http/pending_reply.hpp"
#include "http/status.hpp"
#include "net/asio.hpp"

namespace zed::http {
namespace {

namespace asio = boost::asio;
using ErrorInfo = boost::system::error_code;

constexpr char head[] = "HTTP/1.1 200 OK\r\n"
                        "Content-Type: text/event-stream\r\n"
                        "Cache-Control: no-store\r\n"
                        "X-Content-Type-Options: nosniff\r\n"
                        "Connection: close\r\n\r\n"
                        "retry: 2000\n\n";
constexpr std::int64_t most_backlog = 1000;

std::uint64_t number_of(const Value& event) {
  const Value* member = event.find("number");
  auto number = member != nullptr ? from_value<std::uint64_t>(*member) : Result<std::uint64_t>(0);
  return number.value_or(0);
}

}  // namespace

std::string encode_event(std::uint64_t number, const Value& event) {
  return "id: " + std::to_string(number) + "\nevent: fleet\ndata: " + to_json(event) + "\n\n";
}

EventStream::EventStream(std::weak_ptr<Session> session, std::shared_ptr<Core> core,
                         SocketStream& socket)
    : session_(std::move(session)), core_(std::move(core)), socket_(socket),
      comment_timer_(core_->loop), queue_(core_->limits.follower_queue) {
  core_->followers.insert(this);
}

void EventStream::begin(const api::Caller& caller, std::optional<std::uint64_t> after) {
  say(head);
  read_and_forget();
  comment_later();
  if (after) ask_for_backlog(caller, *after);
}

void EventStream::stop() {
  leave();
  comment_timer_.cancel();
}

void EventStream::close() {
  if (auto session = session_.lock()) session->close();
}

bool EventStream::is_over() const {
  const auto session = session_.lock();
  return !session || session->is_closed() || queue_.is_ending();
}

// ---- what the follower missed, and what happens

void EventStream::ask_for_backlog(const api::Caller& caller, std::uint64_t after) {
  if (!core_->handler) return close();
  queue_.expect_backlog(after);
  api::ListEvents backlog;
  backlog.after = after;
  backlog.limit = most_backlog;
  auto pending =
      std::make_shared<PendingReply>([this, weak = session_](const Result<Value>& result) {
        if (auto keep = weak.lock()) on_backlog(result);
      });
  auto handler = core_->handler;  // it may destroy the server
  handler(backlog, caller, [pending](Result<Value> result) { pending->finish(std::move(result)); });
}

void EventStream::on_backlog(const Result<Value>& backlog) {
  if (is_over()) return;
  if (!backlog) return end_with("event: error\ndata: " + error_body(backlog.error()) + "\n");
  bool fits = true;
  const Value* events = backlog->find("events");
  if (events != nullptr && events->as_list() != nullptr)
    for (const Value& event : *events->as_list()) {
      const std::uint64_t number = number_of(event);
      auto text = std::make_shared<const std::string>(encode_event(number, event));
      fits = queue_.push_backlog(number, std::move(text));
      if (!fits) break;
    }
  if (!fits || !queue_.backlog_ends()) return drop();
  write_next();
}

void EventStream::push(std::uint64_t number, std::shared_ptr<const std::string> text) {
  if (is_over()) return;
  if (!queue_.push(number, std::move(text))) return drop();
  write_next();
}

void EventStream::drop() {
  const Error error{ErrorCode::busy,
                    "events came faster than they were read",
                    {},
                    "follow again with ?after=" + std::to_string(queue_.last_number())};
  end_with("event: dropped\ndata: " + error_body(error) + "\n");
}

void EventStream::end_with(std::string last_words) {
  leave();
  queue_.end_with(std::make_shared<const std::string>(std::move(last_words)));
  write_next();
}

// ---- the connection

void EventStream::say(std::string text) {
  queue_.say(std::make_shared<const std::string>(std::move(text)));
  write_next();
}

void EventStream::write_next() {
  if (is_writing_ || queue_.is_empty()) return;
  is_writing_ = true;
  socket_.expires_after(std::chrono::milliseconds(core_->limits.write_time.value));
  asio::async_write(socket_, asio::buffer(*queue_.front()),
                    [this, keep = session_.lock()](const ErrorInfo& error, std::size_t) {
                      if (keep->is_closed()) return;
                      if (error) return keep->close();
                      on_written();
                    });
}

void EventStream::on_written() {
  is_writing_ = false;
  queue_.pop();
  if (!queue_.is_empty()) return write_next();
  if (queue_.is_ending()) close();
}

void EventStream::comment_later() {
  comment_timer_.start(core_->limits.comment_every, [this, weak = session_] {
    const auto keep = weak.lock();
    if (!keep || is_over()) return;
    if (queue_.is_empty()) say(":\n\n");
    comment_later();
  });
}

void EventStream::read_and_forget() {
  // What a follower says is thrown away; that it left shows as the end of its input.
  socket_.expires_never();
  socket_.async_read_some(asio::buffer(scratch_),
                          [this, keep = session_.lock()](const ErrorInfo& error, std::size_t) {
                            if (keep->is_closed()) return;
                            if (error) return keep->close();
                            read_and_forget();
                          });
}

}  // namespace zed::http
