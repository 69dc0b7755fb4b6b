#include "store/zfs/store.hpp"

#include "store/catalog.hpp"
#include "store/zfs/errors.hpp"

namespace zed::store::zfs {
namespace {

constexpr char tag_prefix[] = "zed:";

tl::unexpected<Error> exists(const std::string& name) {
  return fail(ErrorCode::exists, name + " exists already");
}

tl::unexpected<Error> unfinished_receive(const DatasetName& dataset) {
  return fail(ErrorCode::busy, dataset.str() + " has an unfinished receive",
              "finish it, or abort the receive first");
}

Status status_of(Result<std::string> result) {
  return result ? Status() : Status(fail(std::move(result).error()));
}

}  // namespace

std::optional<CheckpointId> id_in(const Properties& properties) {
  auto found = properties.find(property::id);
  return found == properties.end() ? std::nullopt : CheckpointId::parse(found->second);
}

ZfsStore::ZfsStore(std::unique_ptr<Commands> commands, std::string root, Version version,
                   bool privileged, std::string instance, disk::Fd lock)
    : zfs_(std::move(commands), std::move(root)), version_(std::move(version)),
      privileged_(privileged), inventory_(zfs_), bookmarks_(zfs_), mounting_(zfs_, privileged),
      transactions_(zfs_, privileged), work_(zfs_), lock_(std::move(lock)),
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
  return inventory_.look(dataset, Freshness::seconds_old);
}

Result<Record> ZfsStore::look_exactly(const DatasetName& dataset) {
  return inventory_.look(dataset, Freshness::exact);
}

Result<std::vector<Dataset>> ZfsStore::list() {
  ZED_TRY(auto records, inventory_.all(Freshness::exact));
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

Result<env::Space> ZfsStore::space() {
  ZED_TRY(auto facts, zfs_.datasets(zfs_.root(), Reach::itself));
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
  return transactions_.apply("set properties of " + dataset.str(), transaction);
}

Status ZfsStore::set_readonly(const DatasetName& dataset, bool readonly) {
  Turns::Turn turn(turns_, {{dataset}});
  if (!readonly) ZED_CHECK(transfers_.none_into(dataset));
  const char* value = readonly ? "readonly=on" : "readonly=off";
  return status_of(zfs_.run("set " + std::string(value) + " on " + dataset.str(),
                            {"set", value, zfs_.full(dataset)}));
}

Result<std::filesystem::path> ZfsStore::open_live(const DatasetName& dataset) {
  Turns::Turn turn(turns_, {{dataset}});
  ZED_TRY(auto record, glance(dataset));
  const auto& marker = record.marked.marker;
  if (marker && marker->made_dataset)
    return fail(ErrorCode::busy, dataset.str() + " has not been received yet");
  ZED_TRY(auto path, mounting_.mount(record));
  return std::filesystem::path(path);
}

Result<std::filesystem::path> ZfsStore::snapshot_path(const SnapshotName& snapshot) {
  ZED_TRY(auto record, glance(snapshot.dataset));
  const auto& marker = record.marked.marker;
  bool unsealed = marker && marker->kind == StreamKind::zfs && marker->word == snapshot.snapshot;
  if (unsealed) return no_snapshot(snapshot.str());
  return mounting_.snapshot_files(record, snapshot.snapshot);
}

Status ZfsStore::nothing_under_way(const Record& record) const {
  const DatasetName& name = record.dataset.name;
  ZED_CHECK(transfers_.none_into(name));
  if (record.is_receiving()) return unfinished_receive(name);
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
  ZED_TRY(auto family, zfs_.datasets(zfs_.full(from), Reach::tree));
  for (const auto& [full, facts] : family) {
    auto name = zfs_.relative(full);
    if (!name) continue;
    ZED_CHECK(DatasetName::parse(to.str() + name->str().substr(from.str().size())));
    ZED_TRY(auto record, look(*name));
    ZED_CHECK(nothing_under_way(record));
    ZED_CHECK(mounting_.unmount_snapshots(*name));
  }
  auto renamed = zfs_.run("rename " + from.str() + " to " + to.str(),
                          {"rename", "-p", zfs_.full(from), zfs_.full(to)});
  return mounting_.naming_users(status_of(std::move(renamed)), from);
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
    ZED_CHECK(mounting_.unmount_snapshots(name));
  }
  return ignoring(zfs_.run("promote " + clone.str(), {"promote", zfs_.full(clone)}),
                  "not a cloned filesystem");
}

Status ZfsStore::revert_live(const DatasetName& dataset) {
  Turns::Turn turn(turns_, {{dataset}});
  ZED_TRY(auto record, look(dataset));
  ZED_CHECK(transfers_.none_into(dataset));
  if (record.is_receiving()) return unfinished_receive(dataset);
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
  if (!record.dataset.readonly) ZED_CHECK(mounting_.unmount(record));
  Status done = roll_back("revert the files of " + dataset.str(), dataset, newest->name);
  if (record.mounted && !record.dataset.readonly) ZED_CHECK(mounting_.mount(record));
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
  ZED_TRY(auto family, zfs_.datasets(zfs_.full(dataset), Reach::tree));
  std::string what = "destroy " + dataset.str();
  if (family.size() > 1)
    return fail(ErrorCode::busy, what + ": it has the child " + std::next(family.begin())->first,
                "destroy the children first");
  if (!privileged_) return status_of(zfs_.run(what, {"destroy", "-r", zfs_.full(dataset)}));
  ZED_CHECK(mounting_.unmount(record));
  return transactions_.destroy_whole(what, dataset);
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

Transaction checkpoint_of(const env::CommitRequest& request, const Snapshot* parent) {
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
  return transaction;
}

}  // namespace

Result<Snapshot> ZfsStore::snapshot(const SnapshotName& name, const Properties& properties) {
  Turns::Turn turn(turns_, {{name.dataset}});
  ZED_TRY(auto record, look(name.dataset));
  const auto& marker = record.marked.marker;
  if (marker && (marker->made_dataset || marker->phase != Marker::Phase::receiving))
    return unfinished_receive(name.dataset);
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
  const Transaction transaction = checkpoint_of(request, parent);
  // Stale comes before "exists": an attempt that was fenced off must not try another name.
  if (auto fresh = is_new(record, request.snapshot, request.snapshot_properties); !fresh) {
    Transaction only_compare = transaction;
    only_compare.snapshots = Transaction::Snapshots::none;
    only_compare.changes.clear();
    only_compare.snapshot_properties.clear();
    ZED_CHECK(transactions_.apply("commit a checkpoint of " + name, only_compare));
    return fail(std::move(fresh).error());
  }
  ZED_CHECK(transactions_.apply("commit a checkpoint of " + name, transaction));
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
  return bookmarks_.keep(snapshot.dataset, found, peer);
}

Status ZfsStore::forget_bookmark(const DatasetName& dataset, const NodeName& peer) {
  Turns::Turn turn(turns_, {{dataset}});
  return bookmarks_.forget(dataset, peer);
}

Status ZfsStore::destroy_snapshot(const SnapshotName& snapshot) {
  Turns::Turn turn(turns_, {{snapshot.dataset}});
  ZED_TRY(auto found, find_snapshot(snapshot));
  ZED_CHECK(transfers_.none_of(snapshot, found.guid));
  ZED_CHECK(transfers_.none_into(snapshot.dataset));
  // A name with nothing after '@' would mean another thing (sanoid issue 979).
  ZED_ASSERT(is_snapshot_word(snapshot.snapshot));
  ZED_CHECK(zfs_.run("destroy " + snapshot.str(), {"destroy", zfs_.full(snapshot)}));
  return bookmarks_.drop_newer_than_snapshots(snapshot.dataset);
}

}  // namespace zed::store::zfs
