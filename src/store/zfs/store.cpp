#include "store/zfs/store.hpp"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>

#include "base/log.hpp"
#include "store/catalog.hpp"
#include "store/dir/file_system.hpp"
#include "store/zfs/errors.hpp"
#include "store/zfs/users_of.hpp"

namespace zed::store::zfs {
namespace {

constexpr char tag_prefix[] = "zed:";
/// Of one dataset, for all peers together: what peers left that are gone for good stays bounded.
constexpr std::size_t most_bookmarks = 64;
/// However quiet the pool seems: an event may be lost where very many come at once.
constexpr std::chrono::seconds list_anyway_after{60};

tl::unexpected<Error> exists(const std::string& name) {
  return fail(ErrorCode::exists, name + " exists already");
}

Status ignoring(Result<std::string> result, std::string_view words) {
  if (result || result.error().message.find(words) != std::string::npos) return {};
  return fail(std::move(result).error());
}

Status status_of(Result<std::string> result) {
  return result ? Status() : Status(fail(std::move(result).error()));
}

}  // namespace

tl::unexpected<Error> no_snapshot(const std::string& name) {
  return fail(ErrorCode::not_found, "there is no snapshot " + name);
}

std::optional<CheckpointId> id_in(const Properties& properties) {
  auto found = properties.find(property::id);
  return found == properties.end() ? std::nullopt : CheckpointId::parse(found->second);
}

ZfsStore::ZfsStore(std::unique_ptr<Commands> commands, std::string root, Version version,
                   bool privileged, std::string instance, disk::Fd lock)
    : zfs_(std::move(commands), std::move(root)), version_(std::move(version)),
      privileged_(privileged), inventory_(zfs_), work_(zfs_), lock_(std::move(lock)),
      changes_(std::move(instance)) {}

// ---- reading ------------------------------------------------------------------------------------

env::StoreInfo ZfsStore::info() const {
  env::StoreInfo info;
  info.kind = StoreKind::zfs;
  info.pool = zfs_.root();
  info.version = "OpenZFS " + version_.text;
  info.may_mount = privileged_;
  info.streams = {StreamKind::zfs};
  if (privileged_) info.streams.push_back(StreamKind::files);
  return info;
}

Result<Record> ZfsStore::look(const DatasetName& dataset) {
  return inventory_.look(dataset, false);
}

Result<Record> ZfsStore::look_exactly(const DatasetName& dataset) {
  return inventory_.look(dataset, true);
}

Result<std::vector<Dataset>> ZfsStore::list() {
  ZED_TRY(auto records, inventory_.all(true));
  std::vector<Dataset> datasets;
  datasets.reserve(records.size());
  for (Record& record : records)
    datasets.push_back(std::move(record.dataset));
  return datasets;
}

Result<Dataset> ZfsStore::inspect(const DatasetName& dataset) {
  ZED_TRY(auto record, look_exactly(dataset));
  return std::move(record.dataset);
}

Result<env::Store::Changes> ZfsStore::changes_since(const std::string& cursor) {
  std::lock_guard lock(changes_mutex_);
  // Taken before the listing: what happens during it is listed once more.
  Listing before = now();
  bool quiet = events_ && events_->is_listening() && !cursor.empty() && cursor == listed_.cursor &&
               before.events == listed_.events && before.own_changes == listed_.own_changes &&
               before.at - listed_.at < list_anyway_after;
  if (quiet) return Changes{cursor, {}};
  ZED_TRY(auto records, inventory_.all(false));
  auto [next, names] = changes_.since(cursor, records);
  listed_ = before;
  listed_.cursor = next;
  return Changes{std::move(next), std::move(names)};
}

ZfsStore::Listing ZfsStore::now() const {
  Listing listing;
  listing.events = events_ ? events_->heard() : 0;
  listing.own_changes = zfs_.changes();
  listing.at = std::chrono::steady_clock::now();
  return listing;
}

void ZfsStore::watch_events() {
  if (!privileged_) return;
  events_ = std::make_unique<EventWatch>(
      zfs_.commands(), zfs_.pool(), [this](const Rollback& rollback) { note_rollback(rollback); });
}

Status ZfsStore::roll_back(const std::string& what, const DatasetName& dataset,
                           const std::string& word) {
  const std::string full = zfs_.full(dataset);
  const bool will_be_heard = events_ && events_->is_listening();
  auto count = [&](int by) {
    std::lock_guard lock(own_rollbacks_mutex_);
    if ((own_rollbacks_[full] += by) <= 0) own_rollbacks_.erase(full);
  };
  if (will_be_heard) count(1);
  auto done = zfs_.run(what, {"rollback", full + "@" + word});
  if (!done && will_be_heard) count(-1);
  return status_of(std::move(done));
}

void ZfsStore::note_rollback(const Rollback& rollback) {
  {
    std::lock_guard lock(own_rollbacks_mutex_);
    auto own = own_rollbacks_.find(rollback.dataset);
    if (own != own_rollbacks_.end()) {
      if (--own->second <= 0) own_rollbacks_.erase(own);
      return;
    }
  }
  auto name = zfs_.relative(rollback.dataset);
  if (!name) return;
  if (auto marked = mark_reverted(*name, rollback.txg); !marked)
    log_warning("store: " + name->str() +
                " was rolled back by hand, and that cannot be noted: " + marked.error().describe());
}

Status ZfsStore::mark_reverted(const DatasetName& dataset, std::uint64_t txg) {
  ZED_TRY(auto record, look(dataset));
  if (record.dataset.uuid.is_nil()) return {};
  // What was committed since is of what the job remembers, not of the files that it was given.
  const Snapshot* target = nullptr;
  for (const Snapshot& snapshot : record.dataset.snapshots)
    if (snapshot.createtxg < txg) target = &snapshot;
  if (target == nullptr) return {};
  return set(dataset, {{property::reverted, "@" + target->name}});
}

Result<env::Space> ZfsStore::space() {
  ZED_TRY(auto facts, zfs_.datasets(zfs_.root(), false));
  const Facts& root = facts.at(zfs_.root());
  Bytes free{static_cast<std::int64_t>(root.number("available"))};
  return env::Space{free, free + Bytes{static_cast<std::int64_t>(root.number("used"))}};
}

Result<Record> ZfsStore::glance(const DatasetName& dataset) const {
  return inventory_.glance(dataset);
}

Result<Snapshot> ZfsStore::find_snapshot(const SnapshotName& name) {
  std::string full = zfs_.full(name);
  ZED_TRY(auto facts, zfs_.snapshot_facts({full}));
  auto found = facts.find(full);
  if (found == facts.end()) return no_snapshot(name.str());
  return show_snapshot(name.snapshot, found->second);
}

// ---- datasets -----------------------------------------------------------------------------------

Status ZfsStore::make_parents(const DatasetName& dataset) {
  const std::string parents = dataset.parent();
  const std::string what = "make the parents of " + dataset.str();
  for (std::size_t end = parents.find('/');; end = parents.find('/', end + 1)) {
    auto parent = DatasetName::parse(parents.substr(0, end));
    if (!parent) return {};  // there is none: the dataset lies in the root itself
    if (!glance(*parent)) {
      // -p would mount each, and a user who may not is told so after only one was made.
      const std::string full = zfs_.full(*parent);
      ZED_CHECK(zfs_.run(what, privileged_ ? Arguments{"create", "-p", full}
                                           : Arguments{"create", "-u", full}));
    }
    if (end == std::string::npos) return {};
  }
}

Status ZfsStore::make_below(const DatasetName& dataset, const std::string& what,
                            const Arguments& arguments) {
  auto made = zfs_.run(what, arguments);
  if (!made && made.error().message.find("parent does not exist") != std::string::npos) {
    ZED_CHECK(make_parents(dataset));
    made = zfs_.run(what, arguments);
  }
  if (made) return {};
  // A user who may not mount is told so after it has been made.
  if (made.error().message.find("successfully created") != std::string::npos) return {};
  if (made.error().code == ErrorCode::exists) return exists(dataset.str());
  return fail(std::move(made).error());
}

Status ZfsStore::create(const DatasetName& dataset, const Properties& properties) {
  ZED_CHECK(check_properties(properties));
  Turns::Turn turn(turns_, {{dataset}});
  // Reading must not change anything: `changed` is told by what was written.
  Arguments arguments{"create", "-o", "atime=off"};
  // A model is few large files, read from their beginning to their end: fewer, larger blocks.
  const auto kind = properties.find(property::type);
  if (privileged_ && kind != properties.end() && kind->second == "model")
    arguments.insert(arguments.end(), {"-o", "recordsize=1M"});
  Zfs::add_options(arguments, properties);
  arguments.push_back(zfs_.full(dataset));
  return make_below(dataset, "make " + dataset.str(), arguments);
}

Status ZfsStore::set(const DatasetName& dataset, const PropertyChanges& changes) {
  ZED_CHECK(check_properties(changes));
  Transaction transaction;
  transaction.dataset = dataset;
  transaction.changes = changes;
  return apply("set properties of " + dataset.str(), transaction);
}

Status ZfsStore::set_readonly(const DatasetName& dataset, bool readonly) {
  Turns::Turn turn(turns_, {{dataset}});
  if (!readonly) ZED_CHECK(transfers_.none_into(dataset));
  const char* value = readonly ? "readonly=on" : "readonly=off";
  return status_of(zfs_.run("set " + std::string(value) + " on " + dataset.str(),
                            {"set", value, zfs_.full(dataset)}));
}

Result<std::string> ZfsStore::mount(const Record& record) {
  std::string full = zfs_.full(record.dataset.name);
  if (!privileged_)
    return fail(ErrorCode::unsupported, "the files of " + full + " are out of reach",
                "only root may mount: this agent can hold replicas only");
  if (!record.can_mount)
    return fail(ErrorCode::unsupported, full + " has no mount point",
                "give it one: zfs set mountpoint=/" + zfs_.root() + " " + zfs_.root());
  for (bool tried : {false, true}) {
    // The last one counts: it lies over the others.
    std::string path;
    for (const Mount& mount : zfs_.mounts())
      if (mount.source == full) path = mount.path;
    if (!path.empty()) return path;
    if (tried) break;
    ZED_CHECK(zfs_.run("mount " + full, {"mount", full}));
  }
  return fail(ErrorCode::io, full + " was mounted and is in no mount table",
              "somebody unmounted it at once, or it is mounted in another namespace");
}

Status ZfsStore::unmount(const Record& record) {
  ZED_CHECK(unmount_snapshots(record.dataset.name));
  if (!record.mounted) return {};
  std::string full = zfs_.full(record.dataset.name);
  return naming_users(
      ignoring(zfs_.run("unmount " + full, {"unmount", full}), "not currently mounted"),
      record.dataset.name);
}

Status ZfsStore::naming_users(Status status, const DatasetName& dataset) const {
  if (status || status.error().code != ErrorCode::busy) return status;
  std::string full = zfs_.full(dataset);
  for (const Mount& mount : zfs_.mounts()) {
    if (mount.source != full && !mount.source.starts_with(full + "/")) continue;
    std::string users = users_of(mount.path);
    if (!users.empty()) status.error().hint = "end what uses " + mount.path + ": " + users;
  }
  return status;
}

Status ZfsStore::unmount_snapshots(const DatasetName& dataset) {
  std::string ours = zfs_.full(dataset) + "@";
  for (const Mount& mount : zfs_.mounts()) {
    if (!mount.source.starts_with(ours)) continue;
    // The kernel may have dropped it by itself meanwhile.
    if (disk::system::unmount(mount.path) == 0 || errno == EINVAL || errno == ENOENT) continue;
    return fail(error_of_errno("unmount snapshot " + mount.source, errno));
  }
  return {};
}

Result<std::filesystem::path> ZfsStore::open_live(const DatasetName& dataset) {
  Turns::Turn turn(turns_, {{dataset}});
  ZED_TRY(auto record, glance(dataset));
  const auto& marker = record.marked.marker;
  if (marker && marker->made_dataset)
    return fail(ErrorCode::busy, dataset.str() + " has not been received yet");
  ZED_TRY(auto path, mount(record));
  return std::filesystem::path(path);
}

Result<std::filesystem::path> ZfsStore::files_of(const Record& record, const std::string& word) {
  ZED_TRY(auto top, mount(record));
  std::filesystem::path path = std::filesystem::path(top) / ".zfs" / "snapshot" / word;
  // Opening it makes the kernel mount it.
  disk::Fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder && errno == ENOENT) return no_snapshot(record.dataset.name.str() + "@" + word);
  if (!folder && errno == ELOOP)
    return fail(ErrorCode::io, "open " + path.string() + ": the kernel did not mount the snapshot",
                "it does so by `/usr/bin/env mount -t zfs`: both must be on this machine");
  if (!folder) return fail(net::system_error(errno, "open " + path.string()));
  return path;
}

Result<std::filesystem::path> ZfsStore::snapshot_path(const SnapshotName& snapshot) {
  ZED_TRY(auto record, glance(snapshot.dataset));
  const auto& marker = record.marked.marker;
  bool unsealed = marker && marker->kind == StreamKind::zfs && marker->word == snapshot.snapshot;
  if (unsealed) return no_snapshot(snapshot.str());
  return files_of(record, snapshot.snapshot);
}

Status ZfsStore::nothing_under_way(const Record& record) const {
  const DatasetName& name = record.dataset.name;
  ZED_CHECK(transfers_.none_into(name));
  if (record.is_receiving())
    return fail(ErrorCode::busy, name.str() + " has an unfinished receive",
                "finish it, or abort the receive first");
  for (const Snapshot& snapshot : record.dataset.snapshots)
    ZED_CHECK(transfers_.none_of(SnapshotName{name, snapshot.name}, snapshot.guid));
  return {};
}

Status ZfsStore::rename(const DatasetName& from, const DatasetName& to) {
  Turns::Turn turn(turns_, {{from, true}, {to, true}});
  ZED_CHECK(glance(from));
  if (to.empty()) return fail(ErrorCode::invalid, "a dataset needs a name");
  if (to.is_under(from.str()))
    return fail(ErrorCode::invalid, from.str() + " cannot move into itself");
  if (glance(to)) return exists(to.str());
  ZED_TRY(auto family, zfs_.datasets(zfs_.full(from), true));
  for (const auto& [full, facts] : family) {
    auto name = zfs_.relative(full);
    if (!name) continue;
    ZED_CHECK(DatasetName::parse(to.str() + name->str().substr(from.str().size())));
    ZED_TRY(auto record, look(*name));
    ZED_CHECK(nothing_under_way(record));
    ZED_CHECK(unmount_snapshots(*name));
  }
  auto renamed = zfs_.run("rename " + from.str() + " to " + to.str(),
                          {"rename", "-p", zfs_.full(from), zfs_.full(to)});
  return naming_users(status_of(std::move(renamed)), from);
}

Status ZfsStore::clone(const SnapshotName& origin, const DatasetName& dataset,
                       const Properties& properties) {
  ZED_CHECK(check_properties(properties));
  Turns::Turn turn(turns_, {{origin.dataset}, {dataset}});
  ZED_CHECK(find_snapshot(origin));
  Arguments arguments{"clone", "-o", "atime=off"};
  Zfs::add_options(arguments, properties);
  arguments.insert(arguments.end(), {zfs_.full(origin), zfs_.full(dataset)});
  return make_below(dataset, "clone " + origin.str() + " as " + dataset.str(), arguments);
}

Status ZfsStore::promote(const DatasetName& clone) {
  ZED_TRY(auto first_look, glance(clone));
  if (first_look.origin.empty()) return {};
  auto parent = zfs_.relative(first_look.origin.substr(0, first_look.origin.find('@')));
  if (!parent)
    return fail(ErrorCode::refused, clone.str() + " is a clone of " + first_look.origin +
                                        ", which is not among this store's datasets");
  Turns::Turn turn(turns_, {{clone}, {*parent}});
  for (const DatasetName& name : {clone, *parent}) {
    ZED_TRY(auto record, look(name));
    ZED_CHECK(nothing_under_way(record));
    ZED_CHECK(unmount_snapshots(name));
  }
  return ignoring(zfs_.run("promote " + clone.str(), {"promote", zfs_.full(clone)}),
                  "not a cloned filesystem");
}

Status ZfsStore::revert_live(const DatasetName& dataset) {
  Turns::Turn turn(turns_, {{dataset}});
  ZED_TRY(auto record, look(dataset));
  ZED_CHECK(transfers_.none_into(dataset));
  if (record.is_receiving())
    return fail(ErrorCode::busy, dataset.str() + " has an unfinished receive",
                "finish it, or abort the receive first");
  const Snapshot* newest = record.dataset.newest();
  if (newest == nullptr && record.origin.empty())
    return fail(ErrorCode::not_found, dataset.str() + " has no snapshot to return to");
  if (newest == nullptr && !record.dataset.changed) return {};
  if (newest == nullptr)
    return fail(ErrorCode::unsupported,
                dataset.str() +
                    " is a clone without a snapshot of its own: OpenZFS cannot return to " +
                    record.origin,
                "destroy it and clone again");
  // Pages that a process has mapped would survive the rollback (OpenZFS issues 2186 and 10931).
  if (!record.dataset.readonly) ZED_CHECK(unmount(record));
  Status done = roll_back("revert the files of " + dataset.str(), dataset, newest->name);
  if (record.mounted && !record.dataset.readonly) ZED_CHECK(mount(record));
  if (!done || !record.mounted) return done;
  ZED_CHECK(zfs_.sync());
  ZED_TRY(auto reverted, glance(dataset));
  inventory_.take_as_unchanged(reverted);
  return {};
}

Status ZfsStore::destroy(const DatasetName& dataset) {
  Turns::Turn turn(turns_, {{dataset}});
  ZED_TRY(auto record, look(dataset));
  ZED_CHECK(nothing_under_way(record));
  ZED_TRY(auto family, zfs_.datasets(zfs_.full(dataset), true));
  std::string what = "destroy " + dataset.str();
  if (family.size() > 1)
    return fail(ErrorCode::busy, what + ": it has the child " + std::next(family.begin())->first,
                "destroy the children first");
  if (!privileged_) return status_of(zfs_.run(what, {"destroy", "-r", zfs_.full(dataset)}));
  ZED_CHECK(unmount(record));
  return destroy_whole(what, dataset);
}

// ---- snapshots ----------------------------------------------------------------------------------

namespace {

Status is_new(const Record& record, const std::string& word, const Properties& properties) {
  const DatasetName& name = record.dataset.name;
  ZED_CHECK(SnapshotName::of(name, word));
  ZED_CHECK(check_properties(properties));
  if (record.dataset.find(word) != nullptr) return exists(name.str() + "@" + word);
  auto id = id_in(properties);
  const Snapshot* other = id ? record.dataset.find(*id) : nullptr;
  if (other != nullptr)
    return fail(ErrorCode::exists,
                name.str() + "@" + other->name + " has the id " + id->str() + " already");
  return {};
}

}  // namespace

Result<Snapshot> ZfsStore::snapshot(const SnapshotName& name, const Properties& properties) {
  Turns::Turn turn(turns_, {{name.dataset}});
  ZED_TRY(auto record, look(name.dataset));
  const auto& marker = record.marked.marker;
  if (marker && (marker->made_dataset || marker->phase != Marker::Phase::receiving))
    return fail(ErrorCode::busy, name.dataset.str() + " has an unfinished receive",
                "finish it, or abort the receive first");
  ZED_CHECK(is_new(record, name.snapshot, properties));
  Arguments arguments{"snapshot"};
  Zfs::add_options(arguments, properties);
  arguments.push_back(zfs_.full(name));
  auto taken = zfs_.run("snapshot " + name.str(), std::move(arguments));
  if (!taken && taken.error().code == ErrorCode::exists) return exists(name.str());
  if (!taken) return fail(std::move(taken).error());
  return find_snapshot(name);
}

Result<Snapshot> ZfsStore::commit_checkpoint(const env::CommitRequest& request) {
  Turns::Turn turn(turns_, {{request.dataset}});
  ZED_TRY(auto record, look(request.dataset));
  const Dataset& dataset = record.dataset;
  const std::string& name = request.dataset.str();
  if (dataset.uuid != request.uuid)
    return fail(ErrorCode::stale,
                name + ": its uuid is " + dataset.uuid.str() + ", not " + request.uuid.str());
  const Snapshot* parent = dataset.newest_checkpoint();
  auto newest = parent != nullptr ? std::optional(parent->id) : std::nullopt;
  if (newest != request.parent)
    return fail(ErrorCode::stale, name + ": its newest checkpoint is " +
                                      (newest ? newest->str() : "none") + ", not " +
                                      (request.parent ? request.parent->str() : "none"));
  if (!id_in(request.snapshot_properties))
    return fail(ErrorCode::invalid, "a checkpoint of " + name + " needs an id");
  ZED_CHECK(check_properties(request.dataset_changes));
  Transaction transaction;
  transaction.dataset = request.dataset;
  transaction.expected = {{property::uuid, request.uuid.str()},
                          {property::generation, request.generation.str()},
                          {property::timeline, request.timeline.str()}};
  transaction.snapshots = Transaction::Snapshots::take;
  transaction.snapshot = request.snapshot;
  transaction.snapshot_properties = request.snapshot_properties;
  if (parent != nullptr) {
    transaction.parent = parent->name;
    transaction.parent_guid = parent->guid;
  }
  transaction.changes = request.dataset_changes;
  // Stale comes before "exists": an attempt that was fenced off must not try another name.
  if (auto fresh = is_new(record, request.snapshot, request.snapshot_properties); !fresh) {
    Transaction only_compare = transaction;
    only_compare.snapshots = Transaction::Snapshots::none;
    only_compare.changes.clear();
    only_compare.snapshot_properties.clear();
    ZED_CHECK(apply("commit a checkpoint of " + name, only_compare));
    return fail(std::move(fresh).error());
  }
  ZED_CHECK(apply("commit a checkpoint of " + name, transaction));
  return find_snapshot({request.dataset, request.snapshot});
}

Status ZfsStore::hold(const SnapshotName& snapshot, const std::string& tag) {
  return ignoring(
      zfs_.run("hold " + snapshot.str(), {"hold", tag_prefix + tag, zfs_.full(snapshot)}),
      "tag already exists");
}

Status ZfsStore::release(const SnapshotName& snapshot, const std::string& tag) {
  return ignoring(
      zfs_.run("release " + snapshot.str(), {"release", tag_prefix + tag, zfs_.full(snapshot)}),
      "no such tag");
}

Status ZfsStore::bookmark(const SnapshotName& snapshot, const NodeName& peer) {
  Turns::Turn turn(turns_, {{snapshot.dataset}});
  ZED_TRY(auto found, find_snapshot(snapshot));
  const std::string full = zfs_.full(snapshot.dataset);
  const std::string word = bookmark_word(peer, found.id);
  ZED_TRY(auto there, zfs_.bookmarks(full, false));
  const bool has_it = std::any_of(there.begin(), there.end(), [&](const BookmarkRow& row) {
    return row.word == word && row.bookmark.guid == found.guid;
  });
  const std::string what = "bookmark " + snapshot.str() + " for " + peer.str();
  if (!has_it) ZED_CHECK(zfs_.run(what, {"bookmark", zfs_.full(snapshot), full + "#" + word}));
  // The new one first: at no moment is there none. Old ones of peers that are gone go as well.
  std::size_t left = there.size() + 1;
  for (const BookmarkRow& row : there) {
    const bool is_older = row.bookmark.peer == peer.str() && row.word != word;
    if (!is_older && left <= most_bookmarks) continue;
    if (row.word == word) continue;
    ZED_CHECK(zfs_.run(what + ", dropping an older one", {"destroy", full + "#" + row.word}));
    --left;
  }
  return {};
}

Status ZfsStore::forget_bookmark(const DatasetName& dataset, const NodeName& peer) {
  Turns::Turn turn(turns_, {{dataset}});
  const std::string full = zfs_.full(dataset);
  ZED_TRY(auto there, zfs_.bookmarks(full, false));
  for (const BookmarkRow& row : there)
    if (row.bookmark.peer == peer.str())
      ZED_CHECK(zfs_.run("forget what " + peer.str() + " has of " + dataset.str(),
                         {"destroy", full + "#" + row.word}));
  return {};
}

Result<BookmarkRow> ZfsStore::find_bookmark(const DatasetName& dataset,
                                            const CheckpointId& id) const {
  ZED_TRY(auto there, zfs_.bookmarks(zfs_.full(dataset), false));
  for (BookmarkRow& row : there)
    if (row.bookmark.id == id) return std::move(row);
  return no_snapshot("or bookmark with id " + id.str() + " of " + dataset.str());
}

Status ZfsStore::drop_newer_bookmarks(const DatasetName& dataset) {
  const std::string full = zfs_.full(dataset);
  ZED_TRY(auto bookmarks, zfs_.bookmarks(full, false));
  if (bookmarks.empty()) return {};
  ZED_TRY(auto snapshots, zfs_.snapshots(full));
  const std::uint64_t newest = snapshots.empty() ? 0 : snapshots.back().createtxg;
  for (const BookmarkRow& row : bookmarks)
    if (row.bookmark.createtxg > newest)
      ZED_CHECK(
          zfs_.run("drop a bookmark of " + dataset.str(), {"destroy", full + "#" + row.word}));
  return {};
}

Status ZfsStore::destroy_snapshot(const SnapshotName& snapshot) {
  Turns::Turn turn(turns_, {{snapshot.dataset}});
  ZED_TRY(auto found, find_snapshot(snapshot));
  ZED_CHECK(transfers_.none_of(snapshot, found.guid));
  ZED_CHECK(transfers_.none_into(snapshot.dataset));
  // A name with nothing after '@' would mean another thing (sanoid issue 979).
  ZED_ASSERT(is_snapshot_word(snapshot.snapshot));
  ZED_CHECK(zfs_.run("destroy " + snapshot.str(), {"destroy", zfs_.full(snapshot)}));
  return drop_newer_bookmarks(snapshot.dataset);
}

}  // namespace zed::store::zfs
