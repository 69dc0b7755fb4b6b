#pragma once
// Units that cannot be mixed up: sizes in bytes, durations in milliseconds, and two kinds of time.

#include <compare>
#include <cstdint>

namespace zed {

/// A quantity with a unit: adds and subtracts with its own kind only.
template <class Tag> struct Quantity {
  std::int64_t value = 0;

  friend auto operator<=>(const Quantity&, const Quantity&) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return {a.value + b.value}; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return {a.value - b.value}; }
  friend constexpr Quantity operator*(Quantity a, std::int64_t n) { return {a.value * n}; }
  constexpr Quantity& operator+=(Quantity other) {
    value += other.value;
    return *this;
  }
};

using Bytes = Quantity<struct BytesTag>;
using Millis = Quantity<struct MillisTag>;  ///< a duration

/// A point on the monotonic clock of one machine, in milliseconds since an arbitrary origin.
/// Never compared between machines, never stored.
struct Instant {
  std::int64_t ms = 0;
  friend auto operator<=>(const Instant&, const Instant&) = default;
  friend constexpr Instant operator+(Instant t, Millis d) { return {t.ms + d.value}; }
  friend constexpr Instant operator-(Instant t, Millis d) { return {t.ms - d.value}; }
  friend constexpr Millis operator-(Instant a, Instant b) { return {a.ms - b.ms}; }
};

/// Milliseconds since 1970-01-01T00:00:00Z. For people; nothing is ordered or decided by it.
struct WallTime {
  std::int64_t ms = 0;
  friend auto operator<=>(const WallTime&, const WallTime&) = default;
};

/// Both clocks, read together.
struct Now {
  Instant monotonic;
  WallTime wall;
  friend bool operator==(const Now&, const Now&) = default;
};

constexpr Millis seconds(std::int64_t n) {
  return {n * 1000};
}
constexpr Millis minutes(std::int64_t n) {
  return seconds(n * 60);
}
constexpr Bytes kibibytes(std::int64_t n) {
  return {n * 1024};
}
constexpr Bytes mebibytes(std::int64_t n) {
  return kibibytes(n * 1024);
}
constexpr Bytes gibibytes(std::int64_t n) {
  return mebibytes(n * 1024);
}

}  // namespace zed
