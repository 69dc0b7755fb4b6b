#include "store/dir/dir_space.hpp"

#include <algorithm>
#include <cerrno>
#include <set>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "net/stat_times.hpp"
#include "net/system.hpp"
#include "store/dir/dir_staging.hpp"
#include "store/dir/folder_source.hpp"
#include "store/dir/layout.hpp"
#include "store/dir/sweep.hpp"

namespace zed::store {
namespace {

constexpr std::size_t index_limit = std::size_t{4} << 30;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

// ---- opening ------------------------------------------------------------------------------------

Result<DirSpace::Opened> DirSpace::open(const std::filesystem::path& root,
                                        const std::string& pool) {
  std::error_code error;
  std::filesystem::create_directories(root, error);
  auto absolute = std::filesystem::canonical(root, error);
  if (error) return fail(net::system_error(error.value(), "open the store in " + root.string()));
  std::unique_ptr<DirSpace> space(new DirSpace(absolute, pool));
  space->root_.reset(::open(absolute.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!space->root_) return fail(net::system_error(errno, "open the store in " + root.string()));
  ZED_CHECK(space->lock());
  ZED_TRY(auto catalog, space->load());
  ZED_TRY(space->abilities_, disk::probe(space->root_.get()));
  auto swept = sweep(space->root_.get(), catalog, space->catalog_->torn_at());
  if (!swept) return fail(std::move(swept).error().with("open the store in " + root.string()));
  space->last_place_ = *swept;
  ZED_CHECK(space->catalog_->cut_torn_end());
  ZED_CHECK(space->remake_empty_places(catalog));
  return Opened{std::move(space), std::move(catalog)};
}

Status DirSpace::lock() {
  ZED_TRY(lock_, disk::open_for_writing(root_.get(), layout::lock, false));
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    auto pid = disk::read_all(root_.get(), layout::lock, 64);
    return fail(ErrorCode::busy,
                "the store in " + root_path_.string() + " is open in another process" +
                    (pid && !pid->empty() ? " (pid " + *pid + ")" : ""),
                "stop that agent first, or give this one another folder");
  }
  std::string pid = std::to_string(::getpid());
  ZED_CHECK(disk::set_size(lock_.get(), 0));
  return disk::write_at(lock_.get(), 0, bytes_of(pid));
}

Status DirSpace::make_folders() {
  for (const char* folder : {layout::live, layout::snapshots, layout::receiving}) {
    auto made = disk::make_folder(root_.get(), folder, 0755);
    if (!made && made.error().code != ErrorCode::exists) return made;
  }
  ZED_TRY(snapshots_, disk::open_folder(root_.get(), layout::snapshots));
  return {};
}

Result<Catalog> DirSpace::load() {
  catalog_.emplace(root_.get());
  auto metadata = catalog_->load();
  if (metadata) {
    pool_ = metadata->pool;
    ZED_CHECK(make_folders());
    return std::move(metadata->catalog);
  }
  if (metadata.error().code != ErrorCode::not_found)
    return fail(std::move(metadata).error().with("open the store in " + root_path_.string()));
  // A new store; but snapshots without a catalog are an accident that must not be swept away.
  auto old = disk::open_folder(root_.get(), layout::snapshots);
  bool empty = true;
  if (old)
    ZED_CHECK(disk::for_each_name(old->get(), [&empty](const std::string&) -> Status {
      empty = false;
      return {};
    }));
  if (!empty)
    return fail(ErrorCode::corrupt, root_path_.string() + " has snapshots but no catalog",
                "bring the file `catalog` back from a backup, or move the folder away");
  ZED_CHECK(make_folders());
  Catalog catalog;
  ZED_CHECK(catalog_->replace(pool_, catalog));
  return catalog;
}

/// An empty live folder is not synced when it is made, so a loss of power may take it back although
/// the catalog names it. Nothing was in it then: what a job makes durable there makes its folder
/// durable too.
Status DirSpace::remake_empty_places(const Catalog& catalog) {
  for (const auto& [name, record] : catalog.datasets()) {
    if (record->live.empty() || catalog.content_of(*record) != nullptr) continue;
    auto there = disk::status_at(root_.get(), record->live);
    if (there || there.error().code != ErrorCode::not_found) continue;
    log_warning("store: the empty folder of " + name.str() + " is made again");
    ZED_CHECK(make_live(record->live, "", record->readonly));
  }
  return {};
}

// ---- the whole ----------------------------------------------------------------------------------

env::StoreInfo DirSpace::info() const {
  std::string how = abilities_.reflinks         ? "reflink"
                    : abilities_.tracks_changes ? "copy, hard links"
                                                : "copy";
  return {StoreKind::dir, pool_, "dir 1 (" + how + ")", true, {StreamKind::files}};
}

Result<env::Space> DirSpace::space() {
  struct statvfs status {};
  if (::fstatvfs(root_.get(), &status) != 0)
    return fail(net::system_error(errno, "ask for the free space of " + root_path_.string()));
  auto bytes = [&status](fsblkcnt_t blocks) {
    return Bytes{static_cast<std::int64_t>(blocks * status.f_frsize)};
  };
  return env::Space{bytes(status.f_bavail), bytes(status.f_blocks)};
}

Status DirSpace::keep(const CatalogEdit& edit) {
  return catalog_->append(pool_, edit);
}

std::string DirSpace::new_place(PlaceKind kind, std::string_view hint) {
  constexpr std::array<const char*, 3> folders{layout::live, layout::snapshots, layout::receiving};
  return std::string(folders[static_cast<std::size_t>(kind)]) + "/" +
         std::to_string(++last_place_) + "-" + std::string(hint);
}

void DirSpace::drop(const std::string& place) {
  auto removed = remove_place(root_.get(), place);
  if (!removed)
    log_warning("store: " + place + " is left until the next start: " + removed.error().describe());
}

// ---- live files ---------------------------------------------------------------------------------

Status DirSpace::make_live(const std::string& live, const std::string& snapshot, bool readonly) {
  // Under its own name only when it is whole: then the next start keeps it, whatever happens.
  const std::string begun = snapshot.empty() ? live : layout::passing_name_of(live);
  ZED_CHECK(disk::make_folder(root_.get(), begun, 0755));
  if (snapshot.empty()) return readonly ? protect_live(live, true) : Status();
  ZED_TRY(auto folder, disk::open_folder(root_.get(), begun));
  ZED_TRY(SnapshotTree tree, snapshot_tree(snapshot));
  ZED_TRY(auto index, make_live_tree(tree, folder.get(), abilities_));
  index.counterpart = snapshot;
  auto bytes = encode(index);
  ZED_TRY(auto file, disk::create_file(root_.get(), layout::index_of_live(live), 0600));
  ZED_CHECK(disk::write_at(file.get(), 0, bytes));
  ZED_CHECK(disk::sync(file.get()));
  ZED_CHECK(disk::rename(root_.get(), begun, live));
  if (readonly) ZED_CHECK(protect_live(live, true));
  ZED_TRY(auto parent, disk::open_folder(root_.get(), layout::live));
  return disk::sync(parent.get());
}

Result<std::filesystem::path> DirSpace::live_path(const std::string& live) {
  auto folder = disk::open_folder(root_.get(), live);
  if (!folder)
    return fail(
        std::move(folder)
            .error()
            .with("open the live files")
            .hinted("if somebody removed them, reverting brings the newest snapshot's back"));
  return root_path_ / live;
}

Status DirSpace::protect_live(const std::string& live, bool readonly) {
  ZED_TRY(auto folder, disk::open_folder(root_.get(), live));
  ZED_TRY(auto status, disk::status_of(folder.get()));
  mode_t write = 0222;
  mode_t mode = status.st_mode & 07777;
  mode_t wanted = readonly ? mode & ~write : mode | 0200;
  return wanted == mode ? Status() : disk::set_mode(folder.get(), wanted);
}

Result<LiveState> DirSpace::look(const std::string& live, const std::string& snapshot) {
  ZED_TRY(auto folder, disk::open_folder(root_.get(), live));
  SnapshotTree tree;
  if (!snapshot.empty()) {
    ZED_TRY(tree, snapshot_tree(snapshot));
  }
  ZED_TRY(auto index, stamps(live, tree, snapshot));
  ZED_TRY(bool changed, differs(folder.get(), index, tree.files.get()));
  return LiveState{changed, {static_cast<std::int64_t>(index.bytes())}};
}

// ---- snapshots ----------------------------------------------------------------------------------

Result<Index> DirSpace::read_index(const std::string& path) const {
  ZED_TRY(auto text, disk::read_all(root_.get(), path, index_limit));
  return decode_index(text);
}

Result<SnapshotTree> DirSpace::snapshot_tree(const std::string& snapshot) const {
  SnapshotTree tree;
  ZED_TRY(tree.files, disk::open_folder(root_.get(), layout::files_of(snapshot)));
  ZED_TRY(tree.index, read_index(layout::index_of_snapshot(snapshot)));
  return tree;
}

Result<Index> DirSpace::stamps(const std::string& live, const SnapshotTree& snapshot,
                               const std::string& snapshot_place) const {
  if (snapshot.index.counterpart == live) return snapshot.index;
  auto own = read_index(layout::index_of_live(live));
  if (own && own->counterpart == snapshot_place) return own;
  Index none = snapshot.index;
  for (IndexEntry& item : none.entries)
    item.stamp = {};
  return none;
}

Result<disk::Fd> DirSpace::begin_snapshot(const std::string& snapshot) {
  ZED_CHECK(disk::make_folder(root_.get(), snapshot, 0755));
  ZED_CHECK(disk::make_folder(root_.get(), layout::files_of(snapshot), 0755));
  return disk::open_folder(root_.get(), layout::files_of(snapshot));
}

Status DirSpace::end_snapshot(const std::string& snapshot, const Index& index) {
  auto bytes = encode(index);
  ZED_TRY(auto place, disk::open_folder(root_.get(), snapshot));
  ZED_TRY(auto file, disk::create_file(place.get(), layout::index, 0644));
  ZED_CHECK(disk::write_at(file.get(), 0, bytes));
  ZED_CHECK(disk::sync(file.get()));
  ZED_TRY(auto files, disk::open_folder(place.get(), layout::files));
  ZED_CHECK(disk::set_mode(files.get(), 0555));
  ZED_CHECK(disk::sync(place.get()));
  return disk::sync(snapshots_.get());
}

Result<MadeFiles> DirSpace::take(const SnapshotSource& source, const std::string& snapshot) {
  ZED_TRY(auto to, begin_snapshot(snapshot));
  TreeCost cost;
  Index index;
  SnapshotTree content;
  if (!source.content.empty()) {
    ZED_TRY(content, snapshot_tree(source.content));
  }
  if (source.live.empty()) {
    // The live files are another snapshot's: this one is that snapshot again.
    Arrival same;
    std::vector<Entry> entries;
    for (const IndexEntry& item : content.index.entries)
      entries.push_back(item.entry);
    ZED_TRY(same.manifest, Manifest::of(std::move(entries)));
    ZED_TRY(index, assemble_tree(same, &content, -1, to.get(), abilities_, cost));
    index = content.index;
    index.counterpart.clear();
  } else {
    ZED_TRY(auto live, disk::open_folder(root_.get(), source.live));
    ZED_TRY(auto known, stamps(source.live, content, source.content));
    TakeRequest request{live.get(), to.get(), &content, content.files ? &known : nullptr,
                        abilities_};
    ZED_TRY(index, take_tree(request, cost));
    index.counterpart = source.live;
  }
  ZED_CHECK(end_snapshot(snapshot, index));
  return MadeFiles{{static_cast<std::int64_t>(cost.written)},
                   {static_cast<std::int64_t>(index.bytes())}};
}

Result<std::filesystem::path> DirSpace::snapshot_path(const std::string& snapshot) {
  ZED_CHECK(disk::open_folder(root_.get(), layout::files_of(snapshot)));
  return root_path_ / layout::files_of(snapshot);
}

Result<Manifest> DirSpace::manifest(const std::string& snapshot) {
  ZED_TRY(auto tree, snapshot_tree(snapshot));
  bool learned = false;
  std::vector<Entry> entries;
  entries.reserve(tree.index.entries.size());
  for (IndexEntry& item : tree.index.entries) {
    if (item.entry.kind == EntryKind::file && !item.hashed) {
      ZED_TRY(item.entry.digest, digest_of(tree.files.get(), item.entry));
      item.hashed = true;
      learned = true;
    }
    entries.push_back(item.entry);
  }
  if (learned) {
    // Hashed once, known for good. Not kept (the disk is full): hashed again next time.
    std::lock_guard lock(writing_);
    auto place = disk::open_folder(root_.get(), snapshot);
    auto bytes = encode(tree.index);
    if (place) (void)disk::replace_file(place->get(), layout::index, layout::new_index, bytes);
  }
  return Manifest::of(std::move(entries));
}

Result<std::unique_ptr<ContentSource>> DirSpace::content(const std::string& snapshot) {
  ZED_TRY(auto files, disk::open_folder(root_.get(), layout::files_of(snapshot)));
  return make_folder_source(std::move(files));
}

// ---- receiving ----------------------------------------------------------------------------------

Result<std::unique_ptr<Staging>> DirSpace::staging(const std::string& receiving) {
  auto made = disk::make_folder(root_.get(), receiving, 0700);
  if (!made && made.error().code != ErrorCode::exists) return fail(std::move(made).error());
  ZED_TRY(auto folder, disk::open_folder(root_.get(), receiving));
  if (made) {
    ZED_TRY(auto parent, disk::open_folder(root_.get(), layout::receiving));
    ZED_CHECK(disk::sync(parent.get()));
  }
  return make_dir_staging(std::move(folder));
}

Result<MadeFiles> DirSpace::assemble(const Arrival& arrival, const std::string& base,
                                     const std::string& receiving, const std::string& snapshot) {
  ZED_TRY(auto to, begin_snapshot(snapshot));
  ZED_TRY(auto staged, disk::open_folder(root_.get(), receiving));
  SnapshotTree base_tree;
  if (!base.empty()) {
    ZED_TRY(base_tree, snapshot_tree(base));
  }
  TreeCost cost;
  ZED_TRY(auto index, assemble_tree(arrival, &base_tree, staged.get(), to.get(), abilities_, cost));
  ZED_CHECK(end_snapshot(snapshot, index));
  return MadeFiles{{static_cast<std::int64_t>(cost.written)},
                   {static_cast<std::int64_t>(index.bytes())}};
}

// ---- the rest -----------------------------------------------------------------------------------

std::vector<std::string> DirSpace::missing(const Catalog& catalog) {
  std::lock_guard lock(looking_);
  // Removing a snapshot's folder moves the time of the folder that it was in.
  auto status = disk::status_of(snapshots_.get());
  if (!status) return {};
  std::int64_t changed = disk::nanoseconds(net::modified_at(*status));
  bool is_settled = changed + disk::tick_nanoseconds() < disk::now_nanoseconds();
  if (changed == snapshots_looked_ns_) return {};
  std::set<std::string> there;
  auto listed = disk::for_each_name(snapshots_.get(), [&there](const std::string& name) -> Status {
    there.insert(std::string(layout::snapshots) + "/" + name);
    return {};
  });
  if (!listed) return {};
  std::vector<std::string> gone;
  for (const auto& [name, record] : catalog.datasets())
    for (const SnapshotRef& snapshot : record->snapshots)
      if (!there.contains(snapshot->files)) gone.push_back(snapshot->files);
  snapshots_looked_ns_ = is_settled ? changed : 0;
  return gone;
}

std::uint64_t DirSpace::random() {
  std::uint64_t number = 0;
  net::fill_random(std::as_writable_bytes(std::span(&number, 1)));
  return number;
}

WallTime DirSpace::wall_time() {
  return wall_now();
}

}  // namespace zed::store
