#pragma once
// The catalog: which datasets and snapshots a store has, their properties, holds and origins, and
// every rule about them, as a value. No files, no clock, no randomness: the dir store persists a
// catalog and keeps folders beside it; the simulated store keeps one in memory. Each operation
// checks first and changes then: after an error nothing has changed. Copies are cheap (records are
// shared and never changed in place), so a store changes a copy, makes it durable, then keeps it.
//
// catalog.cpp reads, catalog_checks.cpp refuses, catalog_changes.cpp changes, property_rules.cpp
// says what may be a property.

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "core/dataset.hpp"
#include "env/store.hpp"
#include "store/persistent_map.hpp"

namespace zed::store {

struct SnapshotRecord {
  Snapshot snapshot;
  std::set<std::string> holds;
  std::string files;  ///< where the store keeps its files; unique, never reused
};

using SnapshotRef = std::shared_ptr<const SnapshotRecord>;

/// A receive that is under way or was interrupted.
struct PartialReceive {
  CheckpointId snapshot;
  std::optional<CheckpointId> base;
  std::string files;          ///< where the store keeps what has arrived
  bool made_dataset = false;  ///< nothing else is in the dataset: aborting removes it
};

struct DatasetRecord {
  Properties properties;
  DatasetId uuid;  ///< properties["uuid"], parsed
  bool readonly = false;
  /// Where the store keeps the live files. "" while they are only thought of: equal to the newest
  /// snapshot's, else to the origin's, else none. So create, clone and the end of a receive copy
  /// nothing, and a replica costs its space once.
  std::string live;
  std::optional<std::uint64_t> origin;  ///< guid of the snapshot that this was cloned from
  std::optional<PartialReceive> partial;
  std::vector<SnapshotRef> snapshots;  ///< by createtxg
  std::uint64_t changed_at = 0;        ///< the catalog's counter after the last change

  const SnapshotRecord* newest() const {
    return snapshots.empty() ? nullptr : snapshots.back().get();
  }
};

using DatasetRef = std::shared_ptr<const DatasetRecord>;

struct NewSnapshot {
  std::string files;
  std::uint64_t guid = 0;  ///< random
  WallTime created;
  Bytes used;
  Bytes referenced;
};

/// What changes of a dataset itself.
struct DatasetChange {
  PropertyChanges properties;
  std::optional<bool> readonly;  ///< none: as it was
};

class Catalog {
public:
  // ---- reading ----
  const PersistentMap<DatasetName, DatasetRef>& datasets() const { return datasets_; }
  /// Errors: `not_found`.
  Result<DatasetRef> find(const DatasetName& name) const;
  Result<SnapshotRef> find(const SnapshotName& name) const;
  Result<SnapshotRef> find(const DatasetName& name, const CheckpointId& id) const;
  /// As the Store interface shows it; `used` counts snapshots only and `changed` is false: the
  /// store knows more.
  Dataset show(const DatasetName& name, const DatasetRecord& record) const;
  std::uint64_t counter() const { return counter_; }
  /// The snapshot whose files are the live ones of a record without live files of its own; null:
  /// there are none.
  SnapshotRef content_of(const DatasetRecord& record) const;
  /// Names of datasets changed or gone after `counter`; all if that is not known any more.
  std::vector<DatasetName> changed_after(std::uint64_t counter) const;
  /// The dataset that holds the snapshot of this guid.
  std::optional<DatasetName> holder_of(std::uint64_t guid) const;
  /// Dataset names in which this one's snapshots serve as origins of clones.
  std::vector<DatasetName> clones_of(const DatasetRecord& record) const;

  // ---- checks that a store makes before it begins slow work ----
  Status may_create(const DatasetName& name, const Properties& properties) const;
  Status may_snapshot(const SnapshotName& name, const Properties& properties) const;
  /// Compare-and-commit: everything that would make it `stale` or `exists`.
  Status may_commit(const env::CommitRequest& request) const;
  Status may_clone(const SnapshotName& origin, const DatasetName& name,
                   const Properties& properties) const;
  Status may_destroy(const DatasetName& name) const;
  Status may_destroy(const SnapshotName& name) const;
  Status may_rename(const DatasetName& from, const DatasetName& to) const;
  Status may_receive(const env::ReceiveRequest& request) const;
  Status may_revert(const DatasetName& name) const;

  // ---- changes ----
  /// Missing parents are made too. `live`: where its (empty) live files are; "": they come into
  /// being when they are first asked for, as those of the parents do.
  Status create(const DatasetName& name, const Properties& properties,
                const std::string& live = {});
  Status set(const DatasetName& name, const DatasetChange& wanted);
  Result<Snapshot> add_snapshot(const SnapshotName& name, const Properties& properties,
                                const NewSnapshot& made, const DatasetChange& wanted = {});
  Result<Snapshot> commit(const env::CommitRequest& request, const NewSnapshot& made);
  Status hold(const SnapshotName& name, const std::string& tag);
  Status release(const SnapshotName& name, const std::string& tag);
  Status rename(const DatasetName& from, const DatasetName& to);
  Status clone(const SnapshotName& origin, const DatasetName& name, const Properties& properties);
  Status promote(const DatasetName& name);
  /// The live files are now in another place.
  Status move_live(const DatasetName& name, const std::string& live);
  Status destroy(const DatasetName& name);
  Status destroy(const SnapshotName& name);
  /// Takes up the interrupted receive of the same snapshot and base, or begins one (dropping that
  /// of another snapshot). Makes the dataset, readonly, if the request has no base.
  Status begin_receive(const env::ReceiveRequest& request, const std::string& files);
  Result<Snapshot> finish_receive(const env::ReceiveRequest& request, const NewSnapshot& made);
  Status abort_receive(const DatasetName& name);
  /// Drops a snapshot whose files a person removed, whatever holds it.
  void forget(const SnapshotName& name);

  // ---- storing ----
  /// For a catalog that is read back: takes records as they are. Errors: `corrupt` if they
  /// contradict one another.
  Status restore(const DatasetName& name, DatasetRecord record);
  /// What restore() replaces, or what is gone.
  void drop(const DatasetName& name) { datasets_.erase(name); }
  void restore_counter(std::uint64_t counter) {
    counter_ = counter;
    known_from_ = counter;
  }
  /// Datasets made, changed or gone since the last call, in any order, some twice.
  std::vector<DatasetName> take_touched() { return std::exchange(touched_, {}); }

private:
  Status check_new_snapshot(const DatasetName& name, const DatasetRecord& record,
                            const std::string& word, const Properties& properties) const;
  std::vector<DatasetName> missing_parents(const DatasetName& name) const;
  void insert(const DatasetName& name, DatasetRecord record);
  void replace(const DatasetName& name, DatasetRecord record);
  Snapshot append(const DatasetName& name, DatasetRecord record, const std::string& word,
                  const Properties& properties, const NewSnapshot& made);
  Status change_holds(const SnapshotName& name, const std::string& tag, bool held);
  void bury(const DatasetName& name);

  PersistentMap<DatasetName, DatasetRef> datasets_;
  std::uint64_t counter_ = 0;  ///< also the last createtxg given
  std::uint64_t known_from_ = 0;
  PersistentMap<DatasetName, std::uint64_t> gone_;
  std::vector<DatasetName> touched_;
};

/// Property names [a-z0-9._:-]{1,200}; values at most 8191 bytes once percent-encoded, as OpenZFS
/// has it. Errors: `invalid`.
Status check_properties(const Properties& properties);
Status check_properties(const PropertyChanges& changes);

}  // namespace zed::store
