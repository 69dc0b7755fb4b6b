#pragma once
// The relay point of a chain, inside one agent: what one transfer's receiving half gets is handed,
// while it arrives, to the next transfer's sending half. Bounded, and the receive always goes on: a
// next hop that does not come, breaks or falls behind is spliced out.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "core/dataset.hpp"
#include "core/identity.hpp"
#include "stream/pipeline.hpp"

namespace zed::stream {

/// What a sender announces before the bytes.
struct StreamHeader {
  CheckpointId snapshot;
  std::string name;
  Properties properties;
  Bytes total;
  Bytes resumed_at;
  std::int64_t hop = 0;  ///< nodes that have passed it on
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("snapshot", self.snapshot);
    visit("name", self.name);
    visit("properties", self.properties);
    visit("total", self.total);
    visit("resumed_at", self.resumed_at);
    visit("hop", self.hop);
  }
};

struct PassingLimits {
  /// How long a receive that has its header waits for the next hop, and a next hop that is ready
  /// for the order of its receive.
  Millis joining = seconds(8);
  /// How far the next hop may hold a receive up. A node nearer to the source is more patient, by
  /// half of this a hop: else the one before the culprit would be spliced out with it.
  Millis lag = seconds(4);
  /// The longest wait of a next hop for the first bytes: as long as a transfer may take to begin.
  Millis begin = seconds(120);
};

/// Thread-safe: the receiving half's methods from one thread at a time, the sending half's from
/// another; fail() and leave() from any.
class Passing {
public:
  explicit Passing(PassingLimits limits) : limits_(limits) {}

  // ---- the receiving half ----
  /// Its order is here; bytes will come, or a failure will be said.
  void expect();
  /// Until the next hop is ready: true. False: it has left, or did not come in time, and is told so
  /// when it does; nothing more is taken from now on.
  bool wait_for_taker();
  /// The receive goes on alone; the next hop is told why, now or when it comes.
  void decline(const Error& why);
  void announce(const StreamHeader& header);
  /// Waits for room, so far as the limits go; beyond them the next hop is spliced out.
  void put(std::span<const std::byte> bytes);
  /// All bytes are put.
  void end();
  /// The receive is over without all bytes; what was put is still passed on. After end(): nothing.
  void fail(const Error& why);

  // ---- the sending half ----
  /// Its receiver is there and begins at the start: waits for what is announced. `cut` ends the
  /// connection if this hop is spliced out; it is not called any more once leave() has returned.
  Result<StreamHeader> join(std::function<void()> cut);
  /// The next block, whose bytes are valid until the next call; empty at the end.
  Result<std::span<const std::byte>> next();
  /// Gives up, or is done.
  void leave();
  /// Why this hop was spliced out, if it was.
  std::optional<Error> spliced() const;

private:
  enum class Feeder { unknown, expected, flowing, over };
  enum class Taker { absent, ready, gone };

  Millis patience() const;
  bool is_too_slow(Millis waited_now, Instant now);
  void splice();
  Error why_none() const;

  const PassingLimits limits_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Feeder feeder_ = Feeder::unknown;
  Taker taker_ = Taker::absent;
  std::optional<StreamHeader> header_;
  std::optional<Error> failed_;   ///< of the receive
  std::optional<Error> spliced_;  ///< of this hop alone
  std::function<void()> cut_;
  BlockPipe pipe_;
  Block block_;  ///< the sending half's

  // Of the receiving half's thread alone.
  bool feeding_ = false;
  std::int64_t hop_ = 0;
  Millis waited_;
  Instant began_;
};

}  // namespace zed::stream
