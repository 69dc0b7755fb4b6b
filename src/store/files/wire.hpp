#pragma once
// The `files` stream, drawn once. All numbers little-endian.
//
//   preamble  "ZEDFILES" u8 version=1 | id[16] snapshot | id[16] base, zero for none
//             | sha256[32] manifest of the snapshot | u64 size of the delta | u64 body offset
//   body      frames, from `body offset` on:
//     frame   u8 kind | u32 size | bytes, at most 1 MiB
//     1 delta     the encoded Delta base -> snapshot, in frames of 1 MiB and a last shorter one
//     2 content   of each file that needs it, in the delta's order, each file in frames of 1 MiB
//                 and a last shorter one; an empty file has none
//     3 end       sha256[32], the manifest's again: a stream without it was cut
//
// The body is a function of the two manifests and the contents alone: every node that has the
// snapshot makes the same bytes. An interrupted stream goes on at any frame border beyond the
// delta, named by a token, from any such node.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/identity.hpp"
#include "store/files/manifest.hpp"

namespace zed::store {

inline constexpr std::size_t frame_limit = std::size_t{1} << 20;
inline constexpr std::size_t frame_header_size = 5;
inline constexpr std::size_t preamble_size = 8 + 1 + 16 + 16 + 32 + 8 + 8;
inline constexpr std::uint64_t delta_limit = std::uint64_t{1} << 30;

enum class FrameKind : std::uint8_t { delta = 1, content = 2, end = 3 };

struct Preamble {
  CheckpointId snapshot;
  std::optional<CheckpointId> base;
  Digest manifest{};
  std::uint64_t delta_size = 0;
  std::uint64_t offset = 0;  ///< of the body
};

ByteVector encode(const Preamble& preamble);
/// Exactly preamble_size bytes. Errors: `corrupt` (no such stream), `unsupported` (newer version).
Result<Preamble> decode_preamble(std::span<const std::byte> bytes);

/// The header of a frame.
std::array<std::byte, frame_header_size> frame_header(FrameKind kind, std::size_t size);
struct FrameHeader {
  FrameKind kind;
  std::size_t size;
};
/// Errors: `corrupt`: unknown kind, more than 1 MiB.
Result<FrameHeader> decode_frame_header(std::span<const std::byte> bytes);

/// Names the place from which an interrupted stream goes on: "files-1/<snapshot>/<base or
/// ->/<manifest>/<body offset>".
struct ResumeToken {
  CheckpointId snapshot;
  std::optional<CheckpointId> base;
  Digest manifest{};
  std::uint64_t offset = 0;

  std::string str() const;
  static Result<ResumeToken> parse(std::string_view text);
};

/// A frame border: `done` bytes of the content of file number `file` (in the order of travel) are
/// over. file == number of files: only the end frame is left.
struct Position {
  std::size_t file = 0;
  std::uint64_t done = 0;
  friend bool operator==(const Position&, const Position&) = default;
};

/// Where things lie in a body.
class BodyLayout {
public:
  BodyLayout(std::uint64_t delta_size, std::vector<std::uint64_t> file_sizes);

  std::uint64_t total() const { return total_; }
  std::uint64_t offset_of(const Position& position) const;
  /// The position at that body offset; none if it is no frame border beyond the delta.
  std::optional<Position> position_of(std::uint64_t offset) const;
  /// The first position at or after this one that is not the end of a file.
  Position normal(Position position) const;

private:
  std::vector<std::uint64_t> sizes_;
  std::vector<std::uint64_t> starts_;  ///< body offset of each file's first frame
  std::uint64_t total_ = 0;
};

}  // namespace zed::store
