#pragma once
// Refused connections in the log, so many a minute: a flood of them must not fill a disk.

#include <cstdint>
#include <string>

#include "net/loop.hpp"

namespace zed::net {

/// Loop's thread only.
class RefusalLog {
public:
  static constexpr int most_a_minute = 20;
  explicit RefusalLog(const Loop& loop) : loop_(loop), since_(loop.now()) {}

  /// Logs the line as a warning, or counts it; the count is told with the first line of a later
  /// minute.
  void add(const std::string& line);

private:
  const Loop& loop_;
  Instant since_;
  int logged_ = 0;
  std::int64_t left_out_ = 0;
};

}  // namespace zed::net
