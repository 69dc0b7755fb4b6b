#include "store/files/wire.hpp"

#include <algorithm>

#include "base/number.hpp"
#include "base/text.hpp"

namespace zed::store {
namespace {

constexpr std::string_view magic = "ZEDFILES";
constexpr std::uint8_t version = 1;
constexpr std::string_view token_mark = "files-1";

/// Content and the headers of the frames that carry it.
std::uint64_t framed(std::uint64_t size) {
  return size + (size + frame_limit - 1) / frame_limit * frame_header_size;
}

tl::unexpected<Error> no_token() {
  return fail(ErrorCode::invalid, "this is no resume token of a files stream",
              "ask the receiver for a new one, or abort the receive and send from the start");
}

}  // namespace

ByteVector encode(const Preamble& preamble) {
  ByteVector bytes;
  bytes.reserve(preamble_size);
  ByteWriter out(bytes);
  out.raw(std::as_bytes(std::span(magic.data(), magic.size())));
  out.number(version);
  out.raw(preamble.snapshot.bytes);
  out.raw(preamble.base.value_or(CheckpointId{}).bytes);
  out.raw(preamble.manifest);
  out.number(preamble.delta_size);
  out.number(preamble.offset);
  return bytes;
}

Result<Preamble> decode_preamble(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  std::array<std::uint8_t, magic.size()> mark{};
  ZED_CHECK(in.raw(mark));
  if (!std::equal(mark.begin(), mark.end(), magic.begin()))
    return fail(ErrorCode::corrupt, "this is no files stream");
  std::uint8_t their_version = 0;
  ZED_CHECK(in.number(their_version));
  if (their_version != version)
    return fail(ErrorCode::unsupported,
                "a files stream of version " + std::to_string(their_version) + "; this is 1",
                "run the same version of Zed on both nodes");
  Preamble preamble;
  CheckpointId base;
  ZED_CHECK(in.raw(preamble.snapshot.bytes));
  ZED_CHECK(in.raw(base.bytes));
  if (!base.is_nil()) preamble.base = base;
  ZED_CHECK(in.raw(preamble.manifest));
  ZED_CHECK(in.number(preamble.delta_size));
  ZED_CHECK(in.number(preamble.offset));
  if (preamble.delta_size > delta_limit)
    return fail(ErrorCode::corrupt, "the stream announces a list of changes of more than 1 GiB");
  return preamble;
}

std::array<std::byte, frame_header_size> frame_header(FrameKind kind, std::size_t size) {
  std::array<std::byte, frame_header_size> header{};
  header[0] = static_cast<std::byte>(kind);
  for (std::size_t i = 0; i < 4; ++i)
    header[1 + i] = static_cast<std::byte>((size >> (8 * i)) & 0xff);
  return header;
}

Result<FrameHeader> decode_frame_header(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  std::uint8_t kind = 0;
  std::uint32_t size = 0;
  ZED_CHECK(in.number(kind));
  ZED_CHECK(in.number(size));
  if (kind < 1 || kind > 3)
    return fail(ErrorCode::corrupt, "a frame of unknown kind " + std::to_string(kind));
  if (size > frame_limit)
    return fail(ErrorCode::corrupt, "a frame of " + std::to_string(size) + " bytes; 1 MiB is most");
  return FrameHeader{static_cast<FrameKind>(kind), size};
}

std::string ResumeToken::str() const {
  return join({std::string(token_mark), snapshot.str(), base ? base->str() : "-",
               store::hex_of(manifest), std::to_string(offset)},
              "/");
}

Result<ResumeToken> ResumeToken::parse(std::string_view text) {
  constexpr std::size_t longest = 200;
  if (text.size() > longest) return no_token();
  auto parts = split(text, '/');
  if (parts.size() != 5 || parts[0] != token_mark || parts[3].size() != 64) return no_token();
  ResumeToken token;
  auto snapshot = CheckpointId::parse(parts[1]);
  auto high = bytes_of_hex(std::string_view(parts[3]).substr(0, 32));
  auto low = bytes_of_hex(std::string_view(parts[3]).substr(32));
  if (!snapshot || !high || !low) return no_token();
  token.snapshot = *snapshot;
  std::copy(high->begin(), high->end(), token.manifest.begin());
  std::copy(low->begin(), low->end(), token.manifest.begin() + 16);
  if (parts[2] != "-") {
    token.base = CheckpointId::parse(parts[2]);
    if (!token.base) return no_token();
  }
  const auto offset = parse_number<decltype(token.offset)>(parts[4]);
  if (!offset) return no_token();
  token.offset = *offset;
  return token;
}

BodyLayout::BodyLayout(std::uint64_t delta_size, std::vector<std::uint64_t> file_sizes)
    : sizes_(std::move(file_sizes)) {
  std::uint64_t offset = framed(delta_size);
  starts_.reserve(sizes_.size());
  for (std::uint64_t size : sizes_) {
    starts_.push_back(offset);
    offset += framed(size);
  }
  starts_.push_back(offset);
  total_ = offset + frame_header_size + sizeof(Digest);
}

Position BodyLayout::normal(Position position) const {
  while (position.file < sizes_.size() && position.done >= sizes_[position.file])
    position = {position.file + 1, 0};
  return position;
}

std::uint64_t BodyLayout::offset_of(const Position& position) const {
  return starts_[position.file] + framed(position.done);
}

std::optional<Position> BodyLayout::position_of(std::uint64_t offset) const {
  if (offset < starts_.front() || offset > starts_.back()) return std::nullopt;
  auto after = std::upper_bound(starts_.begin(), starts_.end(), offset);
  Position position{static_cast<std::size_t>(after - starts_.begin()) - 1, 0};
  if (position.file == sizes_.size()) return position;
  std::uint64_t within = offset - starts_[position.file];
  constexpr std::uint64_t whole = frame_limit + frame_header_size;
  if (within % whole != 0) return std::nullopt;
  position.done = within / whole * frame_limit;
  return normal(position);
}

}  // namespace zed::store
