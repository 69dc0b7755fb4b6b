#pragma once
// What is there: datasets and snapshots as core wants them, made from OpenZFS's listings. Snapshots
// are listed by guid and createtxg, which is fast; their properties, which are written once, are
// asked for only when a snapshot is new.

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "store/zfs/marker.hpp"
#include "store/zfs/zfs.hpp"

namespace zed::store::zfs {

/// How true `changed` of a dataset is. OpenZFS counts what was written when it closes a transaction
/// group, every few seconds.
enum class Freshness {
  seconds_old,  ///< of the last group
  exact,        ///< of this moment; closes a group where nothing seems to have been written
};

/// A dataset as OpenZFS has it now.
struct Record {
  Dataset dataset;
  MarkedProperties marked;
  std::uint64_t guid = 0;  ///< stays with it through renames
  std::string origin;      ///< full name of the snapshot that it is a clone of; "" if it is none
  std::string token;       ///< of an interrupted `zfs recv -s`; "" if there is none
  bool mounted = false;
  bool can_mount = true;
  std::uint64_t written = 0;  ///< bytes since the newest snapshot, of closed transaction groups
  /// Of a zfs stream: it has arrived whole, but its properties are not set yet.
  bool has_unsealed = false;

  bool is_receiving() const { return marked.marker.has_value() || !token.empty(); }
};

/// What is known of a snapshot for good (`used` as of then).
struct SnapshotFacts {
  WallTime created;
  Bytes used;
  Bytes referenced;
  Properties properties;
};

/// Pure: puts a dataset together. Snapshots whose facts are missing vanished meanwhile and are left
/// out.
Record assemble(const DatasetName& name, const Facts& facts, const std::vector<SnapshotRow>& rows,
                const std::map<std::string, SnapshotFacts>& snapshots);

/// One snapshot from all that `zfs get all` says of it.
Snapshot show_snapshot(const std::string& word, const Facts& facts);

/// Thread-safe.
class Inventory {
public:
  explicit Inventory(const Zfs& zfs) : zfs_(zfs) {}

  /// Errors: `not_found`. If exact, its bookmarks are in it too.
  Result<Record> look(const DatasetName& name, Freshness freshness);
  /// The same without its snapshots, which costs half.
  Result<Record> glance(const DatasetName& name) const;
  /// All, sorted by name.
  Result<std::vector<Record>> all(Freshness freshness);
  /// The snapshot's properties were set late: ask again.
  void forget(std::uint64_t guid);
  /// The dataset was rolled back a moment ago: what it says was written since then is no change of
  /// its files. Opening a file system whose snapshot has an intent log empties that log, which
  /// writes its root anew: OpenZFS counts the bytes, though its own receive knows better.
  void take_as_unchanged(const Record& record);

private:
  /// guid and createtxg: two datasets of one pool may hold snapshots of one guid.
  using Key = std::pair<std::uint64_t, std::uint64_t>;

  Result<std::map<std::string, SnapshotFacts>> facts_of(const std::vector<SnapshotRow>& rows);
  Status learn(const std::vector<SnapshotRow>& unknown);
  bool knows_nothing();
  void keep_only(const std::vector<SnapshotRow>& rows);
  void settle_changed(Record& record);
  Status add_bookmarks(std::vector<Record>& records) const;

  const Zfs& zfs_;
  std::mutex mutex_;
  std::map<Key, SnapshotFacts> known_;
  /// By the dataset's guid, its `written` when nothing had changed. A change of files writes at
  /// least six more blocks, so that the same number tells of none.
  std::map<std::uint64_t, std::uint64_t> written_unchanged_;
};

/// Remembers what each dataset looked like, so that the store can tell which have changed.
class ChangeLog {
public:
  explicit ChangeLog(std::string instance) : instance_(std::move(instance)) {}
  /// Takes a full listing; names of what changed since the cursor, and the new cursor.
  std::pair<std::string, std::vector<DatasetName>> since(const std::string& cursor,
                                                         const std::vector<Record>& now);

private:
  struct Seen {
    std::size_t looks = 0;  ///< a hash of what matters
    std::uint64_t changed_at = 0;
    bool gone = false;
  };
  void take(const std::vector<Record>& now);

  std::string instance_;
  std::uint64_t counter_ = 0;
  std::uint64_t known_from_ = 0;
  std::map<DatasetName, Seen> seen_;
};

}  // namespace zed::store::zfs
