#pragma once
// Inside the room: nodes grouped into buckets of equal class and equal free resources.

#include <array>
#include <map>
#include <set>
#include <vector>

#include "sched/search.hpp"

namespace zed::sched {

/// Powers of two stand for sizes that differ on every machine: within one level a node's own
/// figure is looked at, between levels none has to be.
int level_of(Bytes bytes);

struct BucketKey {
  std::size_t class_id = 0;
  int disk_level = 0;
  int ram_level = 0;
  Shape shape;
  friend auto operator<=>(const BucketKey&, const BucketKey&) = default;
};

struct ByName {
  bool operator()(const NodeState* a, const NodeState* b) const { return a->name < b->name; }
};
using Bucket = std::set<const NodeState*, ByName>;
using Buckets = std::map<BucketKey, Bucket>;

class IndexState {
public:
  IndexState() = default;
  IndexState(const IndexState& other);
  IndexState& operator=(const IndexState&) = delete;

  void update(const Node& node, const std::vector<Attempt>& attempts);
  void remove(const NodeName& name);
  void reserve(const Reservation& reservation);
  void release(const JobId& job);
  void release_everything();

  std::size_t node_count() const { return entries_.size(); }
  const NodeState* find(const NodeName& name) const;
  const Buckets& buckets(Family family) const { return buckets_[static_cast<std::size_t>(family)]; }
  /// By class id; nullptr where an id is free.
  const std::vector<std::shared_ptr<const NodeClass>>& classes() const { return classes_; }
  std::size_t class_id(const NodeState& node) const;
  /// A node as it would be with those reservations too. `name` must be known.
  NodeState with(const NodeName& name, const std::vector<Reservation>& more) const;

private:
  /// What a live attempt holds.
  struct Hold {
    JobId job;
    std::vector<std::string> gpus;
    bool share = false;
    Bytes vram;
  };
  struct Entry {
    NodeState state;
    std::size_t class_id = 0;
    std::vector<Hold> holds;
    std::array<BucketKey, 3> keys;
    bool indexed = false;  ///< it takes jobs, so it is in the buckets
  };

  std::size_t intern(const ClassKey& key);
  void forget_class(std::size_t id);
  void retake(Entry& entry);
  bool is_counted(const Entry& entry, const JobId& job) const;
  void reindex(Entry& entry);
  void unindex(Entry& entry);

  std::map<NodeName, Entry> entries_;
  std::map<ClassKey, std::size_t> class_ids_;
  std::vector<std::shared_ptr<const NodeClass>> classes_;
  std::vector<std::size_t> members_;  ///< nodes by class id
  std::array<Buckets, 3> buckets_;
  std::map<NodeName, std::vector<Reservation>> reserved_;
  std::map<JobId, std::set<NodeName>> reserved_by_;
};

}  // namespace zed::sched
