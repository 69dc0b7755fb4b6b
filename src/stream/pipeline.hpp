#pragma once
// Blocks of bytes handed from one thread to another, so that a disk and a socket work at once
// instead of in turns. Bounded: whoever is ahead waits. Emptied blocks go back to be filled again.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"

namespace zed::stream {

using Block = std::vector<std::byte>;

/// One thread puts, one takes.
class BlockPipe {
public:
  /// Blocks under way at most: enough that a short pause of either side stops nobody.
  static constexpr std::size_t most_blocks = 8;

  /// A block to fill: of an earlier one's capacity, where there is one.
  Block spare() {
    std::lock_guard lock(mutex_);
    if (spares_.empty()) return {};
    Block block = std::move(spares_.back());
    spares_.pop_back();
    return block;
  }
  /// Waits for room. False: the taker has given up, nothing more is wanted.
  bool put(Block block) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return closed_ || blocks_.size() < most_blocks; });
    if (closed_) return false;
    blocks_.push_back(std::move(block));
    changed_.notify_all();
    return true;
  }
  enum class Put {
    taken,
    full,     ///< there was no room in time; the block is dropped
    refused,  ///< the taker has given up, or the pipe has ended
  };
  /// The same, but for no longer than `limit`.
  Put put_within(Block block, Millis limit) {
    std::unique_lock lock(mutex_);
    const bool done = changed_.wait_for(lock, std::chrono::milliseconds(limit.value), [this] {
      return closed_ || ended_ || blocks_.size() < most_blocks;
    });
    if (!done) return Put::full;
    if (closed_ || ended_) return Put::refused;
    blocks_.push_back(std::move(block));
    changed_.notify_all();
    return Put::taken;
  }
  /// Nothing more comes; what was put is still taken.
  void end() {
    std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  /// Waits for a block. None: there are no more.
  std::optional<Block> take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return closed_ || ended_ || !blocks_.empty(); });
    if (closed_ || blocks_.empty()) return std::nullopt;
    Block block = std::move(blocks_.front());
    blocks_.pop_front();
    changed_.notify_all();
    return block;
  }
  void give_back(Block block) {
    std::lock_guard lock(mutex_);
    if (spares_.size() < most_blocks) spares_.push_back(std::move(block));
  }
  /// Either side gives up: both are told at once, and what is under way is dropped.
  void close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Block> blocks_;
  std::vector<Block> spares_;
  bool ended_ = false;
  bool closed_ = false;
};

}  // namespace zed::stream
