#pragma once
// A token bucket: how long to wait before so many bytes may go.

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/units.hpp"

namespace zed::stream {

class Throttle {
public:
  /// No rate: never waits. The bucket holds a tenth of a second, so that the rate is kept smoothly.
  explicit Throttle(std::optional<Bytes> rate_per_second, Instant now)
      : rate_(rate_per_second), last_(now) {}

  /// Takes `bytes` out of the bucket (below zero if need be); returns how long to wait until it is
  /// not below zero again.
  Millis take(Bytes bytes, Instant now) {
    if (!rate_ || rate_->value <= 0) return {0};
    std::int64_t refill = rate_->value * (now - last_).value / 1000;
    last_ = now;
    tokens_ = std::min(tokens_ + refill, rate_->value / 10) - bytes.value;
    if (tokens_ >= 0) return {0};
    return {-tokens_ * 1000 / rate_->value};
  }

private:
  std::optional<Bytes> rate_;
  Instant last_;
  std::int64_t tokens_ = 0;
};

}  // namespace zed::stream
