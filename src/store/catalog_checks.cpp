// What a catalog refuses, and why.

#include "store/catalog_parts.hpp"

namespace zed::store {

Status Catalog::may_create(const DatasetName& name, const Properties& properties) const {
  ZED_CHECK(check_properties(properties));
  if (name.empty()) return fail(ErrorCode::invalid, "a dataset needs a name");
  if (datasets_.contains(name)) return taken(name.str());
  return {};
}

Status Catalog::check_new_snapshot(const DatasetName& name, const DatasetRecord& record,
                                   const std::string& word, const Properties& properties) const {
  ZED_CHECK(SnapshotName::of(name, word));
  ZED_CHECK(check_properties(properties));
  auto id = id_of(properties);
  for (const SnapshotRef& other : record.snapshots) {
    if (other->snapshot.name == word) return taken(name.str() + "@" + word);
    if (id && other->snapshot.id == *id)
      return fail(ErrorCode::exists, name.str() + "@" + other->snapshot.name + " has the id " +
                                         id->str() + " already");
  }
  return {};
}

Status Catalog::may_snapshot(const SnapshotName& name, const Properties& properties) const {
  ZED_TRY(auto record, find(name.dataset));
  if (record->partial && record->partial->made_dataset) return receiving(name.dataset);
  return check_new_snapshot(name.dataset, *record, name.snapshot, properties);
}

Status Catalog::may_commit(const env::CommitRequest& request) const {
  const DatasetName& name = request.dataset;
  ZED_TRY(auto record, find(name));
  if (record->uuid != request.uuid)
    return stale(name, "its uuid is " + record->uuid.str() + ", not " + request.uuid.str());
  if (auto now = generation_of(*record, property::generation); now != request.generation)
    return stale(name, "the attempt of generation " + request.generation.brief() +
                           " does not own it; " + (now ? now->brief() : "none") + " does");
  if (auto now = generation_of(*record, property::timeline); now != request.timeline)
    return stale(name, "timeline " + request.timeline.brief() + " was left; the current one is " +
                           (now ? now->brief() : "none"));
  const Snapshot* parent = newest_checkpoint(*record);
  auto newest = parent != nullptr ? std::optional(parent->id) : std::nullopt;
  if (newest != request.parent)
    return stale(name, "its newest checkpoint is " + text_of(newest) + ", not " +
                           text_of(request.parent));
  if (!id_of(request.snapshot_properties))
    return fail(ErrorCode::invalid, "a checkpoint of " + name.str() + " needs an id");
  ZED_CHECK(check_properties(request.dataset_changes));
  return may_snapshot({name, request.snapshot}, request.snapshot_properties);
}

Status Catalog::may_clone(const SnapshotName& origin, const DatasetName& name,
                          const Properties& properties) const {
  ZED_CHECK(find(origin));
  return may_create(name, properties);
}

Status Catalog::may_destroy(const DatasetName& name) const {
  ZED_TRY(auto record, find(name));
  auto busy = [&](const std::string& why, const std::string& hint) {
    return fail(ErrorCode::busy, name.str() + " cannot be destroyed: " + why, hint);
  };
  if (record->partial) return receiving(name);
  for (const auto& [other, unused] : datasets_)
    if (other != name && other.is_under(name.str()))
      return busy("it has the child " + other.str(), "destroy the children first");
  for (const SnapshotRef& snapshot : record->snapshots)
    if (!snapshot->holds.empty())
      return busy("@" + snapshot->snapshot.name + " is held by " + *snapshot->holds.begin(),
                  "release the hold first");
  if (auto clones = clones_of(*record); !clones.empty())
    return busy(clones.front().str() + " is a clone of a snapshot of it",
                "promote or destroy the clone first");
  return {};
}

Status Catalog::may_destroy(const SnapshotName& name) const {
  ZED_TRY(auto record, find(name));
  if (!record->holds.empty())
    return fail(ErrorCode::busy, name.str() + " is held by " + *record->holds.begin(),
                "release the hold first");
  for (const auto& [clone, other] : datasets_)
    if (other->origin == record->snapshot.guid)
      return fail(ErrorCode::busy, name.str() + " is the origin of " + clone.str(),
                  "promote or destroy the clone first");
  return {};
}

Status Catalog::may_rename(const DatasetName& from, const DatasetName& to) const {
  ZED_CHECK(find(from));
  if (to.empty()) return fail(ErrorCode::invalid, "a dataset needs a name");
  if (datasets_.contains(to)) return taken(to.str());
  if (to.is_under(from.str()))
    return fail(ErrorCode::invalid, from.str() + " cannot move into itself");
  for (const auto& [name, record] : datasets_) {
    if (!name.is_under(from.str())) continue;
    if (record->partial) return receiving(name);
    ZED_CHECK(DatasetName::parse(to.str() + name.str().substr(from.str().size())));
  }
  return {};
}

Status Catalog::may_receive(const env::ReceiveRequest& request) const {
  const DatasetName& name = request.dataset;
  if (!id_of(request.snapshot_properties))
    return fail(ErrorCode::invalid, "a received snapshot of " + name.str() + " needs an id");
  ZED_CHECK(check_properties(request.dataset_changes));
  const DatasetRef* found = datasets_.find(name);
  if (found == nullptr) {
    if (request.base) return not_found(name);
    ZED_CHECK(may_create(name, {}));
    return check_new_snapshot(name, {}, request.snapshot, request.snapshot_properties);
  }
  const DatasetRecord& record = **found;
  const SnapshotRecord* newest = record.newest();
  auto newest_id = newest != nullptr ? std::optional(newest->snapshot.id) : std::nullopt;
  if (newest_id != request.base)
    return stale(name, "its newest snapshot is " + text_of(newest_id) +
                           ", but the stream's base is " + text_of(request.base));
  return check_new_snapshot(name, record, request.snapshot, request.snapshot_properties);
}

Status Catalog::may_revert(const DatasetName& name) const {
  ZED_TRY(auto record, find(name));
  if (record->partial) return receiving(name);
  if (content_of(*record) == nullptr)
    return fail(ErrorCode::not_found, name.str() + " has no snapshot to return to");
  return {};
}

}  // namespace zed::store
