#pragma once
// The controller's append-only log on disk, and the copy of it on the second node.
//
//   zed-journal 1 <seq of the record before the first>\n
//   <length, 8 hex digits> <crc32c of the record, 8 hex digits> <record>\n
//   …
//
// A record is one line of JSON, so that a person can read the file. A record that is torn at the
// very end was never reported durable and is dropped; damage before a whole record is `corrupt`,
// never skipped.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "net/fd.hpp"

namespace zed::journal {

/// What a journal's text holds.
struct Contents {
  std::uint64_t last_seq = 0;
  std::vector<std::string> records;  ///< oldest first; the last one has last_seq
  std::size_t whole_bytes = 0;       ///< length without a torn tail
};

/// Longest record accepted.
inline constexpr std::size_t longest_record = std::size_t{8} << 20;

/// Reads a journal's text. Errors: `corrupt`, naming the byte.
Result<Contents> parse_journal(std::string_view text);
/// The text of a journal that holds these records; the last has `last_seq`.
std::string format_journal(std::uint64_t last_seq, const std::vector<std::string>& records);

/// Not thread-safe: one writer, from one worker at a time. All methods block until durable.
class Journal {
public:
  struct Opened;
  /// Opens or makes the journal at `path`; a torn tail is cut off. Takes a lock: `busy` if another
  /// process has it open. Errors: `corrupt`, `io`, `no_space`.
  static Result<Opened> open(std::filesystem::path path);

  /// Appends records with one write and one fsync; the first one's seq must be last_seq() + 1. On
  /// an error nothing counts: what was written is cut off again.
  Status append(std::uint64_t first_seq, std::span<const std::string> records);
  /// Replaces everything by these records, atomically; the last has `last_seq`.
  Status replace(std::uint64_t last_seq, const std::vector<std::string>& records);
  std::uint64_t last_seq() const { return last_seq_; }

private:
  std::filesystem::path path_;
  net::Fd file_;
  net::Fd lock_;
  std::uint64_t last_seq_ = 0;
  std::int64_t size_ = 0;
};

struct Journal::Opened {
  Journal journal;
  std::vector<std::string> records;
};

}  // namespace zed::journal
