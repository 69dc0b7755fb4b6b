#include "http/session.hpp"

#include <array>
#include <utility>

#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <sys/socket.h>

#include "base/describe.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "http/event_stream_impl.hpp"
#include "http/openapi.hpp"
#include "http/pending_reply.hpp"
#include "http/status.hpp"
#include "http/target.hpp"
#include "net/asio.hpp"

namespace zed::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace bhttp = boost::beast::http;
using ErrorInfo = boost::system::error_code;

constexpr std::string_view json_type = "application/json";
constexpr std::string_view continue_line = "HTTP/1.1 100 Continue\r\n\r\n";
/// After an answer that ends the connection early, so much of what the client still sends is read
/// and thrown away, that it gets to see the answer instead of a reset.
constexpr std::size_t most_drained = std::size_t{16} << 20;
constexpr Millis drain_time{2000};

std::chrono::milliseconds chrono_of(Millis time) {
  return std::chrono::milliseconds(time.value);
}

std::string_view view_of(beast::string_view text) {
  return {text.data(), text.size()};
}

Value with_schema(Value body) {
  if (body.as_map() != nullptr && body.find("schema") != nullptr) return body;
  Value whole = Value::map();
  whole.set("schema", api::schema_version);
  if (body.as_map() == nullptr) return body.is_null() ? whole : whole.set("result", body);
  for (const auto& member : *body.as_map())
    whole.set(member.key, member.value);
  return whole;
}

class HttpSession final : public Session, public std::enable_shared_from_this<HttpSession> {
public:
  HttpSession(std::shared_ptr<Core> core, std::shared_ptr<const Admission> admission, net::Fd fd,
              Visitor visitor)
      : core_(std::move(core)), admission_(std::move(admission)), visitor_(std::move(visitor)),
        stream_(net::context(core_->loop)), timer_(core_->loop),
        buffer_(static_cast<std::size_t>(core_->limits.header.value) + 4096) {
    const int family = family_of(fd.get());
    ErrorInfo error;
    stream_.socket().assign(asio::generic::stream_protocol(family, 0), fd.get(), error);
    if (!error) fd.release();
    core_->sessions.insert(this);
  }
  ~HttpSession() override { leave(); }

  void read_request();
  void close() override;
  bool is_closed() const override { return closed_; }

private:
  static int family_of(int fd) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    return ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0 ? address.ss_family
                                                                                : AF_INET;
  }
  /// Calls a member when an operation ends; the session lives until then.
  template <class Then> auto then(Then member) {
    return [self = shared_from_this(), member](const ErrorInfo& error, std::size_t n) {
      ((*self).*member)(error, n);
    };
  }
  void leave() { core_->sessions.erase(this); }

  void on_header(const ErrorInfo& error, std::size_t);
  void read_body();
  void on_continue_sent(const ErrorInfo& error, std::size_t);
  void on_body(const ErrorInfo& error, std::size_t);
  void on_bad_input(const ErrorInfo& error);
  std::optional<Refused> refusal();

  void carry_out(const Route& route);
  void follow(std::optional<std::uint64_t> after);
  void call(const CallOperation& operation);
  void enrol(const EnrolMachine& what);
  Result<Value> arguments();
  void ask(api::Request request, std::function<void(Result<Value>)> done);
  void watch_for_the_end(const std::shared_ptr<PendingReply>& waiting);

  void answer(Result<Value> result);
  void answer_error(unsigned status, const Error& error, bool keep_open);
  void respond(unsigned status, std::string_view type, std::string body, bool keep_open);
  void on_written(const ErrorInfo& error, std::size_t);
  void drain();
  void on_drained(const ErrorInfo& error, std::size_t n);

  std::shared_ptr<Core> core_;
  std::shared_ptr<const Admission> admission_;
  Visitor visitor_;
  SocketStream stream_;
  net::Timer timer_;
  beast::flat_buffer buffer_;
  std::optional<bhttp::request_parser<bhttp::string_body>> parser_;
  std::optional<Route> route_;
  bhttp::response<bhttp::string_body> response_;
  std::array<char, 4096> scratch_{};
  std::size_t drained_ = 0;
  bool keep_open_ = true;
  bool closed_ = false;
  std::unique_ptr<EventStream> events_;  ///< of a follower
};

// ---- one request after the other

void HttpSession::read_request() {
  parser_.emplace();
  parser_->header_limit(static_cast<std::uint32_t>(core_->limits.header.value));
  parser_->body_limit(static_cast<std::uint64_t>(core_->limits.body.value));
  stream_.expires_after(chrono_of(core_->limits.header_time));
  bhttp::async_read_header(stream_, buffer_, *parser_, then(&HttpSession::on_header));
}

void HttpSession::on_header(const ErrorInfo& error, std::size_t) {
  if (closed_) return;
  if (error) return on_bad_input(error);
  // Before a byte of the body is taken: who asks, and for what.
  if (auto refused = refusal()) return answer_error(refused->status, refused->error, false);
  const auto& request = parser_->get();
  auto route = route_of(view_of(request.method_string()), view_of(request.target()));
  if (auto* none = std::get_if<NoRoute>(&route)) {
    if (!none->allow.empty()) response_.set(bhttp::field::allow, none->allow);
    return answer_error(none->status, none->error, false);
  }
  route_ = std::get<Route>(std::move(route));
  const bool waits = beast::iequals(request[bhttp::field::expect], "100-continue");
  if (!waits || parser_->is_done()) return read_body();
  asio::async_write(stream_, asio::buffer(continue_line), then(&HttpSession::on_continue_sent));
}

void HttpSession::on_continue_sent(const ErrorInfo& error, std::size_t) {
  if (closed_) return;
  if (error) return close();
  read_body();
}

void HttpSession::read_body() {
  stream_.expires_after(chrono_of(core_->limits.body_time));
  bhttp::async_read(stream_, buffer_, *parser_, then(&HttpSession::on_body));
}

void HttpSession::on_body(const ErrorInfo& error, std::size_t) {
  if (closed_) return;
  if (error) return on_bad_input(error);
  stream_.expires_never();
  keep_open_ = parser_->get().keep_alive();
  carry_out(*std::exchange(route_, std::nullopt));
}

void HttpSession::on_bad_input(const ErrorInfo& error) {
  if (error == bhttp::error::body_limit)
    return answer_error(
        413,
        Error{ErrorCode::invalid, "the request is larger than " + show(core_->limits.body), {}, ""},
        false);
  if (error == bhttp::error::header_limit || error == bhttp::error::buffer_overflow)
    return answer_error(431,
                        Error{ErrorCode::invalid,
                              "the request's head is larger than " + show(core_->limits.header),
                              {},
                              ""},
                        false);
  const bool is_http =
      error.category() == bhttp::make_error_code(bhttp::error::end_of_stream).category();
  if (!is_http || error == bhttp::error::end_of_stream || error == bhttp::error::partial_message)
    return close();
  answer_error(400,
               Error{ErrorCode::invalid,
                     "this is not HTTP: " + error.message(),
                     {},
                     "POST /v1/<operation> with a JSON body"},
               false);
}

std::optional<Refused> HttpSession::refusal() {
  if (visitor_.stranger) return Refused{403, *visitor_.stranger};
  const auto& request = parser_->get();
  const Presented presented{view_of(request[bhttp::field::host]),
                            view_of(request[bhttp::field::origin]),
                            view_of(request[bhttp::field::authorization])};
  const std::string_view target = view_of(request.target());
  const bool is_free = target == "/healthz" || target.starts_with("/enrol/");
  if (admission_->door == Door::tcp && !visitor_.is_certified()) {
    visitor_.caller.may_change = !only_views(presented, *admission_);
    visitor_.caller.who = visitor_.caller.may_change ? "operator token" : "viewer token";
  }
  return refusal_of(presented, *admission_, !is_free && !visitor_.is_certified());
}

// ---- what is asked for

void HttpSession::carry_out(const Route& route) {
  if (std::holds_alternative<AskHealth>(route)) return respond(200, "text/plain", "ok\n", true);
  if (const auto* events = std::get_if<FollowEvents>(&route)) return follow(events->after);
  if (const auto* operation = std::get_if<CallOperation>(&route)) return call(*operation);
  if (const auto* enrol = std::get_if<EnrolMachine>(&route)) return this->enrol(*enrol);
  if (std::holds_alternative<DescribeApi>(route))
    return respond(200, json_type, to_json(openapi_document()) + "\n", true);
  Value operations = Value::list();
  for (const api::OperationInfo& info : api::all_operations()) {
    Value row = Value::map();
    row.set("name", info.name).set("help", info.help).set("changes", info.changes);
    operations.push(std::move(row));
  }
  answer(Value::map().set("operations", std::move(operations)));
}

Result<Value> HttpSession::arguments() {
  const std::string body = std::exchange(parser_->get().body(), {});
  if (trim(body).empty()) return Value();
  auto parsed = parse_json(body, {static_cast<std::size_t>(core_->limits.body.value), 64});
  if (!parsed) return fail(std::move(parsed).error().with("read the request's JSON"));
  // No body is no arguments; a null is somebody's mistake.
  if (parsed->is_null())
    return fail(ErrorCode::invalid, "the arguments of an operation are a map, got null");
  return parsed;
}

void HttpSession::enrol(const EnrolMachine& what) {
  if (!core_->enrol || admission_->door != Door::tcp)
    return answer(fail(ErrorCode::unsupported, "nobody is enrolled by this door",
                       "ask the controller's TLS port"));
  auto body = arguments();
  if (!body) return answer(fail(std::move(body).error()));
  auto waiting = std::make_shared<PendingReply>([weak = weak_from_this()](Result<Value> result) {
    if (auto self = weak.lock()) self->answer(std::move(result));
  });
  core_->enrol({what.step, std::move(*body), visitor_.certificate, visitor_.from},
               [waiting](Result<Value> result) { waiting->finish(std::move(result)); });
  // Which also keeps this session until the answer is known.
  if (waiting->is_due()) watch_for_the_end(waiting);
}

void HttpSession::call(const CallOperation& operation) {
  auto body = arguments();
  if (!body) return answer(fail(std::move(body).error()));
  auto request = api::make_request(operation.name, *body);
  if (!request) return answer(fail(std::move(request).error()));
  ask(std::move(*request), [weak = weak_from_this()](Result<Value> result) {
    if (auto self = weak.lock()) self->answer(std::move(result));
  });
}

void HttpSession::ask(api::Request request, std::function<void(Result<Value>)> done) {
  if (!core_->handler) return close();
  auto waiting = std::make_shared<PendingReply>(std::move(done));
  std::weak_ptr<PendingReply> weak = waiting;
  timer_.start(core_->limits.answer_time, [weak] {
    if (auto late = weak.lock())
      late->give_up({ErrorCode::timeout,
                     "the controller found no answer in time",
                     {},
                     "whether it was done is unknown: zedctl status and events tell"});
  });
  Reply reply = [waiting](Result<Value> result) { waiting->finish(std::move(result)); };
  auto handler = core_->handler;  // it may destroy the server
  OnGone on_gone = handler(std::move(request), visitor_.caller, std::move(reply));
  if (!waiting->is_due()) return;
  waiting->on_gone(std::move(on_gone));
  watch_for_the_end(waiting);
}

void HttpSession::watch_for_the_end(const std::shared_ptr<PendingReply>& waiting) {
  // A hang-up, not mere end of input: a client may close its sending half and wait.
  stream_.socket().async_wait(asio::socket_base::wait_error,
                              [self = shared_from_this(), weak = std::weak_ptr<PendingReply>(
                                                              waiting)](const ErrorInfo& error) {
                                auto left = weak.lock();
                                if (error || !left || !left->is_due()) return;
                                left->abandon();
                                self->close();
                              });
}

void HttpSession::follow(std::optional<std::uint64_t> after) {
  if (core_->followers.size() >= core_->limits.followers)
    return answer_error(
        503, Error{ErrorCode::busy, "too many follow the events already", {}, "close one of them"},
        false);
  events_ = std::make_unique<EventStream>(weak_from_this(), core_, stream_);
  events_->begin(visitor_.caller, after);
}

// ---- answers

void HttpSession::answer(Result<Value> result) {
  if (closed_) return;
  timer_.cancel();
  ErrorInfo ignored;
  stream_.socket().cancel(ignored);
  if (!result) return answer_error(status_of(result.error().code), result.error(), true);
  respond(200, json_type, to_json(with_schema(std::move(*result))) + "\n", true);
}

void HttpSession::answer_error(unsigned status, const Error& error, bool keep_open) {
  if (status == 401) response_.set(bhttp::field::www_authenticate, "Bearer");
  respond(status, json_type, error_body(error), keep_open);
}

void HttpSession::respond(unsigned status, std::string_view type, std::string body,
                          bool keep_open) {
  keep_open_ = keep_open_ && keep_open;
  response_.result(status);
  const std::string_view reason = reason_of(status);
  response_.reason(beast::string_view(reason.data(), reason.size()));
  response_.set(bhttp::field::content_type, beast::string_view(type.data(), type.size()));
  response_.set(bhttp::field::cache_control, "no-store");
  response_.set("X-Content-Type-Options", "nosniff");
  response_.keep_alive(keep_open_);
  response_.body() = std::move(body);
  response_.prepare_payload();
  stream_.expires_after(chrono_of(core_->limits.write_time));
  bhttp::async_write(stream_, response_, then(&HttpSession::on_written));
}

void HttpSession::on_written(const ErrorInfo& error, std::size_t) {
  if (closed_) return;
  if (error) return close();
  response_ = {};
  if (keep_open_) return read_request();
  ErrorInfo ignored;
  stream_.socket().shutdown(asio::socket_base::shutdown_send, ignored);
  stream_.expires_after(chrono_of(drain_time));
  drain();
}

void HttpSession::drain() {
  stream_.async_read_some(asio::buffer(scratch_), then(&HttpSession::on_drained));
}

void HttpSession::on_drained(const ErrorInfo& error, std::size_t n) {
  if (closed_) return;
  drained_ += n;
  if (error || drained_ > most_drained) return close();
  drain();
}

void HttpSession::close() {
  if (std::exchange(closed_, true)) return;
  leave();
  timer_.cancel();
  if (events_) events_->stop();
  stream_.close();
}

}  // namespace

std::shared_ptr<Session> start_session(std::shared_ptr<Core> core,
                                       std::shared_ptr<const Admission> admission, net::Fd socket,
                                       Visitor visitor) {
  auto session = std::make_shared<HttpSession>(std::move(core), std::move(admission),
                                               std::move(socket), std::move(visitor));
  session->read_request();
  return session;
}

}  // namespace zed::http
