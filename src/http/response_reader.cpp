#include "http/response_reader.hpp"

#include <algorithm>

#include "base/number.hpp"
#include "base/text.hpp"

namespace zed::http {
namespace {

tl::unexpected<Error> no_http(std::string what) {
  return fail(ErrorCode::corrupt, "the answer is no HTTP: " + std::move(what),
              "is it a Zed controller that listens there?");
}

}  // namespace

Status ResponseReader::feed(std::string_view& bytes) {
  while (stage_ == Stage::head && !bytes.empty()) {
    const std::size_t line_end = bytes.find('\n');
    const std::size_t taken = line_end == std::string_view::npos ? bytes.size() : line_end + 1;
    if (head_.size() + taken > limits_.head) return no_http("its head does not end");
    head_.append(bytes.substr(0, taken));
    bytes.remove_prefix(taken);
    const std::string_view head = head_;
    const bool ended =
        head.size() >= 2 && (head.substr(head.size() - 2) == "\n\n" ||
                             (head.size() >= 4 && head.substr(head.size() - 4) == "\r\n\r\n"));
    if (ended) ZED_CHECK(read_head());
  }
  if (stage_ != Stage::body || bytes.empty()) return {};
  const std::size_t wanted = std::min(bytes.size(), left_.value_or(bytes.size()));
  if (body_.size() + wanted > limits_.body) return no_http("its body is too large");
  body_.append(bytes.substr(0, wanted));
  bytes.remove_prefix(wanted);
  if (left_ && (*left_ -= wanted) == 0) stage_ = Stage::complete;
  return {};
}

Status ResponseReader::feed_end() {
  if (stage_ == Stage::body && !left_) stage_ = Stage::complete;
  if (stage_ == Stage::complete) return {};
  return fail(ErrorCode::unavailable, "the connection ended before the answer was whole",
              "the controller may have been stopped; try again");
}

std::string ResponseReader::take_body() {
  return std::exchange(body_, {});
}

std::string_view ResponseReader::header(std::string_view name) const {
  for (const auto& [key, value] : headers_)
    if (key == name) return value;
  return {};
}

Status ResponseReader::read_head() {
  std::vector<std::string> lines = split(head_, '\n');
  for (std::string& line : lines)
    if (!line.empty() && line.back() == '\r') line.pop_back();
  head_.clear();
  headers_.clear();
  ZED_CHECK(read_status_line(lines.front()));
  for (std::size_t i = 1; i < lines.size(); ++i)
    if (!lines[i].empty()) ZED_CHECK(read_header(lines[i]));
  if (status_ >= 200) return begin_body();
  // 100 Continue and its kin announce the real head.
  return {};
}

Status ResponseReader::read_status_line(std::string_view line) {
  if (line.substr(0, 7) != "HTTP/1." || line.size() < 12 || line[8] != ' ')
    return no_http("it begins with \"" + percent_encode(line.substr(0, 40)) + "\"");
  auto status = parse_number<unsigned>(line.substr(9, 3));
  if (!status || *status < 100) return no_http("its status is no number");
  status_ = *status;
  stays_open_ = line[7] == '1';
  return {};
}

Status ResponseReader::read_header(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || colon == 0) return no_http("a header has no name");
  headers_.emplace_back(lower(line.substr(0, colon)), std::string(trim(line.substr(colon + 1))));
  return {};
}

Status ResponseReader::begin_body() {
  if (!header("transfer-encoding").empty())
    return fail(ErrorCode::unsupported, "the answer's body is encoded, which ours never is",
                "is there a proxy between?");
  if (lower(header("connection")) == "close") stays_open_ = false;
  stage_ = Stage::body;
  if (status_ == 204 || status_ == 304) left_ = 0;
  const std::string_view length = header("content-length");
  if (!length.empty()) {
    left_ = parse_number<std::size_t>(length);
    if (!left_) return no_http("its length is no number");
    if (*left_ > limits_.body) return no_http("its body is too large");
  }
  if (!left_) stays_open_ = false;
  if (left_ == std::size_t{0}) stage_ = Stage::complete;
  return {};
}

Result<std::vector<StreamEvent>> EventStreamReader::feed(std::string_view bytes) {
  std::vector<StreamEvent> events;
  for (char c : bytes) {
    const bool second_half = after_return_ && c == '\n';
    after_return_ = c == '\r';
    if (second_half) continue;
    if (c == '\n' || c == '\r') {
      end_of_line(events);
      continue;
    }
    line_ += c;
    if (line_.size() + event_.data.size() > longest_)
      return fail(ErrorCode::corrupt,
                  "an event of the stream is longer than " + std::to_string(longest_) + " bytes");
  }
  return events;
}

void EventStreamReader::end_of_line(std::vector<StreamEvent>& events) {
  const std::string line = std::exchange(line_, {});
  if (line.empty()) {
    if (has_data_) {
      if (event_.kind.empty()) event_.kind = "message";
      events.push_back(event_);
    }
    // The id stays: it is the last one seen, also of events that do not repeat it.
    event_.kind.clear();
    event_.data.clear();
    has_data_ = false;
    return;
  }
  const std::size_t colon = line.find(':');
  if (colon == 0) return;
  const std::string_view text = line;
  std::string_view value = colon == std::string::npos ? std::string_view{} : text.substr(colon + 1);
  if (!value.empty() && value.front() == ' ') value.remove_prefix(1);
  take_field(text.substr(0, colon), value);
}

void EventStreamReader::take_field(std::string_view name, std::string_view value) {
  if (name == "id") event_.id = value;
  if (name == "event") event_.kind = value;
  if (name != "data") return;
  if (has_data_) event_.data += '\n';
  event_.data += value;
  has_data_ = true;
}

}  // namespace zed::http
