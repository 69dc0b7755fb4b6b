#pragma once
// A FileSpace in memory (see store/file_space.hpp). Contents are shared, never changed in place.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "store/file_space.hpp"

namespace zed::sim {

struct MemoryContent {
  std::string bytes;
  store::Digest digest{};
};
using ContentRef = std::shared_ptr<const MemoryContent>;
ContentRef content_of(std::string bytes);

struct MemoryNode {
  store::EntryKind kind = store::EntryKind::file;
  std::uint32_t mode = 0644;
  std::int64_t mtime_ns = 0;
  ContentRef content;  ///< files only
  std::string target;  ///< symlinks only

  friend bool operator==(const MemoryNode& a, const MemoryNode& b) {
    return a.kind == b.kind && a.mode == b.mode && a.mtime_ns == b.mtime_ns &&
           a.target == b.target && !a.content == !b.content &&
           (!a.content || a.content->digest == b.content->digest);
  }
};
using MemoryTree = std::map<std::string, MemoryNode>;

/// What has arrived of a receive.
struct MemoryArrival {
  std::optional<store::ByteVector> plan;
  std::uint64_t kept = 0;
  std::map<std::size_t, std::string> durable;  ///< as of the last kept offset
  std::map<std::size_t, std::string> files;
};

class MemorySpace final : public store::FileSpace {
public:
  explicit MemorySpace(std::uint64_t seed) : random_state_(seed) {}

  // ---- for MemoryStore ----
  std::optional<MemoryTree> tree(const std::string& place) const;
  void put_tree(const std::string& place, MemoryTree tree);
  void set_full(bool full);
  bool is_full() const;
  void set_wall_time(WallTime now);
  /// See MemoryStore::crash().
  void crash();
  std::uint64_t lives() const;

  // ---- for its staging areas: `life` is the one in which they were made ----
  Status with_arrival(const std::string& place, std::uint64_t life,
                      const std::function<Status(MemoryArrival&)>& work);

  // ---- FileSpace ----
  env::StoreInfo info() const override;
  Result<env::Space> space() override;
  Status keep(const store::CatalogEdit& edit) override;
  std::string new_place(store::PlaceKind kind, std::string_view hint) override;
  void drop(const std::string& place) override;
  Status make_live(const std::string& live, const std::string& snapshot, bool readonly) override;
  Result<std::filesystem::path> live_path(const std::string& live) override;
  Status protect_live(const std::string& live, bool readonly) override;
  Result<store::LiveState> look(const std::string& live, const std::string& snapshot) override;
  Result<store::MadeFiles> take(const store::SnapshotSource& source,
                                const std::string& snapshot) override;
  Result<std::filesystem::path> snapshot_path(const std::string& snapshot) override;
  Result<store::Manifest> manifest(const std::string& snapshot) override;
  Result<std::unique_ptr<store::ContentSource>> content(const std::string& snapshot) override;
  Result<std::unique_ptr<store::Staging>> staging(const std::string& receiving) override;
  Result<store::MadeFiles> assemble(const store::Arrival& arrival, const std::string& base,
                                    const std::string& receiving,
                                    const std::string& snapshot) override;
  std::vector<std::string> missing(const store::Catalog& catalog) override;
  std::uint64_t random() override;
  WallTime wall_time() override;

private:
  Result<MemoryTree> find(const std::string& place) const;
  Status check_space() const;

  mutable std::mutex mutex_;
  std::uint64_t random_state_;
  std::uint64_t places_ = 0;
  std::uint64_t life_ = 0;
  bool full_ = false;
  WallTime now_;
  std::map<std::string, MemoryTree> trees_;
  std::map<std::string, MemoryArrival> arrivals_;
};

}  // namespace zed::sim
