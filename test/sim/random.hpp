#pragma once
// Everything that is left to chance in a simulated fleet, drawn from one seed. Each purpose has a
// stream of its own, so that one more draw in one place does not change what happens elsewhere.

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/id.hpp"
#include "base/units.hpp"

namespace zed::sim {

/// SplitMix64 (Steele, Lea, Flood 2014): small, and equal on every platform, unlike the
/// distributions of <random>.
class Random {
public:
  Random(std::uint64_t seed, std::string_view purpose) : state_(seed * 0x9e3779b97f4a7c15ULL) {
    for (char c : purpose)
      state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    next();
  }

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  /// From `low` to `high`, both included.
  std::int64_t between(std::int64_t low, std::int64_t high) {
    const auto width = static_cast<std::uint64_t>(high - low) + 1;
    return low + static_cast<std::int64_t>(next() % width);
  }
  Millis millis(std::int64_t low, std::int64_t high) { return Millis{between(low, high)}; }
  bool chance(std::int64_t in_thousand) { return between(0, 999) < in_thousand; }
  std::size_t index(std::size_t size) { return static_cast<std::size_t>(next() % size); }

private:
  std::uint64_t state_;
};

/// Identities of one program of the fleet.
class SeededIds final : public IdSource {
public:
  SeededIds(std::uint64_t seed, std::string_view purpose) : random_(seed, purpose) {}
  std::array<std::uint8_t, 16> next() override {
    std::array<std::uint8_t, 16> bytes{};
    for (std::size_t i = 0; i < bytes.size(); i += 8) {
      std::uint64_t word = random_.next();
      for (std::size_t j = 0; j < 8; ++j, word >>= 8)
        bytes[i + j] = static_cast<std::uint8_t>(word);
    }
    return bytes;
  }

private:
  Random random_;
};

}  // namespace zed::sim
