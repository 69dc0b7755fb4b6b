// The client's parsers, byte by byte: however a stream is cut, the same comes out.

#include <gtest/gtest.h>

#include "http/admit.hpp"
#include "http/response_reader.hpp"
#include "http/status.hpp"
#include "http/target.hpp"

namespace zed::http {
namespace {

Status feed_by(ResponseReader& reader, std::string_view text, std::size_t step) {
  while (!text.empty()) {
    std::string_view piece = text.substr(0, step);
    text.remove_prefix(piece.size());
    ZED_CHECK(reader.feed(piece));
  }
  return {};
}

TEST(ResponseReader, ReadsAnAnswerHoweverItIsCut) {
  const std::string text =
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-LENGTH: 5\r\n\r\n"
      "hello";
  for (std::size_t step = 1; step <= text.size(); ++step) {
    ResponseReader reader;
    ASSERT_TRUE(feed_by(reader, text, step));
    EXPECT_TRUE(reader.is_complete());
    EXPECT_EQ(reader.status(), 200U);
    EXPECT_TRUE(reader.stays_open());
    EXPECT_EQ(reader.take_body(), "hello");
  }
}

TEST(ResponseReader, LeavesWhatFollows) {
  ResponseReader reader;
  std::string_view text = "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nabHTTP/1.1";
  ASSERT_TRUE(reader.feed(text));
  EXPECT_TRUE(reader.is_complete());
  EXPECT_EQ(text, "HTTP/1.1");
}

TEST(ResponseReader, ABodyWithoutLengthEndsWithTheConnection) {
  ResponseReader reader;
  std::string_view text = "HTTP/1.1 200 OK\r\n\r\nab";
  ASSERT_TRUE(reader.feed(text));
  EXPECT_FALSE(reader.is_complete());
  EXPECT_FALSE(reader.stays_open());
  ASSERT_TRUE(reader.feed_end());
  EXPECT_TRUE(reader.is_complete());
}

TEST(ResponseReader, ACutAnswerIsNone) {
  ResponseReader reader;
  std::string_view text = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab";
  ASSERT_TRUE(reader.feed(text));
  EXPECT_EQ(reader.feed_end().error().code, ErrorCode::unavailable);
  EXPECT_EQ(ResponseReader().feed_end().error().code, ErrorCode::unavailable);
}

TEST(ResponseReader, RefusesWhatIsNoAnswer) {
  const std::string endless(20000, 'x');
  for (std::string_view text :
       {std::string_view("SSH-2.0-OpenSSH_9.2\r\n\r\n"),
        std::string_view("HTTP/1.1 2xx OK\r\n\r\n"),
        std::string_view("HTTP/1.1 200 OK\r\n: x\r\n\r\n"),
        std::string_view("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n"),
        std::string_view("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n"),
        std::string_view("HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n"),
        std::string_view("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
        std::string_view("\n\n"), std::string_view(endless)}) {
    ResponseReader reader;
    EXPECT_FALSE(reader.feed(text)) << text.substr(0, 60);
  }
}

TEST(ResponseReader, BoundsABodyWithoutLength) {
  ResponseReader reader({1024, 10});
  std::string_view text = "HTTP/1.1 200 OK\r\n\r\n0123456789";
  ASSERT_TRUE(reader.feed(text));
  std::string_view more = "x";
  EXPECT_FALSE(reader.feed(more));
}

TEST(EventStreamReader, ReadsEventsHoweverTheyAreCut) {
  const std::string text = ": hello\nretry: 2000\n\nid: 7\nevent: fleet\ndata: a\ndata:b\n\n"
                           "data\r\n\r\nid: 8\rdata: c\r\rdata: torn";
  const std::vector<StreamEvent> wanted{
      {"7", "fleet", "a\nb"}, {"7", "message", ""}, {"8", "message", "c"}};
  for (std::size_t step = 1; step <= text.size(); ++step) {
    EventStreamReader reader;
    std::vector<StreamEvent> got;
    for (std::size_t at = 0; at < text.size(); at += step) {
      auto events = reader.feed(std::string_view(text).substr(at, step));
      ASSERT_TRUE(events);
      got.insert(got.end(), events->begin(), events->end());
    }
    EXPECT_EQ(got, wanted) << "cut every " << step;
  }
}

TEST(EventStreamReader, IsBounded) {
  EventStreamReader reader(100);
  std::string text = "data: " + std::string(200, 'x');
  EXPECT_FALSE(reader.feed(text));
  EventStreamReader lines(100);
  std::string many;
  for (int i = 0; i < 30; ++i)
    many += "data: xxxxx\n";
  EXPECT_FALSE(lines.feed(many));
}

TEST(Route, KnowsItsPaths) {
  auto kind = [](std::string_view method, std::string_view target) {
    auto route = route_of(method, target);
    if (auto* none = std::get_if<NoRoute>(&route)) return std::to_string(none->status);
    const Route& found = std::get<Route>(route);
    if (auto* call = std::get_if<CallOperation>(&found)) return "call " + call->name;
    if (auto* follow = std::get_if<FollowEvents>(&found))
      return "follow " + (follow->after ? std::to_string(*follow->after) : "now");
    return std::string(std::holds_alternative<AskHealth>(found) ? "health" : "operations");
  };
  EXPECT_EQ(kind("POST", "/v1/status"), "call status");
  EXPECT_EQ(kind("POST", "/v1/model-add?x=1"), "call model-add");
  EXPECT_EQ(kind("POST", "/v1/events"), "call events");
  EXPECT_EQ(kind("GET", "/v1/events"), "follow now");
  EXPECT_EQ(kind("GET", "/v1/events?x&after=12"), "follow 12");
  EXPECT_EQ(kind("GET", "/v1/events?after=-1"), "400");
  EXPECT_EQ(kind("GET", "/v1/operations"), "operations");
  EXPECT_EQ(kind("GET", "/healthz"), "health");
  EXPECT_EQ(kind("GET", "/v1/status"), "405");
  EXPECT_EQ(kind("POST", "/v1/"), "404");
  EXPECT_EQ(kind("POST", "/v1/a/b"), "404");
  EXPECT_EQ(kind("POST", "/v1/" + std::string(41, 'a')), "404");
  EXPECT_EQ(kind("GET", ""), "404");
}

TEST(Errors, SurviveTheWire) {
  for (int code = 0; code <= static_cast<int>(ErrorCode::internal); ++code) {
    const Error error{static_cast<ErrorCode>(code), "what", {"inner", "outer"}, "do this"};
    EXPECT_EQ(error_of(status_of(error.code), error_body(error)), error);
    EXPECT_NE(reason_of(status_of(error.code)), "Error");
  }
  EXPECT_EQ(error_of(502, "<html>bad gateway</html>").code, ErrorCode::internal);
}

}  // namespace
}  // namespace zed::http
