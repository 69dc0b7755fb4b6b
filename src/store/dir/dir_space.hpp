#pragma once
// A FileSpace of folders, drawn in dir/layout.hpp.

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <mutex>

#include "store/dir/catalog_file.hpp"
#include "store/dir/disk.hpp"
#include "store/dir/tree.hpp"
#include "store/file_space.hpp"

namespace zed::store {

class DirSpace final : public FileSpace {
public:
  struct Opened {
    std::unique_ptr<DirSpace> space;
    Catalog catalog;
  };
  /// Makes the root and an empty store in it if there is none, locks it, reads the catalog and
  /// clears away what a crash left (dir/sweep.hpp). Errors: `busy` (open in another process),
  /// `corrupt`, `refused` (the folder holds something else), `io`.
  static Result<Opened> open(const std::filesystem::path& root, const std::string& pool);

  env::StoreInfo info() const override;
  Result<env::Space> space() override;
  Status keep(const CatalogEdit& edit) override;
  std::string new_place(PlaceKind kind, std::string_view hint) override;
  void drop(const std::string& place) override;
  Status make_live(const std::string& live, const std::string& snapshot, bool readonly) override;
  Result<std::filesystem::path> live_path(const std::string& live) override;
  Status protect_live(const std::string& live, bool readonly) override;
  Result<LiveState> look(const std::string& live, const std::string& snapshot) override;
  Result<MadeFiles> take(const SnapshotSource& source, const std::string& snapshot) override;
  Result<std::filesystem::path> snapshot_path(const std::string& snapshot) override;
  Result<Manifest> manifest(const std::string& snapshot) override;
  Result<std::unique_ptr<ContentSource>> content(const std::string& snapshot) override;
  Result<std::unique_ptr<Staging>> staging(const std::string& receiving) override;
  Result<MadeFiles> assemble(const Arrival& arrival, const std::string& base,
                             const std::string& receiving, const std::string& snapshot) override;
  std::vector<std::string> missing(const Catalog& catalog) override;
  std::uint64_t random() override;
  WallTime wall_time() override;

private:
  DirSpace(std::filesystem::path root, std::string pool)
      : root_path_(std::move(root)), pool_(std::move(pool)) {}
  Status lock();
  Status make_folders();
  Result<Catalog> load();
  /// Empty live places that a loss of power took back.
  Status remake_empty_places(const Catalog& catalog);
  Result<SnapshotTree> snapshot_tree(const std::string& snapshot) const;
  Result<Index> read_index(const std::string& path) const;
  /// The snapshot's index with the stamps that the live folder's files had when the two were
  /// equal, if that is known.
  Result<Index> stamps(const std::string& live, const SnapshotTree& snapshot,
                       const std::string& snapshot_place) const;
  /// Makes the place and its files folder.
  Result<disk::Fd> begin_snapshot(const std::string& snapshot);
  Status end_snapshot(const std::string& snapshot, const Index& index);

  std::filesystem::path root_path_;
  std::string pool_;
  disk::Fd root_;
  disk::Fd lock_;
  disk::Fd snapshots_;
  disk::Abilities abilities_;
  std::atomic<std::uint64_t> last_place_{0};
  std::mutex writing_;  ///< indexes that learn their hashes
  std::optional<CatalogFile> catalog_;
  std::mutex looking_;
  std::int64_t snapshots_looked_ns_ = 0;
};

}  // namespace zed::store
