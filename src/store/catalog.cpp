#include "store/catalog.hpp"

#include <algorithm>

#include "store/catalog_parts.hpp"

namespace zed::store {

// ---- reading ------------------------------------------------------------------------------------

Result<DatasetRef> Catalog::find(const DatasetName& name) const {
  const DatasetRef* found = datasets_.find(name);
  if (found == nullptr) return not_found(name);
  return *found;
}

Result<SnapshotRef> Catalog::find(const SnapshotName& name) const {
  ZED_TRY(auto record, find(name.dataset));
  for (const SnapshotRef& candidate : record->snapshots)
    if (candidate->snapshot.name == name.snapshot) return candidate;
  return not_found(name.str());
}

Result<SnapshotRef> Catalog::find(const DatasetName& name, const CheckpointId& id) const {
  ZED_TRY(auto record, find(name));
  for (const SnapshotRef& candidate : record->snapshots)
    if (candidate->snapshot.id == id) return candidate;
  return not_found("with id " + id.str() + " of " + name.str());
}

Dataset Catalog::show(const DatasetName& name, const DatasetRecord& record) const {
  Dataset shown;
  shown.name = name;
  shown.uuid = record.uuid;
  shown.readonly = record.readonly;
  shown.receiving = record.partial.has_value();
  shown.properties = record.properties;
  shown.snapshots.reserve(record.snapshots.size());
  for (const SnapshotRef& snapshot : record.snapshots) {
    shown.snapshots.push_back(snapshot->snapshot);
    shown.used += snapshot->snapshot.used;
  }
  return shown;
}

std::vector<DatasetName> Catalog::changed_after(std::uint64_t counter) const {
  std::vector<DatasetName> names;
  bool all = counter < known_from_ || counter > counter_;
  for (const auto& [name, record] : datasets_)
    if (all || record->changed_at > counter) names.push_back(name);
  for (const auto& [name, when] : gone_)
    if (all || when > counter) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<DatasetName> Catalog::clones_of(const DatasetRecord& record) const {
  std::set<std::uint64_t> guids;
  for (const SnapshotRef& snapshot : record.snapshots)
    guids.insert(snapshot->snapshot.guid);
  std::vector<DatasetName> clones;
  for (const auto& [name, other] : datasets_)
    if (other->origin && guids.contains(*other->origin)) clones.push_back(name);
  return clones;
}

std::optional<DatasetName> Catalog::holder_of(std::uint64_t guid) const {
  for (const auto& [name, record] : datasets_)
    for (const SnapshotRef& snapshot : record->snapshots)
      if (snapshot->snapshot.guid == guid) return name;
  return std::nullopt;
}

SnapshotRef Catalog::content_of(const DatasetRecord& record) const {
  if (!record.snapshots.empty()) return record.snapshots.back();
  if (!record.origin) return nullptr;
  for (const auto& [name, other] : datasets_)
    for (const SnapshotRef& snapshot : other->snapshots)
      if (snapshot->snapshot.guid == *record.origin) return snapshot;
  return nullptr;
}
// ---- storing ------------------------------------------------------------------------------------

Status Catalog::restore(const DatasetName& name, DatasetRecord record) {
  auto corrupt = [&](const std::string& why) {
    return fail(ErrorCode::corrupt, "dataset " + name.str() + " " + why);
  };
  if (datasets_.contains(name)) return corrupt("is listed twice");
  ZED_CHECK(check_properties(record.properties));
  record.uuid = uuid_of(record.properties);
  std::set<std::string> words;
  std::uint64_t last = 0;
  for (const SnapshotRef& snapshot : record.snapshots) {
    if (!words.insert(snapshot->snapshot.name).second)
      return corrupt("has two snapshots named " + snapshot->snapshot.name);
    if (snapshot->snapshot.createtxg <= last) return corrupt("has snapshots out of order");
    last = snapshot->snapshot.createtxg;
  }
  datasets_.insert_or_assign(name, std::make_shared<const DatasetRecord>(std::move(record)));
  return {};
}

}  // namespace zed::store
