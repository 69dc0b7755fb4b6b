// The server's doors over real sockets, spoken to by hand: what a browser, a stranger, a slow or a
// broken client gets.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/describe.hpp"
#include "base/json.hpp"
#include "http/admit.hpp"
#include "http/server.hpp"
#include "http/status.hpp"
#include "http/target.hpp"
#include "net/connection.hpp"
#include "net/socket.hpp"

namespace zed::http {
namespace {

namespace fs = std::filesystem;

constexpr Millis patience = seconds(10);

class Doors : public testing::Test {
protected:
  Doors() {
    std::string pattern = (fs::temp_directory_path() / "zed-http-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    options_.socket_path = (folder_ / "s").string();
  }
  ~Doors() override {
    server_.reset();
    fs::remove_all(folder_);
  }

  void open() {
    auto server = Server::open(
        loop_, options_, [this](api::Request request, api::Caller caller, Reply reply) -> OnGone {
          return handle(std::move(request), std::move(caller), std::move(reply));
        });
    ASSERT_TRUE(server) << server.error().describe();
    server_ = std::move(*server);
  }
  void open_tcp() {
    options_.tcp = TcpDoor{{"127.0.0.1", 0}, net::Exposure::loopback_only, token_};
    open();
  }

  OnGone handle(api::Request request, api::Caller caller, Reply reply) {
    ++asked_;
    caller_ = caller;
    if (const auto* why = std::get_if<api::WhyJob>(&request)) {
      if (why->job == "later") held_.push_back(reply);
      if (why->job == "dropped" || why->job == "later") return [this] { ++gone_; };
      reply(fail(ErrorCode::not_found, "no job \"" + why->job + "\"", "zedctl jobs lists them"));
    } else if (std::holds_alternative<api::ListEvents>(request)) {
      api::EventsReply events;
      for (std::uint64_t n = std::get<api::ListEvents>(request).after + 1; n <= backlog_; ++n)
        events.events.push_back(event(n));
      reply(api::encode_reply(events));
    } else {
      reply(to_value(api::StatusReply{}));
    }
    return {};
  }

  static api::FleetEvent event(std::uint64_t number) {
    return {number, WallTime{1}, "notice", "node a", "event " + std::to_string(number)};
  }

  /// A client by hand: what it sends, and all that came back.
  struct Hand {
    net::Connection connection;
    std::string got;
    bool closed = false;
  };
  std::unique_ptr<Hand> adopt(net::Fd fd) {
    auto hand = std::make_unique<Hand>();
    Hand* raw = hand.get();
    hand->connection = net::Connection(loop_, std::move(fd));
    hand->connection.start({[raw](std::span<const std::uint8_t> bytes) {
                              raw->got.append(bytes.begin(), bytes.end());
                            },
                            [raw](const Error&) { raw->closed = true; },
                            {}});
    return hand;
  }
  std::unique_ptr<Hand> knock(const std::string& text) {
    auto fd = net::connect_unix(options_.socket_path);
    EXPECT_TRUE(fd) << fd.error().describe();
    auto hand = adopt(std::move(*fd));
    EXPECT_TRUE(hand->connection.send(text));
    return hand;
  }
  std::unique_ptr<Hand> knock_tcp(const std::string& text) {
    net::Fd fd(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server_->tcp_endpoint().port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    auto hand = adopt(std::move(fd));
    EXPECT_TRUE(hand->connection.send(text));
    return hand;
  }
  bool until(const std::function<bool()>& done) { return loop_.run_until(done, patience); }
  std::string answer_to(Hand& hand) {
    EXPECT_TRUE(until([&hand] {
      return hand.got.find("\n", 10) != std::string::npos && ends(hand);
    })) << hand.got;
    return hand.got;
  }
  static bool ends(const Hand& hand) { return !hand.got.empty() && hand.got.back() == '\n'; }
  std::string over_socket(const std::string& text) { return answer_to(*knock(text)); }
  std::string over_tcp(const std::string& text) { return answer_to(*knock_tcp(text)); }
  std::string own_host() const {
    return "127.0.0.1:" + std::to_string(server_->tcp_endpoint().port);
  }

  static std::string post(std::string_view path, std::string_view body,
                          std::string_view headers = "Host: zed\r\n") {
    return "POST " + std::string(path) + " HTTP/1.1\r\n" + std::string(headers) +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
  }
  static std::string get(std::string_view path, std::string_view headers = "Host: zed\r\n") {
    return "GET " + std::string(path) + " HTTP/1.1\r\n" + std::string(headers) + "\r\n";
  }
  static std::string head_of(const std::string& answer) {
    return answer.substr(0, answer.find("\r\n"));
  }
  static Value body_of(const std::string& answer) {
    auto value = parse_json(answer.substr(answer.find("\r\n\r\n") + 4));
    EXPECT_TRUE(value) << answer;
    return value.value_or(Value());
  }
  static std::string code_of(const std::string& answer) {
    const Value body = body_of(answer);
    const Value* error = body.find("error");
    return error != nullptr && error->find("code") != nullptr ? *error->find("code")->as_text()
                                                              : "";
  }

  net::Loop loop_;
  fs::path folder_;
  ServerOptions options_;
  std::string token_ = std::string(64, 'a');
  std::unique_ptr<Server> server_;
  api::Caller caller_;
  std::vector<Reply> held_;
  int asked_ = 0;
  int gone_ = 0;
  std::uint64_t backlog_ = 0;
};

TEST_F(Doors, AnswersAnOperationAndSaysWhoAsked) {
  open();
  const std::string answer = over_socket(post("/v1/status", "{}"));
  EXPECT_EQ(head_of(answer), "HTTP/1.1 200 OK");
  EXPECT_EQ(*body_of(answer).find("schema")->as_int(), 1);
  EXPECT_EQ(caller_.who, "uid " + std::to_string(::getuid()));
  EXPECT_EQ(caller_.door, "socket");
}

TEST_F(Doors, SocketIsForItsOwnerOnly) {
  open();
  struct stat info {};
  ASSERT_EQ(::stat(options_.socket_path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
}

TEST_F(Doors, KeepsAConnectionForManyRequests) {
  open();
  auto hand = knock(post("/v1/status", "") + get("/healthz") + post("/v1/nodes", "{}"));
  EXPECT_TRUE(until(
      [&] { return asked_ == 2 && hand->got.find("ok\n") != std::string::npos && ends(*hand); }));
  EXPECT_FALSE(hand->closed);
  EXPECT_EQ(server_->connections(), 1U);
}

TEST_F(Doors, ErrorsCarryTheirStatusAndBody) {
  open();
  const std::string answer = over_socket(post("/v1/why", R"({"job":"nix"})"));
  EXPECT_EQ(head_of(answer), "HTTP/1.1 404 Not Found");
  const Error error = error_of(404, answer.substr(answer.find("\r\n\r\n") + 4));
  EXPECT_EQ(error.code, ErrorCode::not_found);
  EXPECT_EQ(error.message, "no job \"nix\"");
  EXPECT_EQ(error.hint, "zedctl jobs lists them");
}

TEST_F(Doors, UnknownThingsAreNamed) {
  open();
  EXPECT_EQ(head_of(over_socket(post("/v1/stattus", "{}"))), "HTTP/1.1 404 Not Found");
  EXPECT_NE(over_socket(post("/v1/stattus", "{}")).find("did you mean"), std::string::npos);
  EXPECT_EQ(head_of(over_socket(get("/favicon.ico"))), "HTTP/1.1 404 Not Found");
  EXPECT_EQ(head_of(over_socket(get("/v1/status"))), "HTTP/1.1 405 Method Not Allowed");
  EXPECT_EQ(head_of(over_socket(post("/v1/status", "{"))), "HTTP/1.1 400 Bad Request");
  EXPECT_EQ(head_of(over_socket(post("/v1/status", "[1]"))), "HTTP/1.1 400 Bad Request");
  EXPECT_EQ(head_of(over_socket(post("/v1/status", "null"))), "HTTP/1.1 400 Bad Request");
  EXPECT_EQ(head_of(over_socket(post("/v1/why", R"({"job":7})"))), "HTTP/1.1 400 Bad Request");
  EXPECT_EQ(head_of(over_socket(get("/v1/events?after=x"))), "HTTP/1.1 400 Bad Request");
  EXPECT_EQ(asked_, 0);
}

TEST_F(Doors, ListsTheTable) {
  open();
  const std::string answer = over_socket(get("/v1/operations"));
  const Value body = body_of(answer);
  ASSERT_NE(body.find("operations"), nullptr);
  EXPECT_EQ(body.find("operations")->as_list()->size(), api::all_operations().size());
}

TEST_F(Doors, DescribesItself) {
  open();
  const Value document = body_of(over_socket(get("/v1/openapi.json")));
  ASSERT_NE(document.find("openapi"), nullptr);
  EXPECT_EQ(*document.find("openapi")->as_text(), "3.1.0");
  EXPECT_EQ(head_of(over_socket(post("/v1/openapi.json", ""))), "HTTP/1.1 405 Method Not Allowed");
}

TEST_F(Doors, GarbageGetsAnAnswerAndTheDoorStays) {
  open();
  for (const std::string& garbage :
       {std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11),
        std::string("\0\0\0\r\n\r\n", 7), std::string("GET\r\n\r\n"),
        std::string("POST /v1/status HTTP/1.1\r\nContent-Length: -1\r\n\r\n"),
        std::string("POST /v1/status HTTP/9.9\r\n\r\n")}) {
    auto hand = knock(garbage + "\r\n\r\n");
    EXPECT_TRUE(until([&] { return hand->closed; }));
    EXPECT_EQ(head_of(hand->got), "HTTP/1.1 400 Bad Request") << hand->got;
  }
  EXPECT_EQ(head_of(over_socket(get("/healthz"))), "HTTP/1.1 200 OK");
}

TEST_F(Doors, BoundsHeadAndBody) {
  options_.limits.body = kibibytes(64);
  open();
  EXPECT_EQ(head_of(over_socket(post("/v1/status", std::string(65537, ' ')))),
            "HTTP/1.1 413 Content Too Large");
  EXPECT_EQ(head_of(over_socket(post("/v1/status", std::string(65536, ' ')))), "HTTP/1.1 200 OK");
  EXPECT_EQ(
      head_of(over_socket(get("/healthz", "Host: zed\r\nX: " + std::string(20000, 'x') + "\r\n"))),
      "HTTP/1.1 431 Request Header Fields Too Large");
  // A chunked body is counted as it comes: it names no length to refuse.
  auto hand = knock("POST /v1/status HTTP/1.1\r\nHost: zed\r\nTransfer-Encoding: chunked\r\n\r\n" +
                    std::string("10001\r\n") + std::string(65537, ' ') + "\r\n0\r\n\r\n");
  EXPECT_TRUE(until([&] { return hand->closed; }));
  EXPECT_EQ(head_of(hand->got), "HTTP/1.1 413 Content Too Large");
  EXPECT_EQ(asked_, 1);
}

TEST_F(Doors, JsonNestedTooDeepIsRefused) {
  open();
  EXPECT_EQ(head_of(over_socket(post("/v1/status", std::string(100000, '[')))),
            "HTTP/1.1 400 Bad Request");
}

TEST_F(Doors, SlowHeadsAndBodiesAreCutOff) {
  options_.limits.header_time = Millis{50};
  options_.limits.body_time = Millis{50};
  open();
  auto head = knock("POST /v1/sta");
  auto body = knock("POST /v1/status HTTP/1.1\r\nHost: zed\r\nContent-Length: 10\r\n\r\n{");
  EXPECT_TRUE(until([&] { return head->closed && body->closed; }));
  EXPECT_EQ(asked_, 0);
  EXPECT_EQ(server_->connections(), 0U);
}

TEST_F(Doors, TakesSoManyConnectionsAndNotOneMore) {
  options_.limits.connections = 3;
  open_tcp();
  std::vector<std::unique_ptr<Hand>> hands;
  for (int i = 0; i < 3; ++i)
    hands.push_back(knock_tcp("GET"));
  EXPECT_TRUE(until([&] { return server_->connections() == 3; }));
  auto last = knock_tcp("");
  EXPECT_TRUE(until([&] { return last->closed; }));
  EXPECT_EQ(head_of(last->got), "HTTP/1.1 503 Service Unavailable");
  // A crowd at one door does not close the other.
  EXPECT_EQ(head_of(over_socket(get("/healthz"))), "HTTP/1.1 200 OK");
  hands.clear();
  EXPECT_TRUE(until([&] { return server_->connections() == 0; }));
  EXPECT_EQ(head_of(over_tcp(get("/healthz", "Host: " + own_host() + "\r\n"))), "HTTP/1.1 200 OK");
}

TEST_F(Doors, TcpWantsTheToken) {
  open_tcp();
  const std::string host = "Host: " + own_host() + "\r\n";
  EXPECT_EQ(head_of(over_tcp(post("/v1/status", "{}", host))), "HTTP/1.1 401 Unauthorized");
  EXPECT_EQ(
      head_of(over_tcp(post("/v1/status", "{}",
                            host + "Authorization: Bearer " + std::string(64, 'b') + "\r\n"))),
      "HTTP/1.1 401 Unauthorized");
  EXPECT_EQ(head_of(over_tcp(get("/v1/events", host))), "HTTP/1.1 401 Unauthorized");
  EXPECT_EQ(head_of(over_tcp(get("/healthz", host))), "HTTP/1.1 200 OK");
  EXPECT_EQ(asked_, 0);
  EXPECT_EQ(head_of(over_tcp(
                post("/v1/status", "{}", host + "Authorization: Bearer " + token_ + "\r\n"))),
            "HTTP/1.1 200 OK");
  EXPECT_EQ(caller_.door, "http");
}

TEST_F(Doors, BrowsersOfOtherPagesStayOut) {
  open_tcp();
  const std::string token = "Authorization: Bearer " + token_ + "\r\n";
  EXPECT_EQ(head_of(over_tcp(post("/v1/status", "{}", "Host: evil.example\r\n" + token))),
            "HTTP/1.1 403 Forbidden");
  EXPECT_EQ(head_of(over_tcp(
                post("/v1/status", "{}",
                     "Host: " + own_host() + "\r\nOrigin: http://evil.example\r\n" + token))),
            "HTTP/1.1 403 Forbidden");
  EXPECT_EQ(head_of(over_socket(post("/v1/status", "{}", "Host: x\r\nOrigin: null\r\n"))),
            "HTTP/1.1 403 Forbidden");
  EXPECT_EQ(asked_, 0);
  EXPECT_EQ(head_of(over_tcp(
                post("/v1/status", "{}",
                     "Host: " + own_host() + "\r\nOrigin: http://" + own_host() + "\r\n" + token))),
            "HTTP/1.1 200 OK");
}

TEST_F(Doors, TcpListensOnLoopbackOnly) {
  options_.tcp = TcpDoor{{"0.0.0.0", 0}, net::Exposure::loopback_only, token_};
  auto server = Server::open(loop_, options_, {});
  ASSERT_FALSE(server);
  EXPECT_EQ(server.error().code, ErrorCode::refused);
}

TEST_F(Doors, NobodyWaitsForEver) {
  options_.limits.answer_time = Millis{50};
  open();
  const std::string late = over_socket(post("/v1/why", R"({"job":"later"})"));
  EXPECT_EQ(head_of(late), "HTTP/1.1 504 Gateway Timeout");
  EXPECT_EQ(gone_, 1);
  held_.front()(Value::map());  // too late, and harmless
  held_.clear();
  options_.limits.answer_time = minutes(1);
  const std::string dropped = over_socket(post("/v1/why", R"({"job":"dropped"})"));
  EXPECT_EQ(head_of(dropped), "HTTP/1.1 500 Internal Server Error");
}

TEST_F(Doors, HearsThatTheClientLeft) {
  open();
  auto hand = knock(post("/v1/why", R"({"job":"later"})"));
  EXPECT_TRUE(until([&] { return held_.size() == 1; }));
  EXPECT_EQ(gone_, 0);
  hand.reset();
  EXPECT_TRUE(until([&] { return gone_ == 1; }));
  held_.front()(Value::map());
  EXPECT_TRUE(until([&] { return server_->connections() == 0; }));
}

TEST_F(Doors, ARepliedRequestIsNotGone) {
  open();
  auto hand = knock(post("/v1/why", R"({"job":"later"})"));
  EXPECT_TRUE(until([&] { return held_.size() == 1; }));
  held_.front()(Value::map());
  held_.front()(fail(ErrorCode::io, "twice"));
  EXPECT_EQ(head_of(answer_to(*hand)), "HTTP/1.1 200 OK");
  hand.reset();
  EXPECT_TRUE(until([&] { return server_->connections() == 0; }));
  EXPECT_EQ(gone_, 0);
}

TEST_F(Doors, ServerMayGoWhileRequestsWait) {
  open();
  auto hand = knock(post("/v1/why", R"({"job":"later"})"));
  auto follower = knock(get("/v1/events"));
  EXPECT_TRUE(until([&] { return held_.size() == 1 && ends(*follower); }));
  server_.reset();
  EXPECT_TRUE(until([&] { return hand->closed && follower->closed; }));
  held_.front()(Value::map());
}

TEST_F(Doors, FollowersGetBacklogThenNews) {
  open();
  backlog_ = 5;
  auto old = knock(get("/v1/events?after=3"));
  auto fresh = knock(get("/v1/events"));
  EXPECT_TRUE(until([&] { return old->got.find("event 5") != std::string::npos && ends(*fresh); }));
  server_->publish(event(5));  // in the backlog already: once is enough
  server_->publish(event(6));
  EXPECT_TRUE(until([&] {
    return old->got.find("event 6") != std::string::npos &&
           fresh->got.find("event 6") != std::string::npos;
  }));
  EXPECT_EQ(old->got.find("event 3"), std::string::npos);
  EXPECT_NE(old->got.find("id: 4\nevent: fleet\ndata: {\"number\":4,"), std::string::npos);
  EXPECT_EQ(old->got.find("event 5"), old->got.rfind("event 5"));
}

TEST_F(Doors, ASlowFollowerIsDroppedWithANote) {
  options_.limits.follower_queue = kibibytes(16);
  open();
  auto slow = knock(get("/v1/events"));
  auto quick = knock(get("/v1/events"));
  EXPECT_TRUE(until([&] { return ends(*slow) && ends(*quick); }));
  slow->connection.pause();
  // Bounded: the kernel's buffers and the queue together hold far less than this.
  for (std::uint64_t number = 1; number <= 20'000; ++number) {
    server_->publish(event(number));
    if (number % 50 != 0) continue;
    const std::string wanted = "event " + std::to_string(number) + "\"";
    ASSERT_TRUE(until([&] { return quick->got.find(wanted) != std::string::npos; }));
    quick->got.clear();
  }
  slow->connection.resume();
  EXPECT_TRUE(until([&] { return slow->closed; }));
  EXPECT_NE(slow->got.find("event: dropped"), std::string::npos);
  EXPECT_FALSE(quick->closed);
}

TEST_F(Doors, QuietStreamsSayThatTheyLive) {
  options_.limits.comment_every = Millis{20};
  open();
  auto hand = knock(get("/v1/events"));
  EXPECT_TRUE(until([&] { return hand->got.find(":\n\n:\n\n") != std::string::npos; }));
}

TEST_F(Doors, FollowersAreCounted) {
  options_.limits.followers = 1;
  open();
  auto first = knock(get("/v1/events"));
  EXPECT_TRUE(until([&] { return ends(*first); }));
  EXPECT_EQ(head_of(over_socket(get("/v1/events"))), "HTTP/1.1 503 Service Unavailable");
  first.reset();
  EXPECT_TRUE(until([&] { return server_->connections() == 0; }));
  EXPECT_EQ(head_of(over_socket(get("/v1/events"))), "HTTP/1.1 200 OK");
}

TEST_F(Doors, WaitsForABodyThatIsAnnounced) {
  open();
  auto hand = knock("POST /v1/status HTTP/1.1\r\nHost: zed\r\nExpect: 100-continue\r\n"
                    "Content-Length: 2\r\n\r\n");
  EXPECT_TRUE(until([&] { return hand->got == "HTTP/1.1 100 Continue\r\n\r\n"; }));
  ASSERT_TRUE(hand->connection.send("{}"));
  EXPECT_TRUE(until([&] { return hand->got.find("HTTP/1.1 200 OK") != std::string::npos; }));
}

TEST(Token, IsMadeOnceAndKeptPrivate) {
  std::string pattern = (fs::temp_directory_path() / "zed-token-XXXXXX").string();
  const fs::path folder = ::mkdtemp(pattern.data());
  const std::string path = (folder / "token").string();
  auto made = load_or_make_token(path);
  ASSERT_TRUE(made) << made.error().describe();
  EXPECT_EQ(made->size(), 64U);
  EXPECT_EQ(load_or_make_token(path).value_or(""), *made);
  ::chmod(path.c_str(), 0640);
  auto readable = load_or_make_token(path);
  ASSERT_FALSE(readable);
  EXPECT_EQ(readable.error().code, ErrorCode::refused);
  ::chmod(path.c_str(), 0600);
  std::ofstream(path) << "short\n";
  auto weak = load_or_make_token(path);
  ASSERT_FALSE(weak);
  EXPECT_EQ(weak.error().code, ErrorCode::invalid);
  fs::remove_all(folder);
}

TEST(Token, ComparesWhole) {
  EXPECT_TRUE(equal_in_constant_time("abc", "abc"));
  EXPECT_FALSE(equal_in_constant_time("abc", "abd"));
  EXPECT_FALSE(equal_in_constant_time("abc", "ab"));
  // Nothing presented never equals nothing configured.
  EXPECT_FALSE(equal_in_constant_time("", ""));
}

}  // namespace
}  // namespace zed::http
