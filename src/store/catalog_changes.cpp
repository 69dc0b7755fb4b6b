// What changes a catalog. Each checks first, so that after an error nothing has changed.

#include <algorithm>

#include "base/text.hpp"
#include "store/catalog_parts.hpp"

namespace zed::store {
namespace {

/// Names of datasets that are gone, remembered for cursors.
constexpr std::size_t most_gone = 10'000;

}  // namespace

std::vector<DatasetName> Catalog::missing_parents(const DatasetName& name) const {
  std::vector<DatasetName> missing;
  for (std::string parent = name.parent(); !parent.empty();) {
    auto parsed = DatasetName::parse(parent);
    ZED_ASSERT(parsed.has_value());  // a prefix of a legal name is legal
    if (datasets_.contains(*parsed)) break;
    parent = parsed->parent();
    missing.push_back(std::move(*parsed));
  }
  return missing;
}

void Catalog::replace(const DatasetName& name, DatasetRecord record) {
  record.changed_at = ++counter_;
  datasets_.insert_or_assign(name, std::make_shared<const DatasetRecord>(std::move(record)));
  touched_.push_back(name);
}

void Catalog::insert(const DatasetName& name, DatasetRecord record) {
  for (const DatasetName& parent : missing_parents(name)) {
    gone_.erase(parent);
    replace(parent, {});
  }
  gone_.erase(name);
  record.uuid = uuid_of(record.properties);
  replace(name, std::move(record));
}

void Catalog::bury(const DatasetName& name) {
  datasets_.erase(name);
  touched_.push_back(name);
  gone_.insert_or_assign(name, ++counter_);
  if (gone_.size() <= most_gone) return;
  // Too many to remember: older cursors name everything instead.
  gone_.clear();
  known_from_ = counter_;
}

Status Catalog::create(const DatasetName& name, const Properties& properties,
                       const std::string& live) {
  ZED_CHECK(may_create(name, properties));
  DatasetRecord record;
  record.live = live;
  record.properties = properties;
  insert(name, std::move(record));
  return {};
}

Status Catalog::set(const DatasetName& name, const DatasetChange& wanted) {
  ZED_TRY(auto found, find(name));
  ZED_CHECK(check_properties(wanted.properties));
  DatasetRecord record = *found;
  change(record, wanted);
  replace(name, std::move(record));
  return {};
}

Snapshot Catalog::append(const DatasetName& name, DatasetRecord record, const std::string& word,
                         const Properties& properties, const NewSnapshot& made) {
  SnapshotRecord added;
  added.files = made.files;
  added.snapshot.name = word;
  added.snapshot.id = id_of(properties).value_or(id_from_guid(made.guid));
  added.snapshot.guid = made.guid;
  added.snapshot.createtxg = counter_ + 1;  // what replace() will make the counter
  added.snapshot.created = made.created;
  added.snapshot.used = made.used;
  added.snapshot.referenced = made.referenced;
  added.snapshot.properties = properties;
  Snapshot shown = added.snapshot;
  record.snapshots.push_back(std::make_shared<const SnapshotRecord>(std::move(added)));
  replace(name, std::move(record));
  return shown;
}

Result<Snapshot> Catalog::add_snapshot(const SnapshotName& name, const Properties& properties,
                                       const NewSnapshot& made, const DatasetChange& wanted) {
  ZED_CHECK(may_snapshot(name, properties));
  ZED_CHECK(check_properties(wanted.properties));
  DatasetRecord record = *datasets_.at(name.dataset);
  change(record, wanted);
  return append(name.dataset, std::move(record), name.snapshot, properties, made);
}

Result<Snapshot> Catalog::commit(const env::CommitRequest& request, const NewSnapshot& made) {
  ZED_CHECK(may_commit(request));
  DatasetRecord record = *datasets_.at(request.dataset);
  change(record, {request.dataset_changes, {}});
  return append(request.dataset, std::move(record), request.snapshot, request.snapshot_properties,
                made);
}

Status Catalog::change_holds(const SnapshotName& name, const std::string& tag, bool held) {
  ZED_TRY(auto found, find(name));
  if (!is_snapshot_word(tag))
    return fail(ErrorCode::invalid, "\"" + percent_encode(tag.substr(0, 80)) + "\" is no hold tag");
  if (found->holds.contains(tag) == held) return {};
  SnapshotRecord snapshot = *found;
  if (held)
    snapshot.holds.insert(tag);
  else
    snapshot.holds.erase(tag);
  DatasetRecord record = *datasets_.at(name.dataset);
  std::replace(record.snapshots.begin(), record.snapshots.end(), found,
               std::make_shared<const SnapshotRecord>(std::move(snapshot)));
  replace(name.dataset, std::move(record));
  return {};
}

Status Catalog::hold(const SnapshotName& name, const std::string& tag) {
  return change_holds(name, tag, true);
}

Status Catalog::release(const SnapshotName& name, const std::string& tag) {
  return change_holds(name, tag, false);
}

Status Catalog::rename(const DatasetName& from, const DatasetName& to) {
  ZED_CHECK(may_rename(from, to));
  std::vector<DatasetName> moving;
  for (const auto& [name, record] : datasets_)
    if (name.is_under(from.str())) moving.push_back(name);
  for (const DatasetName& name : moving) {
    auto target = DatasetName::parse(to.str() + name.str().substr(from.str().size()));
    ZED_ASSERT(target.has_value());  // may_rename() parsed it
    DatasetRecord record = *datasets_.at(name);
    bury(name);
    insert(*target, std::move(record));
  }
  return {};
}

Status Catalog::clone(const SnapshotName& origin, const DatasetName& name,
                      const Properties& properties) {
  ZED_CHECK(may_clone(origin, name, properties));
  ZED_TRY(auto snapshot, find(origin));
  DatasetRecord record;
  record.properties = properties;
  record.origin = snapshot->snapshot.guid;
  insert(name, std::move(record));
  return {};
}

Status Catalog::promote(const DatasetName& name) {
  ZED_TRY(auto found, find(name));
  if (!found->origin) return {};
  auto holder = holder_of(*found->origin);
  if (!holder) return not_found("that is the origin of " + name.str());
  DatasetRecord clone = *found;
  DatasetRecord parent = *datasets_.at(*holder);
  if (parent.partial) return receiving(*holder);
  auto is_origin = [&](const SnapshotRef& s) { return s->snapshot.guid == *clone.origin; };
  auto end = std::find_if(parent.snapshots.begin(), parent.snapshots.end(), is_origin) + 1;
  for (auto moving = parent.snapshots.begin(); moving != end; ++moving)
    for (const SnapshotRef& own : clone.snapshots)
      if (own->snapshot.name == (*moving)->snapshot.name)
        return taken(name.str() + "@" + own->snapshot.name);
  clone.snapshots.insert(clone.snapshots.begin(), parent.snapshots.begin(), end);
  parent.snapshots.erase(parent.snapshots.begin(), end);
  // The clone takes over what its parent came from; the parent now comes from the clone.
  auto grandparent = parent.origin;
  parent.origin = clone.origin;
  clone.origin = grandparent;
  replace(*holder, std::move(parent));
  replace(name, std::move(clone));
  return {};
}

Status Catalog::move_live(const DatasetName& name, const std::string& live) {
  ZED_TRY(auto found, find(name));
  DatasetRecord record = *found;
  record.live = live;
  replace(name, std::move(record));
  return {};
}

Status Catalog::destroy(const DatasetName& name) {
  ZED_CHECK(may_destroy(name));
  bury(name);
  return {};
}

Status Catalog::destroy(const SnapshotName& name) {
  ZED_CHECK(may_destroy(name));
  DatasetRecord record = *datasets_.at(name.dataset);
  drop_snapshot(record, name.snapshot);
  replace(name.dataset, std::move(record));
  return {};
}

void Catalog::forget(const SnapshotName& name) {
  auto found = find(name);
  if (!found) return;
  std::vector<DatasetName> clones;
  for (const auto& [other, record] : datasets_)
    if (record->origin == (*found)->snapshot.guid) clones.push_back(other);
  for (const DatasetName& clone : clones) {
    DatasetRecord record = *datasets_.at(clone);
    record.origin.reset();
    replace(clone, std::move(record));
  }
  DatasetRecord record = *datasets_.at(name.dataset);
  drop_snapshot(record, name.snapshot);
  replace(name.dataset, std::move(record));
}

Status Catalog::begin_receive(const env::ReceiveRequest& request, const std::string& files) {
  ZED_CHECK(may_receive(request));
  bool is_new = !datasets_.contains(request.dataset);
  DatasetRecord record = is_new ? DatasetRecord{} : *datasets_.at(request.dataset);
  if (is_new) record.readonly = true;
  CheckpointId id = *id_of(request.snapshot_properties);
  bool goes_on =
      record.partial && record.partial->snapshot == id && record.partial->base == request.base;
  if (goes_on) return {};
  bool made = is_new || (record.partial && record.partial->made_dataset);
  record.partial = PartialReceive{id, request.base, files, made};
  insert(request.dataset, std::move(record));
  return {};
}

Result<Snapshot> Catalog::finish_receive(const env::ReceiveRequest& request,
                                         const NewSnapshot& made) {
  ZED_TRY(auto found, find(request.dataset));
  ZED_CHECK(may_receive(request));
  DatasetRecord record = *found;
  CheckpointId id = *id_of(request.snapshot_properties);
  if (!record.partial || record.partial->snapshot != id || record.partial->base != request.base)
    return stale(request.dataset, "its receive was aborted meanwhile");
  record.partial.reset();
  record.live.clear();
  record.readonly = true;
  change(record, {request.dataset_changes, {}});
  return append(request.dataset, std::move(record), request.snapshot, request.snapshot_properties,
                made);
}

Status Catalog::abort_receive(const DatasetName& name) {
  const DatasetRef* found = datasets_.find(name);
  if (found == nullptr || !(*found)->partial) return {};
  DatasetRecord record = **found;
  bool made_dataset = record.partial->made_dataset;
  record.partial.reset();
  if (made_dataset)
    bury(name);
  else
    replace(name, std::move(record));
  return {};
}

}  // namespace zed::store
