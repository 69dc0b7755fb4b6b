#pragma once
// What a start does with places that the catalog does not name. Nothing whole is ever removed by
// it: a catalog that was damaged, or came from an older backup, would take its snapshots along.
//
// - A snapshot with its index, and live files of any kind, are moved to `lost`, with a warning. A
//   crash leaves one only between its last sync and the catalog's, or between the catalog's and the
//   rename that begins its removal; after damage it may be all that is left of somebody's work. A
//   person looks and removes it.
// - The rest is removed: places half made or half removed, empty live folders, receives.
// - A named snapshot whose index is gone or no index is moved to `lost` too: as it is, it can be
//   neither sent nor restored, and must not be counted as a copy.

#include <cstdint>
#include <optional>
#include <string>

#include "store/catalog.hpp"
#include "store/dir/disk.hpp"

namespace zed::store {

/// `root` is the store's open folder. `torn_at`: the byte from which on the catalog's file seems
/// torn. Gives the highest number of any place. Leaves alone what is not named as ours are. Errors:
/// `corrupt`, with nothing changed, if the catalog seems torn but lacks more than the one commit
/// that a crash can tear; `io`.
Result<std::uint64_t> sweep(int root, const Catalog& catalog, std::optional<std::uint64_t> torn_at);

/// Removes a place that nothing names any more, under another name, so that a crash on the way
/// leaves nothing that seems whole. Succeeds if it is not there.
Status remove_place(int root, const std::string& place);

}  // namespace zed::store
