#include "store/files/manifest.hpp"

#include <algorithm>
#include <set>

#include "base/text.hpp"

namespace zed::store {
namespace {

tl::unexpected<Error> corrupt(std::string_view path, const std::string& why) {
  constexpr std::size_t shown = 120;
  return fail(ErrorCode::corrupt, "\"" + percent_encode(path.substr(0, shown)) + "\" " + why);
}

bool is_empty_digest(const Digest& digest) {
  return digest == Digest{};
}

/// Fields that a kind does not have must be empty, so that equal trees have equal encodings.
Status check_fields(const Entry& entry) {
  bool is_file = entry.kind == EntryKind::file;
  bool is_symlink = entry.kind == EntryKind::symlink;
  if (entry.mode > 0777 || (is_symlink && entry.mode != 0))
    return corrupt(entry.path, "has an illegal mode");
  if (!is_file && (entry.size != 0 || entry.mtime_ns != 0 || !is_empty_digest(entry.digest)))
    return corrupt(entry.path, "is no file but has content");
  if (entry.size > largest_file) return corrupt(entry.path, "is larger than any file may be");
  if (is_symlink != !entry.target.empty())
    return corrupt(entry.path, "has a target where none may be, or none where one must be");
  if (entry.target.size() > longest_path || entry.target.find('\0') != std::string::npos)
    return corrupt(entry.path, "has an illegal target");
  return {};
}

}  // namespace

Status check_path(std::string_view path) {
  if (path.empty()) return fail(ErrorCode::corrupt, "an empty path");
  if (path.size() > longest_path) return corrupt(path, "is longer than 4095 bytes");
  if (path.find('\0') != std::string_view::npos) return corrupt(path, "contains NUL");
  std::size_t begin = 0;
  while (begin <= path.size()) {
    std::size_t end = std::min(path.find('/', begin), path.size());
    std::string_view component = path.substr(begin, end - begin);
    if (component.empty() || component == "." || component == "..")
      return corrupt(path, "is not a plain relative path");
    if (component.size() > longest_component)
      return corrupt(path, "has a component longer than 255 bytes");
    begin = end + 1;
  }
  return {};
}

Result<Manifest> Manifest::of(std::vector<Entry> entries) {
  if (entries.size() > most_entries)
    return fail(ErrorCode::corrupt, "a tree of more than 4,000,000 entries");
  auto by_path = [](const Entry& a, const Entry& b) { return a.path < b.path; };
  if (!std::is_sorted(entries.begin(), entries.end(), by_path))
    std::sort(entries.begin(), entries.end(), by_path);
  Manifest manifest;
  manifest.entries_ = std::move(entries);
  const Entry* previous = nullptr;
  for (const Entry& entry : manifest.entries_) {
    ZED_CHECK(check_path(entry.path));
    ZED_CHECK(check_fields(entry));
    if (previous != nullptr && previous->path == entry.path)
      return corrupt(entry.path, "is listed twice");
    previous = &entry;
    std::size_t slash = entry.path.rfind('/');
    if (slash == std::string::npos) continue;
    const Entry* parent = manifest.find(std::string_view(entry.path).substr(0, slash));
    if (parent == nullptr || parent->kind != EntryKind::folder)
      return corrupt(entry.path, "lies in something that is no folder of this tree");
  }
  return manifest;
}

const Entry* Manifest::find(std::string_view path) const {
  auto found = std::lower_bound(entries_.begin(), entries_.end(), path,
                                [](const Entry& e, std::string_view p) { return e.path < p; });
  return found != entries_.end() && found->path == path ? &*found : nullptr;
}

Digest Manifest::digest() const {
  Sha256 hash;
  ByteVector record;
  for (const Entry& entry : entries_) {
    record.clear();
    ByteWriter out(record);
    encode(entry, out);
    hash.update(record);
  }
  return hash.finish();
}

std::uint64_t Manifest::bytes() const {
  std::uint64_t sum = 0;
  for (const Entry& entry : entries_)
    sum += entry.size;
  return sum;
}

Delta difference(const Manifest& base, const Manifest& target) {
  Delta delta;
  auto old = base.entries().begin();
  for (const Entry& entry : target.entries()) {
    for (; old != base.entries().end() && old->path < entry.path; ++old)
      delta.removed.push_back(old->path);
    bool was_there = old != base.entries().end() && old->path == entry.path;
    if (!was_there || !(*old == entry)) delta.put.push_back(entry);
    if (was_there) ++old;
  }
  for (; old != base.entries().end(); ++old)
    delta.removed.push_back(old->path);
  return delta;
}

Result<Manifest> apply(const Manifest& base, const Delta& delta) {
  for (const std::string& path : delta.removed)
    if (base.find(path) == nullptr)
      return corrupt(path, "is removed by the stream but is not in its base");
  std::vector<Entry> entries;
  auto removed = delta.removed.begin();
  auto put = delta.put.begin();
  for (const Entry& entry : base.entries()) {
    for (; put != delta.put.end() && put->path < entry.path; ++put)
      entries.push_back(*put);
    bool is_removed = removed != delta.removed.end() && *removed == entry.path;
    bool is_replaced = put != delta.put.end() && put->path == entry.path;
    if (is_removed) ++removed;
    if (is_removed && is_replaced) return corrupt(entry.path, "is both removed and put");
    if (is_replaced) entries.push_back(*put++);
    if (!is_removed && !is_replaced) entries.push_back(entry);
  }
  entries.insert(entries.end(), put, delta.put.end());
  return Manifest::of(std::move(entries));
}

std::vector<std::size_t> needing_content(const Manifest& base, const Delta& delta) {
  std::set<Digest> known;
  for (const Entry& entry : base.entries())
    if (entry.kind == EntryKind::file) known.insert(entry.digest);
  std::vector<std::size_t> needed;
  for (std::size_t i = 0; i < delta.put.size(); ++i)
    if (delta.put[i].kind == EntryKind::file && known.insert(delta.put[i].digest).second)
      needed.push_back(i);
  return needed;
}

void encode(const Entry& entry, ByteWriter& out) {
  out.number(static_cast<std::uint8_t>(entry.kind));
  out.text(entry.path);
  out.number(entry.mode);
  if (entry.kind == EntryKind::file) {
    out.number(entry.mtime_ns);
    out.number(entry.size);
    out.raw(entry.digest);
  }
  if (entry.kind == EntryKind::symlink) out.text(entry.target);
}

Result<Entry> decode_entry(ByteReader& in) {
  Entry entry;
  std::uint8_t kind = 0;
  ZED_CHECK(in.number(kind));
  if (kind < 1 || kind > 3)
    return fail(ErrorCode::corrupt, "an entry of unknown kind " + std::to_string(kind));
  entry.kind = static_cast<EntryKind>(kind);
  ZED_CHECK(in.text(entry.path));
  ZED_CHECK(in.number(entry.mode));
  if (entry.kind == EntryKind::file) {
    ZED_CHECK(in.number(entry.mtime_ns));
    ZED_CHECK(in.number(entry.size));
    ZED_CHECK(in.raw(entry.digest));
  }
  if (entry.kind == EntryKind::symlink) ZED_CHECK(in.text(entry.target));
  ZED_CHECK(check_path(entry.path));
  ZED_CHECK(check_fields(entry));
  return entry;
}

// Delta on the wire: the number of removed paths, those, then entries up to the end.
ByteVector encode(const Delta& delta) {
  ByteVector bytes;
  ByteWriter out(bytes);
  out.number(static_cast<std::uint32_t>(delta.removed.size()));
  for (const std::string& path : delta.removed)
    out.text(path);
  for (const Entry& entry : delta.put)
    encode(entry, out);
  return bytes;
}

Result<Delta> decode_delta(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  Delta delta;
  std::uint32_t removals = 0;
  ZED_CHECK(in.number(removals));
  for (std::uint32_t i = 0; i < removals; ++i) {
    std::string path;
    ZED_CHECK(in.text(path));
    ZED_CHECK(check_path(path));
    if (!delta.removed.empty() && path <= delta.removed.back())
      return corrupt(path, "is out of order or removed twice");
    delta.removed.push_back(std::move(path));
  }
  while (!in.empty()) {
    ZED_TRY(auto entry, decode_entry(in));
    if (!delta.put.empty() && entry.path <= delta.put.back().path)
      return corrupt(entry.path, "is out of order or listed twice");
    delta.put.push_back(std::move(entry));
  }
  return delta;
}

}  // namespace zed::store
