#pragma once
// A manifest: what a tree of files contains, independent of where it lies. Two trees with equal
// manifests are the same snapshot, on every node and in every store; so are the bytes of a stream
// between two manifests (files/wire.hpp), which is why any replica can go on with another's send.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "store/files/bytes.hpp"
#include "store/files/sha256.hpp"

namespace zed::store {

enum class EntryKind : std::uint8_t { file = 1, folder = 2, symlink = 3 };

/// One name in a tree. Owners, extended attributes and folders' times do not travel: another node
/// has other users.
struct Entry {
  std::string path;  ///< relative, '/'-separated, legal by check_path
  EntryKind kind = EntryKind::file;
  std::uint32_t mode = 0;     ///< permission bits, 0 to 0777 (no set-id bits); 0 for symlinks
  std::int64_t mtime_ns = 0;  ///< since 1970; files only
  std::uint64_t size = 0;     ///< files only
  Digest digest{};            ///< SHA-256 of the content; files only
  std::string target;         ///< symlinks only; never followed, so any text up to 4095 bytes

  friend bool operator==(const Entry&, const Entry&) = default;
};

inline constexpr std::size_t longest_path = 4095;
inline constexpr std::size_t longest_component = 255;
inline constexpr std::size_t most_entries = 4'000'000;
inline constexpr std::uint64_t largest_file = std::uint64_t{1} << 50;

/// Refuses what could climb out of a folder or cannot be a name: an absolute path, an empty
/// component, `.`, `..`, NUL, over-long ones. Errors: `corrupt`.
Status check_path(std::string_view path);

/// Entries in ascending byte order of their paths, so a folder comes before what is in it.
class Manifest {
public:
  Manifest() = default;
  /// Sorts and checks: legal and unique paths, each parent a folder of this manifest, legal modes
  /// and sizes. Errors: `corrupt`, naming the path.
  static Result<Manifest> of(std::vector<Entry> entries);

  const std::vector<Entry>& entries() const { return entries_; }
  const Entry* find(std::string_view path) const;
  /// SHA-256 of all entries' encodings.
  Digest digest() const;
  /// Sum of the files' sizes.
  std::uint64_t bytes() const;
  friend bool operator==(const Manifest&, const Manifest&) = default;

private:
  std::vector<Entry> entries_;
};

/// How one manifest becomes another: both lists in ascending order.
struct Delta {
  std::vector<std::string> removed;
  std::vector<Entry> put;  ///< new, or different in any field

  friend bool operator==(const Delta&, const Delta&) = default;
};

Delta difference(const Manifest& base, const Manifest& target);
/// Errors: `corrupt` if the delta removes what is not there or the result is no legal manifest.
Result<Manifest> apply(const Manifest& base, const Delta& delta);

/// The entries of delta.put (by index, ascending) whose content must travel: files of a digest that
/// is neither in the base nor in an earlier entry.
std::vector<std::size_t> needing_content(const Manifest& base, const Delta& delta);

void encode(const Entry& entry, ByteWriter& out);
Result<Entry> decode_entry(ByteReader& in);
ByteVector encode(const Delta& delta);
/// Errors: `corrupt`: bad kinds, illegal paths, wrong order, trailing bytes.
Result<Delta> decode_delta(std::span<const std::byte> bytes);

}  // namespace zed::store
