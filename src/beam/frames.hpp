#pragma once
// Frames of an established connection: lengths, ticks, fragments. Pure.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "beam/etf.hpp"

namespace zed::beam {

struct FrameLimits {
  /// Of one message, whole or put together. Bulk data has its own connections.
  std::size_t max_message = std::size_t{1} << 20;
  /// Of all messages that are still incomplete, together.
  std::size_t max_fragments = std::size_t{4} << 20;
  std::size_t max_fragmented_messages = 256;
};

/// A message: its control tuple and, for some, what it carries.
struct Packet {
  Term control;
  std::optional<Term> payload;
};

/// What one frame brought: nothing yet (a fragment), a tick, or a message.
struct Tick {};
struct Incomplete {};
using FrameEvent = std::variant<Incomplete, Tick, Packet>;

/// Cuts the byte stream into frames and puts fragments together. Memory follows the bytes that have
/// arrived, never the lengths that were announced.
class FrameReader {
public:
  explicit FrameReader(FrameLimits frames = {}, TermLimits terms = {});

  /// Takes at most one frame's bytes from the front of `bytes` and shortens it; nullopt when more
  /// are needed. Any error ends the connection: `corrupt`, or `invalid` naming the limit.
  Result<std::optional<FrameEvent>> receive(std::span<const std::uint8_t>& bytes);

private:
  struct Fragmented {
    std::uint64_t next = 0;  ///< fragments count down to 1
    std::string bytes;
  };
  Result<FrameEvent> on_frame(std::span<const std::uint8_t> frame);
  Result<FrameEvent> on_pass_through(std::span<const std::uint8_t> frame);
  Result<FrameEvent> on_first_fragment(std::span<const std::uint8_t> frame);
  Result<FrameEvent> on_next_fragment(std::span<const std::uint8_t> frame);
  Result<FrameEvent> on_terms(std::span<const std::uint8_t> terms);
  Status reserve_fragment(std::size_t so_far, std::size_t more);

  FrameLimits limits_;
  TermLimits term_limits_;
  std::string partial_;
  std::map<std::uint64_t, Fragmented> fragmented_;
  std::size_t fragment_bytes_ = 0;
};

/// Makes frames.
class FrameWriter {
public:
  /// `fragments`: whether both sides have flag::fragments; without it messages pass through whole,
  /// behind the old header.
  explicit FrameWriter(bool fragments) : fragments_(fragments) {}

  /// The frames of a message: one, or, beyond 64 KiB, fragments of that size. Between them may go
  /// frames of other messages, fragments too.
  std::vector<std::string> frames(const Term& control, const std::optional<Term>& payload);
  /// The same in one piece.
  void append(std::string& out, const Term& control, const std::optional<Term>& payload);
  static std::string tick() { return std::string(4, '\0'); }

private:
  std::vector<std::string> fragments(std::size_t control_size, const std::string& terms);

  bool fragments_;
  std::uint64_t sequence_ = 0;
};

}  // namespace zed::beam
