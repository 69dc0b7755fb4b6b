#pragma once
// Store: where datasets live. Two implementations ship (store/zfs on OpenZFS, store/dir on any file
// system) and the simulation has a third; test/contract holds what all of them must do.
//
// Threads: every method may block for as long as the disk takes and may be called from any thread;
// calls on different datasets may run at once, calls on one dataset are serialised by the store.
// Atomicity: each method is one external effect: it happens wholly or, after a crash at any point,
// not at all, unless its comment says otherwise. Durability: a method that returned success has
// survived power loss.
// Errors: `not_found`, `exists`, `busy` (held, mounted, receiving), `no_space`, `io`, `stale` (an
// expectation failed), `unsupported`, `corrupt`; each names the dataset.
// Policy lives elsewhere: a store destroys, rolls back and overwrites exactly what it is told to.

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"
#include "core/cluster.hpp"
#include "core/dataset.hpp"
#include "core/plan.hpp"

namespace zed::env {

struct StoreInfo {
  StoreKind kind = StoreKind::dir;
  std::string pool;                 ///< "tank"; for dir the name given at creation
  std::string version;              ///< "OpenZFS 2.1.11", "dir 1 (reflink)"
  bool may_mount = true;            ///< false: replication only (a non-root agent on zfs)
  std::vector<StreamKind> streams;  ///< what it can send and receive, best first
};

struct Space {
  Bytes free;
  Bytes total;
};

/// Compare and commit: in one transaction checks that dataset `dataset` has this uuid, generation
/// and timeline and that `parent` is still its newest checkpoint (or that it has none), else
/// `stale` and nothing happened; then takes the snapshot with its properties and sets the
/// dataset's.
struct CommitRequest {
  DatasetName dataset;
  DatasetId uuid;
  Generation generation;
  Timeline timeline;
  std::optional<CheckpointId> parent;
  std::string snapshot;            ///< "epoch-15"; `exists` if taken
  Properties snapshot_properties;  ///< com.zed:id among them
  PropertyChanges dataset_changes;
};

struct SendRequest {
  DatasetName dataset;
  CheckpointId snapshot;
  /// A snapshot here, or (a zfs stream) one that a bookmark remembers; none: a full stream.
  std::optional<CheckpointId> base;
  StreamKind kind = StreamKind::files;
  std::string resume_token;  ///< from the receiver's resume_token(); empty: from the start
};

struct ReceiveRequest {
  DatasetName dataset;  ///< made (readonly) if it is not there and base is none
  /// Must be the newest snapshot here, else `stale`; so are live files changed after it.
  std::optional<CheckpointId> base;
  std::string snapshot;             ///< the name it gets
  Properties snapshot_properties;   ///< com.zed:id among them
  PropertyChanges dataset_changes;  ///< set together with the snapshot
  StreamKind kind = StreamKind::files;
  /// What is still to come, as far as the sender knows: `no_space` before anything is made if it
  /// cannot fit, by what is free and by the quotas of the dataset and its parents. 0: unknown.
  Bytes expected = {};
};

/// The bytes of one send. Not thread-safe. Destroying it early ends the send.
class SendStream {
public:
  virtual ~SendStream() = default;
  /// Up to buffer.size() bytes; 0 at the end. Errors: `io`, `not_found` (the snapshot was
  /// destroyed).
  virtual Result<std::size_t> read(std::span<std::byte> buffer) = 0;
  /// Bytes in the whole stream, as far as known beforehand (for progress), resumed part included.
  virtual Bytes total() const = 0;
  /// Bytes skipped because of the resume token.
  virtual Bytes resumed_at() const = 0;
};

/// One receive. Destroying it without finish() keeps what has arrived, resumable by token. Nothing
/// counts, and the dataset's snapshots are unchanged, until finish() succeeds.
class ReceiveStream {
public:
  virtual ~ReceiveStream() = default;
  /// Errors: `corrupt` (bad framing or hash), `no_space`, `io`.
  virtual Status write(std::span<const std::byte> bytes) = 0;
  /// Verifies, snapshots with properties, sets the dataset's properties, leaves it readonly.
  virtual Result<Snapshot> finish() = 0;
};

class Store {
public:
  virtual ~Store() = default;

  virtual StoreInfo info() const = 0;
  /// All datasets with properties (source local or received only) and snapshots, oldest first.
  virtual Result<std::vector<Dataset>> list() = 0;
  virtual Result<Dataset> inspect(const DatasetName& dataset) = 0;
  /// Datasets that may have changed since the cursor (also by a person's hand), and a new cursor.
  /// An empty cursor names all. Names of datasets that are gone are included.
  struct Changes {
    std::string cursor;
    std::vector<DatasetName> datasets;
  };
  virtual Result<Changes> changes_since(const std::string& cursor) = 0;
  virtual Result<Space> space() = 0;

  /// Makes an empty dataset and any missing parents. `exists` if it is there.
  virtual Status create(const DatasetName& dataset, const Properties& properties) = 0;
  /// All changes in one step.
  virtual Status set(const DatasetName& dataset, const PropertyChanges& changes) = 0;
  virtual Status set_readonly(const DatasetName& dataset, bool readonly) = 0;
  /// Both. One step where the store can; else (as implemented here) in the order in which nobody
  /// may write who should not: what becomes readonly does so first, what becomes writable last.
  /// Repeating it finishes what an error or a crash left half done.
  virtual Status change(const DatasetName& dataset, const PropertyChanges& changes, bool readonly);

  /// The live files, absolute. The caller may write there unless the dataset is readonly. Valid
  /// until a rename, revert_live, receive or destroy of the dataset: ask again after those.
  virtual Result<std::filesystem::path> open_live(const DatasetName& dataset) = 0;
  /// The files of a snapshot, readonly, valid until the snapshot is destroyed.
  virtual Result<std::filesystem::path> snapshot_path(const SnapshotName& snapshot) = 0;

  virtual Result<Snapshot> snapshot(const SnapshotName& name, const Properties& properties) = 0;
  /// A last snapshot of a dataset that becomes readonly: snapshot(), then change(). One step where
  /// the store can; else (as implemented here) after an error or a crash the snapshot may be there
  /// without the change, which is then made by change().
  virtual Result<Snapshot> seal(const SnapshotName& name, const Properties& properties,
                                const PropertyChanges& changes);
  virtual Result<Snapshot> commit_checkpoint(const CommitRequest& request) = 0;

  /// A held snapshot cannot be destroyed (`busy`). Holding twice with one tag succeeds.
  virtual Status hold(const SnapshotName& snapshot, const std::string& tag) = 0;
  /// Succeeds if it is not held by that tag.
  virtual Status release(const SnapshotName& snapshot, const std::string& tag) = 0;

  /// Remembers a snapshot as what `peer` (a node) has, so that an increment from it to a later one
  /// stays possible after the snapshot is gone (Dataset::bookmarks). It replaces what was
  /// remembered for that peer before, so there is at most one for each. Errors: `unsupported` of a
  /// store whose streams need the snapshot itself.
  virtual Status bookmark(const SnapshotName& snapshot, const NodeName& peer);
  /// Forgets what was remembered for a peer. Succeeds if there is nothing.
  virtual Status forget_bookmark(const DatasetName& dataset, const NodeName& peer);

  virtual Result<std::unique_ptr<SendStream>> send(const SendRequest& request) = 0;
  virtual Result<std::unique_ptr<ReceiveStream>> receive(const ReceiveRequest& request) = 0;
  /// What an interrupted receive of that snapshot got, as a token for any sender that has it; empty
  /// if nothing is there to resume.
  virtual Result<std::string> resume_token(const DatasetName& dataset,
                                           const CheckpointId& snapshot) = 0;
  /// Drops what an interrupted receive left; a dataset that had nothing else is gone. Succeeds if
  /// there is nothing to drop. `busy` while a receive runs.
  virtual Status abort_receive(const DatasetName& dataset) = 0;

  /// Children move along; missing parents of the target are made. `exists` if the target is there;
  /// `busy` if files are in use (zfs), a transfer runs or an interrupted receive is left.
  virtual Status rename(const DatasetName& from, const DatasetName& to) = 0;
  /// A writable dataset that begins as the snapshot, with exactly these properties of its own.
  virtual Status clone(const SnapshotName& origin, const DatasetName& dataset,
                       const Properties& properties) = 0;
  /// Reverses a clone: the snapshots up to its origin move from the origin's dataset to the clone,
  /// with their ids, guids, properties and holds. Done already (no clone any more): succeeds; a
  /// clone of a clone takes one promotion a level, as in zfs.
  virtual Status promote(const DatasetName& clone) = 0;
  /// Makes live files equal the newest snapshot again (nothing else is rolled back).
  virtual Status revert_live(const DatasetName& dataset) = 0;
  /// With its snapshots. `busy` if one of them is held, being sent or the origin of a clone, if
  /// there are children, or an interrupted receive is left.
  virtual Status destroy(const DatasetName& dataset) = 0;
  virtual Status destroy_snapshot(const SnapshotName& snapshot) = 0;
};

// ---- requests as data, for state machines that cannot call
// ---------------------------------------

struct ListDatasets {};
struct ChangedDatasets {
  std::string cursor;
};
struct InspectDataset {
  DatasetName dataset;
};
struct MakeDataset {
  DatasetName dataset;
  Properties properties;
};
struct SetDatasetProperties {
  DatasetName dataset;
  PropertyChanges changes;
  std::optional<bool> readonly = std::nullopt;  ///< set as well: Store::change()
};
struct SetReadonly {
  DatasetName dataset;
  bool readonly = true;
};
struct TakeSnapshot {
  SnapshotName snapshot;
  Properties properties;
  std::optional<PropertyChanges> seal = std::nullopt;  ///< the dataset's, with Store::seal()
};
struct CommitCheckpoint {
  CommitRequest request;
};
struct HoldSnapshot {
  SnapshotName snapshot;
  std::string tag;
};
struct ReleaseSnapshot {
  SnapshotName snapshot;
  std::string tag;
};
struct AbortReceive {
  DatasetName dataset;
};
struct RenameDataset {
  DatasetName from;
  DatasetName to;
};
struct CloneSnapshot {
  SnapshotName origin;
  DatasetName dataset;
  Properties properties;
};
struct PromoteClone {
  DatasetName dataset;
};
struct RevertLive {
  DatasetName dataset;
};
struct DestroyDataset {
  DatasetName dataset;
};
struct DestroySnapshot {
  SnapshotName snapshot;
};
struct BookmarkSnapshot {
  SnapshotName snapshot;
  NodeName peer;
};
struct ForgetBookmark {
  DatasetName dataset;
  NodeName peer;
};
struct AskSpace {};

using StoreRequest =
    std::variant<ListDatasets, ChangedDatasets, InspectDataset, MakeDataset, SetDatasetProperties,
                 SetReadonly, TakeSnapshot, CommitCheckpoint, HoldSnapshot, ReleaseSnapshot,
                 AbortReceive, RenameDataset, CloneSnapshot, PromoteClone, RevertLive,
                 DestroyDataset, DestroySnapshot, BookmarkSnapshot, ForgetBookmark, AskSpace>;

/// monostate for requests that return nothing.
using StoreReply =
    std::variant<std::monostate, Dataset, std::vector<Dataset>, Snapshot, Store::Changes, Space>;

/// Carries out one request; the error gets a frame naming operation and dataset.
Result<StoreReply> perform(Store& store, const StoreRequest& request);
/// "commit checkpoint jobs/train-001@epoch-15".
std::string describe(const StoreRequest& request);

}  // namespace zed::env
