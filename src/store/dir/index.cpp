#include "store/dir/index.hpp"

#include <algorithm>

namespace zed::store {
namespace {

constexpr std::string_view magic = "ZEDIDX1\n";
static_assert(magic.size() == index_head_size);

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

const IndexEntry* Index::find(std::string_view path) const {
  auto found =
      std::lower_bound(entries.begin(), entries.end(), path,
                       [](const IndexEntry& e, std::string_view p) { return e.entry.path < p; });
  return found != entries.end() && found->entry.path == path ? &*found : nullptr;
}

std::uint64_t Index::bytes() const {
  std::uint64_t sum = 0;
  for (const IndexEntry& entry : entries)
    sum += entry.entry.size;
  return sum;
}

ByteVector encode(const Index& index) {
  ByteVector bytes;
  ByteWriter out(bytes);
  out.raw(bytes_of(magic));
  out.text(index.counterpart);
  for (const IndexEntry& item : index.entries) {
    encode(item.entry, out);
    if (item.entry.kind != EntryKind::file) continue;
    out.number(static_cast<std::uint8_t>(item.hashed));
    out.number(item.stamp.inode);
    out.number(item.stamp.mtime_ns);
    out.number(item.stamp.ctime_ns);
    out.number(item.stamp.seen_ns);
  }
  Digest digest = sha256(bytes);
  out.raw(digest);
  return bytes;
}

bool may_be_index(std::string_view head, std::uint64_t size) {
  return head == magic && size >= magic.size() + sizeof(Digest);
}

Result<Index> decode_index(std::string_view text) {
  auto broken = [] {
    return fail(ErrorCode::corrupt, "the index of a snapshot is damaged",
                "destroy that snapshot and receive it again from another node");
  };
  auto bytes = bytes_of(text);
  if (bytes.size() < magic.size() + sizeof(Digest) || !text.starts_with(magic)) return broken();
  auto body = bytes.first(bytes.size() - sizeof(Digest));
  Digest stored{};
  ZED_CHECK(ByteReader(bytes.subspan(body.size())).raw(stored));
  if (sha256(body) != stored) return broken();
  ByteReader in(body.subspan(magic.size()));
  Index index;
  ZED_CHECK(in.text(index.counterpart));
  while (!in.empty()) {
    IndexEntry item;
    ZED_TRY(item.entry, decode_entry(in));
    if (item.entry.kind == EntryKind::file) {
      std::uint8_t hashed = 0;
      ZED_CHECK(in.number(hashed));
      ZED_CHECK(in.number(item.stamp.inode));
      ZED_CHECK(in.number(item.stamp.mtime_ns));
      ZED_CHECK(in.number(item.stamp.ctime_ns));
      ZED_CHECK(in.number(item.stamp.seen_ns));
      item.hashed = hashed != 0;
    }
    index.entries.push_back(std::move(item));
  }
  return index;
}

}  // namespace zed::store
