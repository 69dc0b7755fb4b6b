#pragma once
// The simulated store: the rules of store/catalog_store.hpp over files in memory, with faults. The
// object is the disk: it outlives the agent that used it.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "env/store.hpp"

namespace zed::sim {

/// What goes wrong with one call.
struct StoreFault {
  ErrorCode code = ErrorCode::io;
  bool after = false;  ///< the effect happened, only the answer was lost
};

/// Asked before each call; `operation` is the method's name ("snapshot"), for a stream's methods
/// "read", "write" or "finish".
using StoreFaultHook =
    std::function<std::optional<StoreFault>(std::string_view operation, const DatasetName&)>;

/// Deterministic: guids and place names come from the seed and the order of calls alone.
class MemoryStore final : public env::Store {
public:
  explicit MemoryStore(std::uint64_t seed = 1);
  ~MemoryStore() override;
  MemoryStore(MemoryStore&&) noexcept;
  MemoryStore& operator=(MemoryStore&&) noexcept;

  // ---- what a job or a person does ----
  /// Makes missing folders. Errors: `not_found`, `refused` (readonly), `no_space`, `invalid` (a
  /// path that climbs out, or through a file).
  Status write_file(const DatasetName& dataset, std::string_view path, std::string bytes);
  /// Succeeds if it is not there; removes a whole folder.
  Status remove_file(const DatasetName& dataset, std::string_view path);
  /// All live files; empty if the dataset is not there.
  std::map<std::string, std::string> live_files(const DatasetName& dataset) const;
  /// All files of a snapshot. Errors: `not_found`.
  Result<std::map<std::string, std::string>> snapshot_files(const SnapshotName& snapshot) const;
  /// Removes a snapshot's files behind the store's back, as `rm -rf` does.
  void lose_snapshot_files(const SnapshotName& snapshot);

  // ---- faults ----
  void set_fault_hook(StoreFaultHook hook);
  /// The n-th call from now on (1: the next) fails so.
  void fail_call(std::uint64_t n, StoreFault fault);
  /// Calls so far, streams' methods included.
  std::uint64_t calls() const;
  /// Nothing that needs space succeeds while the disk is full.
  void set_full(bool full);
  /// The process that used the store died: every stream that it had fails with `cancelled` from now
  /// on, and what they had not made durable is gone.
  void crash();
  /// `created` of the snapshots from now on.
  void set_wall_time(WallTime now);

  // ---- Store ----
  env::StoreInfo info() const override;
  Result<std::vector<Dataset>> list() override;
  Result<Dataset> inspect(const DatasetName& dataset) override;
  Result<Changes> changes_since(const std::string& cursor) override;
  Result<env::Space> space() override;
  Status create(const DatasetName& dataset, const Properties& properties) override;
  Status set(const DatasetName& dataset, const PropertyChanges& changes) override;
  Status set_readonly(const DatasetName& dataset, bool readonly) override;
  Result<std::filesystem::path> open_live(const DatasetName& dataset) override;
  Result<std::filesystem::path> snapshot_path(const SnapshotName& snapshot) override;
  Result<Snapshot> snapshot(const SnapshotName& name, const Properties& properties) override;
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

private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace zed::sim
