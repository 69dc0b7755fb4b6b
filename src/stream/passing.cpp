#include "stream/passing.hpp"

#include <algorithm>
#include <chrono>

#include "base/clock.hpp"

namespace zed::stream {
namespace {

constexpr std::int64_t most_hops = 8;

std::chrono::milliseconds chrono_of(Millis wait) {
  return std::chrono::milliseconds(wait.value);
}

}  // namespace

void Passing::expect() {
  std::lock_guard lock(mutex_);
  if (feeder_ == Feeder::unknown) feeder_ = Feeder::expected;
  changed_.notify_all();
}

bool Passing::wait_for_taker() {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, chrono_of(limits_.joining),
                    [this] { return taker_ != Taker::absent || feeder_ == Feeder::over; });
  if (taker_ == Taker::ready && feeder_ != Feeder::over) return true;
  if (taker_ == Taker::absent)
    spliced_ = Error{ErrorCode::unavailable,
                     "the snapshot was not passed on: the next node came too late",
                     {},
                     {}};
  taker_ = Taker::gone;
  changed_.notify_all();
  return false;
}

void Passing::decline(const Error& why) {
  std::lock_guard lock(mutex_);
  if (taker_ != Taker::gone) spliced_ = why;
  taker_ = Taker::gone;
  changed_.notify_all();
}

void Passing::announce(const StreamHeader& header) {
  std::lock_guard lock(mutex_);
  if (feeder_ == Feeder::over) return;
  header_ = header;
  feeder_ = Feeder::flowing;
  feeding_ = true;
  hop_ = header.hop;
  began_ = monotonic_now();
  changed_.notify_all();
}

Millis Passing::patience() const {
  const std::int64_t behind = std::max<std::int64_t>(0, most_hops - hop_);
  return Millis{limits_.lag.value + limits_.lag.value / 2 * behind};
}

// A hop that keeps half the pace costs the others less than another transfer of their own would.
bool Passing::is_too_slow(Millis waited_now, Instant now) {
  waited_ = Millis{waited_.value + waited_now.value};
  return waited_ > patience() && waited_.value * 2 > (now - began_).value;
}

void Passing::put(std::span<const std::byte> bytes) {
  if (!feeding_) return;
  Block block = pipe_.spare();
  block.assign(bytes.begin(), bytes.end());
  const Instant before = monotonic_now();
  const BlockPipe::Put result = pipe_.put_within(std::move(block), patience());
  const Instant now = monotonic_now();
  if (result == BlockPipe::Put::refused)
    feeding_ = false;
  else if (result == BlockPipe::Put::full || is_too_slow(now - before, now))
    splice();
}

void Passing::splice() {
  feeding_ = false;
  pipe_.close();
  std::lock_guard lock(mutex_);
  if (taker_ == Taker::gone) return;
  taker_ = Taker::gone;
  spliced_ = Error{ErrorCode::timeout,
                   "the next node fell behind and was left out of the chain",
                   {},
                   "it goes on from what it has, by itself"};
  if (cut_) cut_();
}

void Passing::end() {
  feeding_ = false;
  {
    std::lock_guard lock(mutex_);
    feeder_ = Feeder::over;
  }
  pipe_.end();
  changed_.notify_all();
}

void Passing::fail(const Error& why) {
  {
    std::lock_guard lock(mutex_);
    if (feeder_ == Feeder::over) return;
    feeder_ = Feeder::over;
    // Whatever ended it there, here the same may be tried again.
    failed_ = Error{ErrorCode::unavailable,
                    "the snapshot stopped arriving at the node that passes it on: " + why.message,
                    {},
                    {}};
  }
  pipe_.end();
  changed_.notify_all();
}

Error Passing::why_none() const {
  if (spliced_) return *spliced_;
  if (failed_) return *failed_;
  if (taker_ == Taker::gone) return {ErrorCode::cancelled, "the transfer was cancelled", {}, {}};
  return {ErrorCode::unavailable, "the snapshot to pass on did not begin to arrive", {}, {}};
}

Result<StreamHeader> Passing::join(std::function<void()> cut) {
  std::unique_lock lock(mutex_);
  if (taker_ != Taker::absent) return zed::fail(why_none());
  taker_ = Taker::ready;
  cut_ = std::move(cut);
  changed_.notify_all();
  const auto over = [this] { return taker_ == Taker::gone || feeder_ == Feeder::over; };
  changed_.wait_for(lock, chrono_of(limits_.joining),
                    [&] { return over() || feeder_ != Feeder::unknown; });
  if (feeder_ != Feeder::unknown)
    changed_.wait_for(lock, chrono_of(limits_.begin), [&] { return over() || header_; });
  // A short snapshot may have ended by now; one that failed is not worth beginning.
  if (header_ && !spliced_ && !failed_ && taker_ == Taker::ready) return *header_;
  return zed::fail(why_none());
}

Result<std::span<const std::byte>> Passing::next() {
  pipe_.give_back(std::exchange(block_, {}));
  if (auto taken = pipe_.take()) {
    block_ = std::move(*taken);
    return std::span<const std::byte>(block_);
  }
  std::lock_guard lock(mutex_);
  if (spliced_) return zed::fail(*spliced_);
  if (failed_) return zed::fail(*failed_);
  if (taker_ == Taker::gone) return zed::fail(ErrorCode::cancelled, "the transfer was cancelled");
  return std::span<const std::byte>();
}

void Passing::leave() {
  {
    std::lock_guard lock(mutex_);
    taker_ = Taker::gone;
    cut_ = nullptr;
  }
  pipe_.close();
  changed_.notify_all();
}

std::optional<Error> Passing::spliced() const {
  std::lock_guard lock(mutex_);
  return spliced_;
}

}  // namespace zed::stream
