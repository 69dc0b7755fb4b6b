#include "net/refusal_log.hpp"

#include <utility>

#include "base/log.hpp"

namespace zed::net {

void RefusalLog::add(const std::string& line) {
  const Instant now = loop_.now();
  if (now >= since_ + minutes(1)) {
    since_ = now;
    logged_ = 0;
    if (const auto count = std::exchange(left_out_, 0); count > 0)
      log_warning(std::to_string(count) + " more connections were refused");
  }
  if (logged_ == most_a_minute) {
    ++left_out_;
    return;
  }
  ++logged_;
  log_warning(line);
}

}  // namespace zed::net
