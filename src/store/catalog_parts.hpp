#pragma once
// What the parts of the catalog share: reading identities out of properties, and the words of its
// errors. For catalog*.cpp only.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "store/catalog.hpp"

namespace zed::store {

inline DatasetId uuid_of(const Properties& properties) {
  auto found = properties.find(property::uuid);
  if (found == properties.end()) return {};
  return DatasetId::parse(found->second).value_or(DatasetId{});
}

inline std::optional<CheckpointId> id_of(const Properties& properties) {
  auto found = properties.find(property::id);
  return found == properties.end() ? std::nullopt : CheckpointId::parse(found->second);
}

inline void change(DatasetRecord& record, const DatasetChange& wanted) {
  for (const auto& [key, value] : wanted.properties) {
    if (value)
      record.properties[key] = *value;
    else
      record.properties.erase(key);
  }
  record.uuid = uuid_of(record.properties);
  record.readonly = wanted.readonly.value_or(record.readonly);
}

inline const Snapshot* newest_checkpoint(const DatasetRecord& record) {
  const Snapshot* newest = nullptr;
  std::uint64_t highest = 0;
  for (const SnapshotRef& candidate : record.snapshots) {
    auto seq = candidate->snapshot.seq();
    if (!seq || (newest != nullptr && *seq <= highest)) continue;
    newest = &candidate->snapshot;
    highest = *seq;
  }
  return newest;
}

inline std::optional<Generation> generation_of(const DatasetRecord& record, const char* key) {
  auto found = record.properties.find(key);
  return found == record.properties.end() ? std::nullopt : Generation::parse(found->second);
}

inline void drop_snapshot(DatasetRecord& record, const std::string& word) {
  std::erase_if(record.snapshots, [&](const SnapshotRef& s) { return s->snapshot.name == word; });
}

inline tl::unexpected<Error> not_found(const DatasetName& name) {
  return fail(ErrorCode::not_found, "there is no dataset " + name.str());
}
inline tl::unexpected<Error> not_found(const std::string& snapshot) {
  return fail(ErrorCode::not_found, "there is no snapshot " + snapshot);
}
inline tl::unexpected<Error> taken(const std::string& name) {
  return fail(ErrorCode::exists, name + " exists already");
}
inline tl::unexpected<Error> receiving(const DatasetName& name) {
  return fail(ErrorCode::busy, name.str() + " has an unfinished receive",
              "finish it, or abort the receive first");
}
inline tl::unexpected<Error> stale(const DatasetName& name, const std::string& why) {
  return fail(ErrorCode::stale, name.str() + ": " + why);
}

inline std::string text_of(const std::optional<CheckpointId>& id) {
  return id ? id->str() : "none";
}

}  // namespace zed::store
