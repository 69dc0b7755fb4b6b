// What is ours of HTTP: the client's readers of a server that may say anything, cut anywhere, and
// the server's reading of a request line and of who asks. The first byte chooses; the second how
// bytes are cut.
#include <algorithm>
#include <cstdlib>

#include "http/admit.hpp"
#include "http/response_reader.hpp"
#include "http/status.hpp"
#include "http/target.hpp"

namespace {

using namespace zed;
using namespace zed::http;

void require(bool condition) {
  if (!condition) std::abort();
}

/// All events, or nothing if the stream is refused.
std::optional<std::vector<StreamEvent>> events_of(std::string_view text, std::size_t step) {
  EventStreamReader reader(256);
  std::vector<StreamEvent> all;
  while (!text.empty()) {
    auto events = reader.feed(text.substr(0, step));
    if (!events) return std::nullopt;
    all.insert(all.end(), events->begin(), events->end());
    text.remove_prefix(std::min(step, text.size()));
  }
  return all;
}

struct ReadResponse {
  bool good = false;
  unsigned status = 0;
  std::string body;
  std::size_t rest = 0;
  bool operator==(const ReadResponse&) const = default;
};

ReadResponse response_of(std::string_view text, std::size_t step) {
  ResponseReader reader({1024, 512});
  while (!text.empty() && !reader.is_complete()) {
    std::string_view piece = text.substr(0, step);
    const std::size_t before = piece.size();
    if (!reader.feed(piece)) return {};
    text.remove_prefix(before - piece.size());
    require(before != piece.size() || reader.is_complete());
  }
  const bool ended = reader.is_complete() || reader.feed_end();
  ReadResponse read{ended, reader.status(), reader.take_body(), text.size()};
  require(read.body.size() <= 512);
  return ended ? read : ReadResponse{};
}

void check_route(std::string_view text) {
  const std::size_t space = std::min(text.find(' '), text.size());
  const auto route = route_of(text.substr(0, space), text.substr(std::min(space + 1, text.size())));
  if (const auto* none = std::get_if<NoRoute>(&route)) require(none->status >= 400);
}

void check_admission(std::string_view text) {
  const std::size_t third = text.size() / 3;
  const Presented presented{text.substr(0, third), text.substr(third, third),
                            text.substr(2 * third)};
  const Admission admission{Door::tcp, std::string(40, 't'), own_hosts("127.0.0.1", 4372)};
  const auto refused = refusal_of(presented, admission, true);
  // Nobody comes in who does not know the token.
  if (!refused) require(text.find(admission.token) != std::string_view::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::size_t step = data[1] == 0 ? 1 : data[1];
  switch (data[0] % 5) {
  case 0: require(response_of(text, step) == response_of(text, text.size() + 1)); break;
  case 1: require(events_of(text, step) == events_of(text, text.size() + 1)); break;
  case 2: check_route(text); break;
  case 3: check_admission(text); break;
  default: require(!error_of(500, text).message.empty()); break;
  }
  return 0;
}
