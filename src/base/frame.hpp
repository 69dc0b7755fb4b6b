#pragma once
// Records in files that are only appended to, a line each, so that a person can read them:
//
//   <length, 8 hex digits> <CRC-32C of the record, 8 hex digits> <record>\n
//
// A checksum finds what a crash tore, not what an enemy wrote.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace zed {

/// CRC-32C (Castagnoli), as in iSCSI (RFC 3720, appendix B.4).
std::uint32_t crc32c(std::string_view bytes);

/// What a frame adds to a record: "<length> <crc> " before it and a newline after it.
inline constexpr std::size_t frame_size = 8 + 1 + 8 + 1 + 1;

/// A record of less than 4 GiB in its frame.
std::string framed(std::string_view record);

/// The record at the start of `text`, if a whole one of at most `longest` bytes is there.
std::optional<std::string_view> record_at(std::string_view text, std::size_t longest);

/// Whether a whole record begins anywhere later in `text`: then what it begins with was damaged,
/// not torn by the last write.
bool holds_a_record_after(std::string_view text, std::size_t longest);

}  // namespace zed
