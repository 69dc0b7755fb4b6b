#include "store/zfs/bookmarks.hpp"

#include <algorithm>

#include "store/zfs/errors.hpp"

namespace zed::store::zfs {
namespace {

/// What peers left that are gone for good stays bounded.
constexpr std::size_t most_bookmarks = 64;

}  // namespace

Status Bookmarks::keep(const DatasetName& dataset, const Snapshot& snapshot,
                       const NodeName& peer) const {
  const SnapshotName name{dataset, snapshot.name};
  const std::string full = zfs_.full(dataset);
  const std::string word = bookmark_word(peer, snapshot.id);
  ZED_TRY(auto there, zfs_.bookmarks(full, Reach::itself));
  const bool has_it = std::any_of(there.begin(), there.end(), [&](const BookmarkRow& row) {
    return row.word == word && row.bookmark.guid == snapshot.guid;
  });
  const std::string what = "bookmark " + name.str() + " for " + peer.str();
  if (!has_it) ZED_CHECK(zfs_.run(what, {"bookmark", zfs_.full(name), full + "#" + word}));
  // The new one first: at no moment is there none. Old ones of peers that are gone go as well.
  std::size_t left = there.size() + 1;
  for (const BookmarkRow& row : there) {
    const bool is_older = row.bookmark.peer == peer.str() && row.word != word;
    if (!is_older && left <= most_bookmarks) continue;
    if (row.word == word) continue;
    ZED_CHECK(drop(what + ", dropping an older one", dataset, row));
    --left;
  }
  return {};
}

Status Bookmarks::forget(const DatasetName& dataset, const NodeName& peer) const {
  ZED_TRY(auto there, zfs_.bookmarks(zfs_.full(dataset), Reach::itself));
  for (const BookmarkRow& row : there)
    if (row.bookmark.peer == peer.str())
      ZED_CHECK(drop("forget what " + peer.str() + " has of " + dataset.str(), dataset, row));
  return {};
}

Status Bookmarks::drop_newer_than_snapshots(const DatasetName& dataset) const {
  const std::string full = zfs_.full(dataset);
  ZED_TRY(auto bookmarks, zfs_.bookmarks(full, Reach::itself));
  if (bookmarks.empty()) return {};
  ZED_TRY(auto snapshots, zfs_.snapshots(full));
  const std::uint64_t newest = snapshots.empty() ? 0 : snapshots.back().createtxg;
  for (const BookmarkRow& row : bookmarks)
    if (row.bookmark.createtxg > newest)
      ZED_CHECK(drop("drop a bookmark of " + dataset.str(), dataset, row));
  return {};
}

Result<BookmarkRow> Bookmarks::find(const DatasetName& dataset, const CheckpointId& id) const {
  ZED_TRY(auto there, zfs_.bookmarks(zfs_.full(dataset), Reach::itself));
  for (BookmarkRow& row : there)
    if (row.bookmark.id == id) return std::move(row);
  return no_snapshot("or bookmark with id " + id.str() + " of " + dataset.str());
}

Status Bookmarks::drop(const std::string& what, const DatasetName& dataset,
                       const BookmarkRow& row) const {
  ZED_CHECK(zfs_.run(what, {"destroy", zfs_.full(dataset) + "#" + row.word}));
  return {};
}

}  // namespace zed::store::zfs
