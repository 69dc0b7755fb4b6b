#pragma once
// The index of a tree: its entries, whose hashes may not be known yet, and the stamps that the
// files had in the live folder when the two were equal. A live file that still has its stamp has
// not changed since. Stored as bytes that end with their own SHA-256.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/files/manifest.hpp"

namespace zed::store {

/// Of a live file, when it was seen to equal the snapshot's.
struct Stamp {
  std::uint64_t inode = 0;  ///< 0: no stamp
  std::int64_t mtime_ns = 0;
  std::int64_t ctime_ns = 0;
  std::int64_t seen_ns = 0;  ///< wall clock just before its content was read

  /// Whether the same stamp later proves that nothing changed: a change in the same tick of the
  /// clock as this one would have left no trace.
  bool is_proof(std::int64_t tick_ns) const { return inode != 0 && ctime_ns + tick_ns < seen_ns; }
  friend bool operator==(const Stamp&, const Stamp&) = default;
};

struct IndexEntry {
  Entry entry;
  bool hashed = false;  ///< entry.digest is known (files only)
  Stamp stamp;          ///< files only
};

struct Index {
  /// The place whose files the stamps are of: of a snapshot's index the live folder that it was
  /// taken from, of a live folder's index the snapshot that it was made from (the stamps are the
  /// live files' in both). Empty: no stamps.
  std::string counterpart;
  std::vector<IndexEntry> entries;  ///< ascending by path

  const IndexEntry* find(std::string_view path) const;
  std::uint64_t bytes() const;
};

ByteVector encode(const Index& index);
/// A cheap look: whether a file of `size` bytes that begins with `head` (index_head_size of them)
/// may hold an index. Only decoding tells for sure.
inline constexpr std::size_t index_head_size = 8;
bool may_be_index(std::string_view head, std::uint64_t size);
/// Errors: `corrupt`.
Result<Index> decode_index(std::string_view bytes);

}  // namespace zed::store
