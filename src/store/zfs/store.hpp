#pragma once
// The class behind open_zfs_store(): one operation of env::Store a function. What it stands on are
// pieces of their own: inventory.hpp (what is there), transactions.hpp (what must be atomic),
// bookmarks.hpp, mounting.hpp and work_folder.hpp. Which file has which functions: store.cpp
// datasets and snapshots, pool_events.cpp what changed by whom, sending.cpp and receiving.cpp the
// two ends of streams, open.cpp the start.

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "env/store.hpp"
#include "store/files/manifest.hpp"
#include "store/transfers.hpp"
#include "store/zfs/bookmarks.hpp"
#include "store/zfs/event_watch.hpp"
#include "store/zfs/inventory.hpp"
#include "store/zfs/mounting.hpp"
#include "store/zfs/own_rollbacks.hpp"
#include "store/zfs/transactions.hpp"
#include "store/zfs/work_folder.hpp"
#include "store/zfs/zfs.hpp"

namespace zed::store::zfs {

class ZfsStore final : public env::Store {
public:
  ZfsStore(std::unique_ptr<Commands> commands, std::string root, Version version, bool privileged,
           std::string instance, disk::Fd lock);

  // ---- what is there
  env::StoreInfo info() const override;
  Result<std::vector<Dataset>> list() override;
  Result<Dataset> inspect(const DatasetName& dataset) override;
  Result<Changes> changes_since(const std::string& cursor) override;
  Result<env::Space> space() override;

  // ---- datasets and snapshots
  Status create(const DatasetName& dataset, const Properties& properties) override;
  Status set(const DatasetName& dataset, const PropertyChanges& changes) override;
  Status set_readonly(const DatasetName& dataset, bool readonly) override;
  Result<std::filesystem::path> open_live(const DatasetName& dataset) override;
  Result<std::filesystem::path> snapshot_path(const SnapshotName& snapshot) override;
  Result<Snapshot> snapshot(const SnapshotName& name, const Properties& properties) override;
  Result<Snapshot> commit_checkpoint(const env::CommitRequest& request) override;
  Status hold(const SnapshotName& snapshot, const std::string& tag) override;
  Status release(const SnapshotName& snapshot, const std::string& tag) override;

  // ---- what peers have
  Status bookmark(const SnapshotName& snapshot, const NodeName& peer) override;
  Status forget_bookmark(const DatasetName& dataset, const NodeName& peer) override;

  // ---- streams
  Result<std::unique_ptr<env::SendStream>> send(const env::SendRequest& request) override;
  Result<std::unique_ptr<env::ReceiveStream>> receive(const env::ReceiveRequest& request) override;
  Result<std::string> resume_token(const DatasetName& dataset,
                                   const CheckpointId& snapshot) override;
  Status abort_receive(const DatasetName& dataset) override;

  // ---- other names, other origins, and ends
  Status rename(const DatasetName& from, const DatasetName& to) override;
  Status clone(const SnapshotName& origin, const DatasetName& dataset,
               const Properties& properties) override;
  Status promote(const DatasetName& clone) override;
  Status revert_live(const DatasetName& dataset) override;
  Status destroy(const DatasetName& dataset) override;
  Status destroy_snapshot(const SnapshotName& snapshot) override;

  /// Finishes or undoes what a crash left of every receive.
  Status settle_all();

  /// Listens to the pool, so that changes_since() is cheap while nothing changes.
  void watch_events();

private:
  class Sending;
  class FilesReceiving;
  class StreamReceiving;

  /// When the last full listing was made, by what can be told without one.
  struct Listing {
    std::string cursor;
    std::uint64_t events = 0;
    std::uint64_t own_changes = 0;
    std::chrono::steady_clock::time_point at;
  };

  // ---- store.cpp
  /// Without what was written in the last seconds: for all but the question whether files changed.
  Result<Record> look(const DatasetName& dataset);
  Result<Record> look_exactly(const DatasetName& dataset);
  /// Without its snapshots.
  Result<Record> glance(const DatasetName& dataset) const;
  Result<Snapshot> find_snapshot(const SnapshotName& name);
  Status nothing_under_way(const Record& record) const;
  /// Those that are missing.
  Status make_parents(const DatasetName& dataset);
  /// Runs a command that makes a dataset; makes its missing parents if it asks for them.
  Status make_below(const DatasetName& dataset, const std::string& what,
                    const Arguments& arguments);

  // ---- pool_events.cpp
  Listing now() const;
  /// Our own `zfs rollback`: the event watch does not take it for a person's.
  Status roll_back(const std::string& what, const DatasetName& dataset, const std::string& word);
  /// A person's is written down on the dataset (property `reverted`): the files of a job that runs
  /// have changed under it, and where no snapshot had to go nothing else shows it.
  void note_rollback(const Rollback& rollback);
  Status mark_reverted(const DatasetName& dataset, std::uint64_t txg);

  // ---- sending.cpp
  Result<std::unique_ptr<env::SendStream>> send_files(const env::SendRequest& request,
                                                      const Record& record,
                                                      const Snapshot& snapshot,
                                                      const Snapshot* base);
  /// `base`: "@word", "#word" of a bookmark, or "" for a full stream.
  Result<std::unique_ptr<env::SendStream>> send_zfs(const env::SendRequest& request,
                                                    const Record& record, const Snapshot& snapshot,
                                                    const std::string& base,
                                                    std::uint64_t base_guid);
  Result<Manifest> manifest(const Record& record, const Snapshot& snapshot);
  Status learn_hashes(const Record& record, const Snapshot& snapshot, int files, Index& index);

  // ---- receiving.cpp
  Status may_receive(const Record* record, const env::ReceiveRequest& request) const;
  Result<std::unique_ptr<env::ReceiveStream>> receive_files(const env::ReceiveRequest& request,
                                                            std::optional<Record> record);
  Result<std::unique_ptr<env::ReceiveStream>> receive_zfs(const env::ReceiveRequest& request,
                                                          std::optional<Record> record);
  Status mark(const DatasetName& dataset, const Marker& marker, const env::ReceiveRequest& request,
              Arguments also = {});
  Status drop_partial(const Record& record);
  Status has_room(const DatasetName& dataset, Bytes expected) const;
  Result<Snapshot> apply_arrival(const env::ReceiveRequest& request, const Arrival& arrival);
  Result<Snapshot> finish_stream(const DatasetName& dataset, const Record& record);
  /// Brings a dataset whose receive was cut off by a crash into order. True if it changed anything.
  Result<bool> settle(const Record& record);

  Zfs zfs_;
  Version version_;
  bool privileged_;
  Inventory inventory_;
  Bookmarks bookmarks_;
  Mounting mounting_;
  Transactions transactions_;
  WorkFolder work_;
  disk::Fd lock_;
  Turns turns_;
  Transfers transfers_;
  std::mutex changes_mutex_;
  ChangeLog changes_;
  Listing listed_;  ///< what the last listing was made of
  OwnRollbacks own_rollbacks_;
  std::unique_ptr<EventWatch> events_;  ///< none: list each time; its thread uses all above
};

/// A snapshot without an id gets one from its guid; this is what a snapshot of a request has.
std::optional<CheckpointId> id_in(const Properties& properties);

}  // namespace zed::store::zfs
