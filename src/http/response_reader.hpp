#pragma once
// Reading what a server sends: an HTTP/1.1 response, and the events in its body. Pure; ours because
// a command line that must answer in 50 ms links no HTTP library for it.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace zed::http {

struct ResponseLimits {
  std::size_t head = std::size_t{16} << 10;
  std::size_t body = std::size_t{64} << 20;
};

/// One response. Knows Content-Length and bodies that end with the connection; a chunked body is
/// refused, our server never sends one.
class ResponseReader {
public:
  explicit ResponseReader(ResponseLimits limits = {}) : limits_(limits) {}

  /// Takes bytes as they come; what is beyond this response stays in `bytes`. Errors: `corrupt`,
  /// `unsupported`; the reader is of no more use then.
  Status feed(std::string_view& bytes);
  /// The connection ended. Error: `unavailable` if that cut the response short.
  Status feed_end();

  bool has_head() const { return stage_ != Stage::head; }
  bool is_complete() const { return stage_ == Stage::complete; }
  unsigned status() const { return status_; }
  /// Whether another request may follow on this connection.
  bool stays_open() const { return stays_open_; }
  /// What came of the body so far and was not taken yet.
  std::string take_body();
  /// Lower-case names.
  std::string_view header(std::string_view name) const;

private:
  enum class Stage { head, body, complete };
  Status read_head();
  Status read_status_line(std::string_view line);
  Status read_header(std::string_view line);
  Status begin_body();

  ResponseLimits limits_;
  Stage stage_ = Stage::head;
  std::string head_;
  std::string body_;
  std::vector<std::pair<std::string, std::string>> headers_;
  unsigned status_ = 0;
  std::optional<std::size_t> left_;  ///< of the body; none: until the end of the connection
  bool stays_open_ = true;
};

struct StreamEvent {
  std::string id;
  std::string kind;  ///< "message" if the stream does not say
  std::string data;
  friend bool operator==(const StreamEvent&, const StreamEvent&) = default;
};

/// Server-sent events (WHATWG HTML, 9.2.6), as they come. Comments and unknown fields are skipped.
class EventStreamReader {
public:
  explicit EventStreamReader(std::size_t longest_event = std::size_t{1} << 20)
      : longest_(longest_event) {}
  /// Events that these bytes complete. Error: `corrupt` for an event beyond the limit.
  Result<std::vector<StreamEvent>> feed(std::string_view bytes);

private:
  void end_of_line(std::vector<StreamEvent>& events);
  void take_field(std::string_view name, std::string_view value);

  std::size_t longest_;
  std::string line_;
  StreamEvent event_;
  bool has_data_ = false;
  bool after_return_ = false;  ///< a '\n' now belongs to the '\r' before
};

}  // namespace zed::http
