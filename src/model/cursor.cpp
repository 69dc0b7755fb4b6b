#include "model/cursor.hpp"

#include <algorithm>

namespace zed::model {
namespace {

constexpr std::uint64_t buffer_size = 64 * 1024;

}  // namespace

/// Makes the byte at position_ the first of the buffer. There is one.
Status Cursor::refill() {
  const std::uint64_t count = std::min(buffer_size, left());
  if (count > budget_)
    return fail(ErrorCode::invalid, "the header is longer than any real model's",
                "this is no model file, or it was made to be slow to read");
  budget_ -= count;
  buffer_.resize(static_cast<std::size_t>(count));
  buffer_start_ = position_;
  return source_.read_at(position_, buffer_);
}

Status Cursor::read(std::span<std::byte> into) {
  if (into.size() > left())
    return fail(ErrorCode::corrupt,
                "the file ends at byte " + std::to_string(source_.size()) + ", inside its header",
                "it was cut off: fetch it again");
  while (!into.empty()) {
    const bool buffered = position_ >= buffer_start_ && position_ - buffer_start_ < buffer_.size();
    if (!buffered) ZED_CHECK(refill());
    const auto from = static_cast<std::size_t>(position_ - buffer_start_);
    const std::size_t count = std::min(into.size(), buffer_.size() - from);
    std::copy_n(buffer_.begin() + static_cast<std::ptrdiff_t>(from), count, into.begin());
    into = into.subspan(count);
    position_ += count;
  }
  return {};
}

Status Cursor::skip(std::uint64_t count) {
  if (count > left())
    return fail(ErrorCode::corrupt,
                "a length of " + std::to_string(count) + " bytes at byte " +
                    std::to_string(position_) + " goes beyond the end of the file",
                "it was cut off, or is no model file: fetch it again");
  position_ += count;
  return {};
}

Result<std::string> Cursor::text(std::uint64_t length, std::size_t most) {
  if (length > left()) ZED_CHECK(skip(length));
  const auto kept = static_cast<std::size_t>(std::min<std::uint64_t>(length, most));
  std::string text(kept, '\0');
  ZED_CHECK(read(std::as_writable_bytes(std::span(text))));
  ZED_CHECK(skip(length - kept));
  return text;
}

}  // namespace zed::model
