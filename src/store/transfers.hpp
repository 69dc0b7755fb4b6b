#pragma once
// Which operations and streams are under way, so that those which would pull the ground from under
// another wait for it (short ones) or are refused as `busy` (streams).

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "core/names.hpp"
#include "store/catalog.hpp"

namespace zed::store {

/// What an operation needs to itself: a dataset, or all datasets under it too.
struct Claim {
  DatasetName dataset;
  bool tree = false;
};

/// One operation at a time a dataset. An operation claims all it needs at once, so none waits for
/// another in a circle.
class Turns {
public:
  class Turn {
  public:
    Turn(Turns& turns, std::vector<Claim> claims);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

  private:
    Turns& turns_;
    std::vector<Claim> claims_;
  };

private:
  bool is_free(const std::vector<Claim>& claims) const;
  std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<Claim> taken_;
};

/// Streams under way. Thread-safe.
class Transfers {
public:
  /// `busy` if a receive into that dataset is under way.
  Status begin_receive(const DatasetName& dataset);
  void end_receive(const DatasetName& dataset);
  void begin_send(const std::vector<std::uint64_t>& guids);
  void end_send(const std::vector<std::uint64_t>& guids);

  /// `busy` if a stream into the dataset, or of a snapshot of it, is under way.
  Status none_of(const DatasetName& dataset, const DatasetRecord& record) const;
  Status none_into(const DatasetName& dataset) const;
  Status none_of(const SnapshotName& name, const SnapshotRecord& record) const;
  /// The same of the snapshot of that guid.
  Status none_of(const SnapshotName& name, std::uint64_t guid) const;

private:
  mutable std::mutex mutex_;
  std::set<DatasetName> receiving_;
  std::map<std::uint64_t, int> sending_;  ///< streams by guid
};

}  // namespace zed::store
