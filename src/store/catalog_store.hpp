#pragma once
// A Store made of a catalog (the rules) and a file space (the bytes). Each method checks, fills a
// new place if it needs one, keeps the changed catalog (that is the moment at which it happens) and
// drops what nothing names any more.

#include <functional>
#include <memory>

#include "env/store.hpp"
#include "store/catalog.hpp"
#include "store/commit_queue.hpp"
#include "store/file_space.hpp"
#include "store/transfers.hpp"

namespace zed::store {

/// Streams that it made must be destroyed before it.
class CatalogStore : public env::Store {
public:
  CatalogStore(std::unique_ptr<FileSpace> files, Catalog catalog);

  env::StoreInfo info() const override { return files_->info(); }
  Result<std::vector<Dataset>> list() override;
  Result<Dataset> inspect(const DatasetName& dataset) override;
  Result<Changes> changes_since(const std::string& cursor) override;
  Result<env::Space> space() override { return files_->space(); }

  Status create(const DatasetName& dataset, const Properties& properties) override;
  Status set(const DatasetName& dataset, const PropertyChanges& changes) override;
  Status set_readonly(const DatasetName& dataset, bool readonly) override;
  Status change(const DatasetName& dataset, const PropertyChanges& changes, bool readonly) override;
  Result<std::filesystem::path> open_live(const DatasetName& dataset) override;
  Result<std::filesystem::path> snapshot_path(const SnapshotName& snapshot) override;
  Result<Snapshot> snapshot(const SnapshotName& name, const Properties& properties) override;
  Result<Snapshot> seal(const SnapshotName& name, const Properties& properties,
                        const PropertyChanges& changes) override;
  Result<Snapshot> commit_checkpoint(const env::CommitRequest& request) override;
  Status hold(const SnapshotName& snapshot, const std::string& tag) override;
  Status release(const SnapshotName& snapshot, const std::string& tag) override;

  Result<std::unique_ptr<env::SendStream>> send(const env::SendRequest& request) override;
  Result<std::unique_ptr<env::ReceiveStream>> receive(const env::ReceiveRequest& request) override;
  Result<std::string> resume_token(const DatasetName& dataset,
                                   const CheckpointId& snapshot) override;
  Status abort_receive(const DatasetName& dataset) override;

  Status rename(const DatasetName& from, const DatasetName& to) override;
  Status clone(const SnapshotName& origin, const DatasetName& dataset,
               const Properties& properties) override;
  Status promote(const DatasetName& clone) override;
  Status revert_live(const DatasetName& dataset) override;
  Status destroy(const DatasetName& dataset) override;
  Status destroy_snapshot(const SnapshotName& snapshot) override;

protected:
  FileSpace& files() { return *files_; }
  Catalog catalog() const { return catalog_.durable(); }
  /// What operations on this dataset wait for.
  Turns& turns() { return turns_; }
  /// The live place, made if it was only thought of. The caller has its turn.
  Result<std::string> settle_live(const DatasetName& dataset);

private:
  class Sending;
  class Receiving;

  /// The live folder's mode; the caller has its turn.
  Status protect(const DatasetName& dataset, bool readonly);
  /// Fills a snapshot place from the live files, then lets `add` enter it. The caller has its turn.
  Result<Snapshot> take(const SnapshotName& name,
                        const std::function<Result<Snapshot>(Catalog&, const NewSnapshot&)>& add);
  Dataset show(const Catalog& catalog, const DatasetName& name, const DatasetRecord& record);
  /// `stale` if the live files are not those of the newest snapshot.
  Status unchanged(const Catalog& catalog, const DatasetName& name);
  Status adopt_missing();
  Result<Snapshot> finish(const env::ReceiveRequest& request, const Arrival& arrival,
                          const std::string& receiving);

  std::unique_ptr<FileSpace> files_;
  std::string instance_;  ///< tells cursors of this process from those of an earlier one
  Turns turns_;
  Transfers transfers_;
  CommitQueue catalog_;
};

}  // namespace zed::store
