#include "repl/step.hpp"

#include <algorithm>

namespace zed::repl {
namespace {

using Position = std::vector<Snapshot>::const_iterator;

/// The newest snapshot of the source that the target has too, although perhaps only a bookmark
/// remembers it there, and the first of the source that is newer.
struct Common {
  CheckpointId id;
  std::uint64_t createtxg = 0;
  Position next;
};

/// A bookmark serves a zfs stream alone, and that needs the same guid at the other end.
bool remembers(const Bookmark& bookmark, const Dataset& target) {
  const Snapshot* there = target.find(bookmark.id);
  return there != nullptr && there->guid == bookmark.guid && bookmark.guid != 0;
}

std::optional<Common> newest_common(const Dataset& source, const Dataset& target) {
  std::optional<Common> common;
  for (auto at = source.snapshots.end(); !common && at != source.snapshots.begin();) {
    --at;
    if (target.find(at->id) != nullptr) common = Common{at->id, at->createtxg, at + 1};
  }
  for (const Bookmark& bookmark : source.bookmarks) {
    if (common && bookmark.createtxg <= common->createtxg) continue;
    if (!remembers(bookmark, target)) continue;
    auto next = std::find_if(source.snapshots.begin(), source.snapshots.end(),
                             [&](const Snapshot& s) { return s.createtxg > bookmark.createtxg; });
    common = Common{bookmark.id, bookmark.createtxg, next};
  }
  return common;
}

/// The first from `at` on that is wanted. The newest always is: without it a replica is behind.
const Snapshot& oldest_wanted(const Dataset& source, Position at,
                              const std::set<CheckpointId>& skip) {
  auto newest = source.snapshots.end() - 1;
  return *std::find_if(at, newest, [&](const Snapshot& s) { return !skip.contains(s.id); });
}

std::vector<std::string> history_of(const Dataset& dataset) {
  std::vector<std::string> lines;
  for (const Snapshot& snapshot : dataset.snapshots)
    lines.push_back(snapshot.name + " (" + snapshot.id.str().substr(0, 8) + ")");
  return lines;
}

ReplicationStep conflict(const Dataset& source, const Dataset& target, std::string why) {
  return Conflict{history_of(source), history_of(target), std::move(why)};
}

/// An interrupted first zfs receive leaves a dataset without properties, so without an identity.
bool is_another_dataset(const Dataset& source, const Dataset& target) {
  return target.uuid != source.uuid && !(target.uuid.is_nil() && target.snapshots.empty());
}

}  // namespace

ReplicationStep replication_step(const Dataset& source, const Dataset* target,
                                 const std::set<CheckpointId>& skip) {
  if (source.snapshots.empty()) return UpToDate{};
  auto first = source.snapshots.begin();
  if (target == nullptr) return Full{oldest_wanted(source, first, skip).id};
  if (is_another_dataset(source, *target))
    return conflict(source, *target, "the target is another dataset of that name");
  if (target->snapshots.empty()) {
    CheckpointId oldest = oldest_wanted(source, first, skip).id;
    if (target->receiving) return Resume{std::nullopt, oldest};
    return Full{oldest};
  }
  auto common = newest_common(source, *target);
  if (!common) return conflict(source, *target, "no snapshot in common");
  if (target->newest()->id != common->id) return FollowHome{common->id};
  if (common->next == source.snapshots.end()) return UpToDate{};
  CheckpointId next = oldest_wanted(source, common->next, skip).id;
  if (target->receiving) return Resume{common->id, next};
  return Incremental{common->id, next};
}

std::vector<CheckpointId> missing_snapshots(const Dataset& source, const Dataset* target,
                                            const std::set<CheckpointId>& skip) {
  std::vector<CheckpointId> missing;
  if (source.snapshots.empty()) return missing;
  auto at = source.snapshots.begin();
  if (target != nullptr && !target->snapshots.empty()) {
    auto common = newest_common(source, *target);
    if (!common) return missing;
    at = common->next;
  }
  for (; at != source.snapshots.end(); ++at)
    if (!skip.contains(at->id) || at + 1 == source.snapshots.end()) missing.push_back(at->id);
  return missing;
}

StreamKind stream_kind(StoreKind source_store, StoreKind target_store, const Dataset& source,
                       const Dataset* target, const std::optional<CheckpointId>& base) {
  if (source_store != StoreKind::zfs || target_store != StoreKind::zfs) return StreamKind::files;
  bool is_empty = target == nullptr || target->snapshots.empty();
  if (!base) return is_empty ? StreamKind::zfs : StreamKind::files;
  const Snapshot* here = source.find(*base);
  const Snapshot* there = target != nullptr ? target->find(*base) : nullptr;
  const Bookmark* kept = source.find_bookmark(*base);
  if (here == nullptr && kept != nullptr && target != nullptr && remembers(*kept, *target))
    return StreamKind::zfs;
  bool same = here != nullptr && there != nullptr && here->guid == there->guid && here->guid != 0;
  return same ? StreamKind::zfs : StreamKind::files;
}

}  // namespace zed::repl
