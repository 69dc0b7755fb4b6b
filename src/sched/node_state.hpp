#pragma once
// Inside the room: a node reduced to what placement compares. Nodes of one class differ only in
// what is free, so they are judged once.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/fleet.hpp"
#include "sched/gpu_name.hpp"
#include "sched/request.hpp"

namespace zed::sched {

/// Everything that a clause can ask of a GPU.
struct GpuKind {
  GpuVendor vendor = GpuVendor::other;
  std::string model;
  MemoryKind memory_kind = MemoryKind::dedicated;
  Bytes reported;
  Bytes driver_reserved;
  std::optional<std::int64_t> nominal_gb;
  std::string arch;
  std::string driver;
  std::string cuda;
  bool instance = false;  ///< of MIG: a process sees one only
  friend auto operator<=>(const GpuKind&, const GpuKind&) = default;
};
GpuKind kind_of(const Gpu& gpu);

/// GPUs of one kind that are equally near to each other: on one NUMA node of a machine, and joined
/// by NVLink or xGMI if they name an island.
struct GpuGroup {
  GpuKind kind;
  std::int64_t numa = -1;
  std::string island;
  friend auto operator<=>(const GpuGroup&, const GpuGroup&) = default;
};

/// Everything that a clause can ask of a node, besides what changes.
struct ClassKey {
  std::string os;
  std::vector<std::string> labels;  ///< reported and declared; sorted, unique
  std::vector<DatasetName> roots;   ///< empty: may hold all
  Bytes unified_memory;             ///< RAM, if a GPU shares it; else 0
  std::vector<GpuGroup> groups;     ///< sorted: one vendor, then one kind, is one range
  friend auto operator<=>(const ClassKey&, const ClassKey&) = default;
};
struct NodeClass {
  ClassKey key;
  std::vector<GpuName> names;  ///< of the groups' models

  explicit NodeClass(ClassKey of);
  bool may_hold(const DatasetName& dataset) const;
  bool has_label(const std::string& label) const;
};
ClassKey class_of(const Node& node);

/// One GPU and what is taken of it.
struct GpuSlot {
  std::string uuid;
  std::size_t group = 0;
  bool schedulable = true;
  Bytes reported;
  Bytes offered;         ///< to shared jobs: reported - driver - strangers
  bool crowded = false;  ///< strangers use more than max(1 GiB, 10 %)
  bool held_whole = false;
  std::int64_t sharers = 0;
  Bytes shared;

  bool is_free() const { return schedulable && !crowded && !held_whole && sharers == 0; }
  /// What a shared job may still reserve; 0 if the card is not to be shared.
  Bytes left() const;
};
bool is_crowded(const Gpu& gpu);

/// What is free, as numbers: by it equal nodes are grouped. whole: free GPUs by group. shared: by
/// group how many, then their free bytes ascending. none: live attempts, free GPUs.
using Shape = std::vector<std::int64_t>;

struct NodeState {
  NodeName name;
  std::shared_ptr<const NodeClass> node_class;
  bool takes_jobs = true;
  Bytes memory;
  Bytes pool_free;
  std::int64_t live = 0;  ///< attempts and reservations
  std::vector<GpuSlot> slots;

  /// Forgets everything that was taken.
  void give_back_all();
  /// Marks GPUs as taken by one attempt or reservation.
  void take(const std::vector<std::string>& uuids, bool share, Bytes vram);
};
bool takes_jobs(const Node& node);
bool is_live(const Attempt& attempt);

/// A node with nothing taken; `node_class` must be that of class_of(node).
NodeState idle_state(const Node& node, std::shared_ptr<const NodeClass> node_class);
/// With its live attempts and the reservations on it. A job that has both counts once.
NodeState state_of(const Node& node, std::shared_ptr<const NodeClass> node_class,
                   const std::vector<Attempt>& attempts,
                   const std::vector<Reservation>& reservations);

Shape whole_shape(const NodeState& node);
Shape shared_shape(const NodeState& node);
Shape plain_shape(const NodeState& node);

}  // namespace zed::sched
