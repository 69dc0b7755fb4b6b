#pragma once
// FileSpace: where a catalog's files lie. The dir store has folders, the simulated one has memory;
// everything else about them is store/catalog_store.hpp, once.
//
// Files lie in places, named by the space itself ("live/7-train-001") and never reused: a place is
// filled before the catalog that names it is kept, and dropped after the catalog that no longer
// names it is kept. So a crash leaves at most places that nothing names, and the catalog is the
// only thing that must change atomically.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "env/store.hpp"
#include "store/catalog.hpp"
#include "store/files/manifest.hpp"
#include "store/files/receiver.hpp"
#include "store/files/sender.hpp"

namespace zed::store {

enum class PlaceKind { live, snapshot, receiving };

struct MadeFiles {
  Bytes used;        ///< written anew, shared with no other snapshot
  Bytes referenced;  ///< sum of the files' sizes
};

struct LiveState {
  bool changed = false;  ///< since the snapshot, as far as can be told
  Bytes used;
};

/// What a snapshot is taken from. Empty names: none.
struct SnapshotSource {
  std::string live;
  std::string content;   ///< the snapshot that stands for the live files where `live` is empty
  std::string previous;  ///< the newest snapshot: what did not change since may be shared with it
};

/// The net effect of one or more operations on a catalog.
struct CatalogEdit {
  const Catalog& before;
  const Catalog& after;
  const std::vector<DatasetName>& touched;  ///< ascending: made, changed or gone
};

/// Thread-safe for different places. Errors of all: `io`, `no_space`, `corrupt`.
class FileSpace {
public:
  virtual ~FileSpace() = default;
  virtual env::StoreInfo info() const = 0;
  virtual Result<env::Space> space() = 0;
  /// Makes the edit durable, wholly or (on an error) not at all. One call at a time; each `before`
  /// is the last one's `after` that was kept.
  virtual Status keep(const CatalogEdit& edit) = 0;
  /// A fresh place. `hint` is for people who look at the folder.
  virtual std::string new_place(PlaceKind kind, std::string_view hint) = 0;
  /// Removes the place if it is there. What cannot be removed now is removed at the next start.
  virtual void drop(const std::string& place) = 0;

  /// Fills a live place with a snapshot's files, durably, or with none if `snapshot` is empty: an
  /// empty place need not survive a loss of power, make_live() brings it back.
  virtual Status make_live(const std::string& live, const std::string& snapshot, bool readonly) = 0;
  /// Errors: `not_found` if a person removed it.
  virtual Result<std::filesystem::path> live_path(const std::string& live) = 0;
  virtual Status protect_live(const std::string& live, bool readonly) = 0;
  virtual Result<LiveState> look(const std::string& live, const std::string& snapshot) = 0;

  /// Fills a snapshot place; durable on return.
  virtual Result<MadeFiles> take(const SnapshotSource& source, const std::string& snapshot) = 0;
  virtual Result<std::filesystem::path> snapshot_path(const std::string& snapshot) = 0;
  virtual Result<Manifest> manifest(const std::string& snapshot) = 0;
  virtual Result<std::unique_ptr<ContentSource>> content(const std::string& snapshot) = 0;

  /// `receiving` need not exist yet.
  virtual Result<std::unique_ptr<Staging>> staging(const std::string& receiving) = 0;
  /// Fills a snapshot place from what arrived and the base (empty: none); durable on return.
  virtual Result<MadeFiles> assemble(const Arrival& arrival, const std::string& base,
                                     const std::string& receiving, const std::string& snapshot) = 0;

  /// Snapshot places that the catalog names and a person has removed.
  virtual std::vector<std::string> missing(const Catalog& catalog) = 0;
  virtual std::uint64_t random() = 0;
  virtual WallTime wall_time() = 0;
};

}  // namespace zed::store
