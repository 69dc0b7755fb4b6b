#include "store/dir/tree.hpp"

#include <algorithm>
#include <cerrno>

#include <unistd.h>

#include "base/text.hpp"
#include "net/stat_times.hpp"
#include "store/dir/tree_maker.hpp"

namespace zed::store {
namespace {

using disk::Fd;

constexpr int deepest = 128;
constexpr std::uint64_t compared_at_most = std::uint64_t{16} << 20;
/// Copying a file again costs less than waiting a tick for its stamp up to here.
constexpr std::uint64_t not_worth_waiting = std::uint64_t{256} << 10;
constexpr std::size_t block_size = std::size_t{1} << 20;

/// One name in a folder that is being walked.
struct Found {
  int folder;
  std::string name;
  std::string path;
  struct stat status;
};

using Visit = std::function<Status(const Found&)>;

tl::unexpected<Error> beyond(const std::string& what) {
  return fail(ErrorCode::invalid, what, "move such files out of the dataset");
}

/// Visits each file, folder and symlink, folders before what is in them. Names that vanish
/// meanwhile are left out.
Status walk(int folder, const std::string& prefix, int depth, const Visit& visit) {
  if (depth > deepest) return beyond("folders are nested deeper than 128");
  std::vector<std::string> names;
  ZED_CHECK(disk::for_each_name(folder, [&names](const std::string& name) -> Status {
    if (names.size() >= most_entries) return beyond("a folder has more than 4,000,000 names");
    names.push_back(name);
    return {};
  }));
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    auto status = disk::status_at(folder, name);
    if (!status && status.error().code == ErrorCode::not_found) continue;
    if (!status) return fail(std::move(status).error());
    Found found{folder, name, prefix + name, *status};
    if (!S_ISREG(status->st_mode) && !S_ISDIR(status->st_mode) && !S_ISLNK(status->st_mode))
      continue;
    if (found.path.size() > longest_path)
      return beyond("a path is longer than 4095 bytes: \"" +
                    percent_encode(found.path.substr(0, 80)) + "…\"");
    ZED_CHECK(visit(found));
    if (!S_ISDIR(status->st_mode)) continue;
    auto inside = disk::open_folder(folder, name);
    if (!inside && inside.error().code == ErrorCode::not_found) continue;
    if (!inside) return fail(std::move(inside).error());
    ZED_CHECK(walk(inside->get(), found.path + "/", depth + 1, visit));
  }
  return {};
}

Result<std::string> read_symlink(const Found& found) {
  std::string target(longest_path + 1, '\0');
  ssize_t size = ::readlinkat(found.folder, found.name.c_str(), target.data(), target.size());
  if (size < 0) return fail(net::system_error(errno, "read symlink " + found.path));
  target.resize(static_cast<std::size_t>(size));
  return target;
}

Stamp stamp_of(const struct stat& status, std::int64_t seen_ns) {
  return {status.st_ino, disk::nanoseconds(net::modified_at(status)),
          disk::nanoseconds(net::changed_at(status)), seen_ns};
}

Result<IndexEntry> look_at(const Found& found) {
  IndexEntry item;
  item.entry.path = found.path;
  if (S_ISLNK(found.status.st_mode)) {
    item.entry.kind = EntryKind::symlink;
    ZED_TRY(item.entry.target, read_symlink(found));
    return item;
  }
  item.entry.mode = found.status.st_mode & 0777;
  if (S_ISDIR(found.status.st_mode)) {
    item.entry.kind = EntryKind::folder;
    return item;
  }
  item.entry.mtime_ns = disk::nanoseconds(net::modified_at(found.status));
  item.entry.size = static_cast<std::uint64_t>(found.status.st_size);
  item.stamp = stamp_of(found.status, disk::now_nanoseconds());
  return item;
}

void sort_by_path(Index& index) {
  std::sort(index.entries.begin(), index.entries.end(),
            [](const IndexEntry& a, const IndexEntry& b) { return a.entry.path < b.entry.path; });
}

bool same_stamp(const Stamp& a, const Stamp& b) {
  return a.inode == b.inode && a.mtime_ns == b.mtime_ns && a.ctime_ns == b.ctime_ns;
}

Result<bool> same_content(int a, int b, std::uint64_t size) {
  ByteVector left(block_size);
  ByteVector right(block_size);
  for (std::uint64_t at = 0; at < size; at += block_size) {
    std::size_t part = static_cast<std::size_t>(std::min<std::uint64_t>(block_size, size - at));
    ZED_CHECK(disk::read_at(a, at, std::span(left).first(part)));
    ZED_CHECK(disk::read_at(b, at, std::span(right).first(part)));
    if (!std::equal(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(part), right.begin()))
      return false;
  }
  return true;
}

// ---- take ---------------------------------------------------------------------------------------

class Taker {
public:
  Taker(const TakeRequest& request, TreeCost& cost)
      : request_(request), cost_(cost),
        maker_(request.to, TreeMaker::Use::snapshot, request.abilities) {}

  Result<Index> run() {
    ZED_CHECK(walk(request_.live, "", 0, [this](const Found& found) { return take(found); }));
    ZED_CHECK(maker_.finish());
    sort_by_path(index_);
    return std::move(index_);
  }

private:
  Status take(const Found& found) {
    if (index_.entries.size() >= most_entries)
      return beyond("a dataset has more than 4,000,000 files");
    ZED_TRY(auto item, look_at(found));
    if (item.entry.kind == EntryKind::folder) ZED_CHECK(maker_.add_folder(item.entry));
    if (item.entry.kind == EntryKind::symlink) ZED_CHECK(maker_.add_symlink(item.entry));
    if (item.entry.kind == EntryKind::file) {
      ZED_TRY(bool shared, share(item));
      if (!shared) return copy(found, std::move(item));
    }
    index_.entries.push_back(std::move(item));
    return {};
  }

  /// Links to the previous snapshot's copy if the stamp proves that nothing changed since.
  Result<bool> share(IndexEntry& item) {
    if (request_.stamps == nullptr || !request_.abilities.tracks_changes) return false;
    const IndexEntry* old = request_.stamps->find(item.entry.path);
    bool unchanged = old != nullptr && old->entry.kind == EntryKind::file &&
                     old->entry.size == item.entry.size && old->entry.mode == item.entry.mode &&
                     old->stamp.is_proof(disk::tick_nanoseconds()) &&
                     same_stamp(old->stamp, item.stamp);
    if (!unchanged) return false;
    auto linked = maker_.add_link(item.entry, request_.previous->files.get(), item.entry.path);
    if (!linked && linked.error().code == ErrorCode::unsupported) return false;
    if (!linked) return fail(std::move(linked).error());
    item.stamp = old->stamp;
    if (const IndexEntry* known = request_.previous->index.find(item.entry.path);
        known != nullptr && known->hashed) {
      item.hashed = true;
      item.entry.digest = known->entry.digest;
    }
    return true;
  }

  Status copy(const Found& found, IndexEntry item) {
    auto from = disk::open_file(found.folder, found.name);
    if (!from && from.error().code == ErrorCode::not_found) return {};
    if (!from) return fail(std::move(from).error().with("snapshot " + found.path));
    ZED_TRY(item.stamp, settled_stamp(from->get(), item));
    item.entry.mtime_ns = item.stamp.mtime_ns;
    ZED_CHECK(maker_.add_copy(item.entry, from->get()));
    ZED_TRY(item.entry.size, size_of_copy(item.entry.path));
    cost_.written += item.entry.size;
    index_.entries.push_back(std::move(item));
    return {};
  }

  /// The order matters: first the clock leaves the tick of the last change, then changed pages are
  /// written back, then the stamp is read, then (by the caller) the content. So whatever happens
  /// later, a store to a mapped page too, gives the file another ctime.
  Result<Stamp> settled_stamp(int file, const IndexEntry& item) {
    if (!request_.abilities.tracks_changes) return item.stamp;
    if (item.entry.size > not_worth_waiting) disk::wait_until_past(item.stamp.ctime_ns);
    std::int64_t seen = disk::now_nanoseconds();
    ZED_CHECK(disk::flush(file));
    ZED_TRY(auto status, disk::status_of(file));
    return stamp_of(status, seen);
  }

  /// A file may have grown since it was looked at; the copy is what counts.
  Result<std::uint64_t> size_of_copy(const std::string& path) {
    ZED_TRY(auto copy, disk::open_file(request_.to, path));
    ZED_TRY(auto status, disk::status_of(copy.get()));
    return static_cast<std::uint64_t>(status.st_size);
  }

  const TakeRequest& request_;
  TreeCost& cost_;
  TreeMaker maker_;
  Index index_;
};

}  // namespace

Result<Index> scan(int folder) {
  Index index;
  ZED_CHECK(walk(folder, "", 0, [&index](const Found& found) -> Status {
    ZED_TRY(auto item, look_at(found));
    index.entries.push_back(std::move(item));
    return {};
  }));
  sort_by_path(index);
  return index;
}

Result<bool> differs(int live, const Index& index, int files) {
  ZED_TRY(auto now, scan(live));
  if (now.entries.size() != index.entries.size()) return true;
  std::vector<const IndexEntry*> unproven;
  std::uint64_t to_compare = 0;
  for (std::size_t i = 0; i < now.entries.size(); ++i) {
    const IndexEntry& old = index.entries[i];
    Entry entry = now.entries[i].entry;
    entry.digest = old.entry.digest;
    if (entry != old.entry) return true;
    if (entry.kind != EntryKind::file) continue;
    if (same_stamp(old.stamp, now.entries[i].stamp) && old.stamp.is_proof(disk::tick_nanoseconds()))
      continue;
    to_compare += entry.size;
    unproven.push_back(&old);
  }
  if (to_compare > compared_at_most) return true;
  for (const IndexEntry* item : unproven) {
    auto now_file = disk::open_file(live, item->entry.path);
    if (!now_file) return true;
    ZED_TRY(auto old_file, disk::open_file(files, item->entry.path));
    auto same = same_content(now_file->get(), old_file.get(), item->entry.size);
    if (!same || !*same) return true;
  }
  return false;
}

Result<Index> take_tree(const TakeRequest& request, TreeCost& cost) {
  return Taker(request, cost).run();
}

// ---- make live ----------------------------------------------------------------------------------

Result<Index> make_live_tree(const SnapshotTree& snapshot, int to,
                             const disk::Abilities& abilities) {
  TreeMaker maker(to, TreeMaker::Use::live, abilities);
  for (const IndexEntry& item : snapshot.index.entries) {
    if (item.entry.kind == EntryKind::folder) ZED_CHECK(maker.add_folder(item.entry));
    if (item.entry.kind == EntryKind::symlink) ZED_CHECK(maker.add_symlink(item.entry));
    if (item.entry.kind != EntryKind::file) continue;
    ZED_TRY(auto from, disk::open_file(snapshot.files.get(), item.entry.path));
    ZED_CHECK(maker.add_copy(item.entry, from.get()));
  }
  // Nobody knows this folder yet. After the tick that made it, written back: its stamps prove.
  if (snapshot.index.bytes() != 0) disk::wait_until_past(disk::now_nanoseconds());
  std::int64_t seen = disk::now_nanoseconds();
  ZED_CHECK(maker.finish());
  Index index = snapshot.index;
  for (IndexEntry& item : index.entries) {
    if (item.entry.kind != EntryKind::file) continue;
    ZED_TRY(auto file, disk::open_file(to, item.entry.path));
    if (abilities.tracks_changes) ZED_CHECK(disk::flush(file.get()));
    ZED_TRY(auto status, disk::status_of(file.get()));
    item.stamp = stamp_of(status, seen);
    item.entry.mtime_ns = item.stamp.mtime_ns;
  }
  return index;
}

// ---- assemble -----------------------------------------------------------------------------------

namespace {

class Assembler {
public:
  Assembler(const Arrival& arrival, const SnapshotTree* base, int staged, int to,
            const disk::Abilities& abilities, TreeCost& cost)
      : arrival_(arrival), base_(base), staged_(staged), to_(to), cost_(cost),
        maker_(to, TreeMaker::Use::snapshot, abilities) {}

  Result<Index> run() {
    Index index;
    std::size_t put = 0;
    const auto& puts = arrival_.delta.put;
    for (const Entry& entry : arrival_.manifest.entries()) {
      bool is_new = put < puts.size() && puts[put].path == entry.path;
      ZED_CHECK(add(entry, is_new ? &arrival_.places[put] : nullptr));
      if (is_new) ++put;
      index.entries.push_back({entry, entry.kind == EntryKind::file, {}});
    }
    ZED_CHECK(maker_.finish());
    return index;
  }

private:
  Status add(const Entry& entry, const std::optional<ContentPlace>* place) {
    if (entry.kind == EntryKind::folder) return maker_.add_folder(entry);
    if (entry.kind == EntryKind::symlink) return maker_.add_symlink(entry);
    if (place == nullptr) return share(entry, entry.path);
    if (entry.size == 0) return maker_.add_empty(entry);
    ZED_ASSERT(place->has_value());  // the receiver gives each new file a place
    switch ((*place)->from) {
    case ContentPlace::From::staged: return use_staged(entry, (*place)->staged_file);
    case ContentPlace::From::base: return copy(entry, base_->files.get(), (*place)->path);
    case ContentPlace::From::earlier: return copy(entry, to_, (*place)->path);
    }
    return {};
  }

  Status share(const Entry& entry, const std::string& path) {
    auto linked = maker_.add_link(entry, base_->files.get(), path);
    if (!linked && linked.error().code == ErrorCode::unsupported)
      return copy(entry, base_->files.get(), path);
    return linked;
  }

  Status copy(const Entry& entry, int folder, const std::string& path) {
    ZED_TRY(auto from, disk::open_file(folder, path));
    cost_.written += entry.size;
    return maker_.add_copy(entry, from.get());
  }

  /// The staged file itself becomes the snapshot's; it has been synced with the last kept offset.
  Status use_staged(const Entry& entry, std::size_t number) {
    std::string name = std::to_string(number);
    ZED_TRY(auto file, disk::open_file(staged_, name));
    ZED_CHECK(disk::set_mtime(file.get(), entry.mtime_ns));
    ZED_CHECK(disk::set_mode(file.get(), snapshot_mode(entry.mode)));
    ZED_CHECK(maker_.sync_file(file.get()));
    cost_.written += entry.size;
    return maker_.add_link(entry, staged_, name);
  }

  const Arrival& arrival_;
  const SnapshotTree* base_;
  int staged_;
  int to_;
  TreeCost& cost_;
  TreeMaker maker_;
};

}  // namespace

Result<Index> assemble_tree(const Arrival& arrival, const SnapshotTree* base, int staged, int to,
                            const disk::Abilities& abilities, TreeCost& cost) {
  return Assembler(arrival, base, staged, to, abilities, cost).run();
}

}  // namespace zed::store
