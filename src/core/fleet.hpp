#pragma once
// The fleet view: what the controller knows of its nodes at one moment. Immutable.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "core/cluster.hpp"
#include "core/dataset.hpp"
#include "core/gpu.hpp"
#include "core/job.hpp"

namespace zed {

enum class NodeStatus {
  up,
  suspect,   ///< silent for 6 s
  lost,      ///< silent for 30 s (configurable)
  draining,  ///< cordoned, and what runs is being moved
  cordoned,  ///< up, takes no new jobs
};
constexpr auto enum_names(NodeStatus) {
  return std::array<std::string_view, 5>{"up", "suspect", "lost", "draining", "cordoned"};
}

/// What an agent says of its machine; measured or detected, never declared.
struct NodeFacts {
  std::string version;     ///< of the agent
  std::string os;          ///< "linux" | "macos" | "freebsd"
  std::string os_version;  ///< "Debian GNU/Linux 12, kernel 6.1.0"; for people
  std::string cpu_arch;    ///< "x86_64" | "aarch64"
  std::string cpu_model;   ///< as the processor names itself; may be empty
  std::int64_t cpus = 0;
  Bytes memory;
  StoreKind store = StoreKind::dir;
  std::string pool;
  bool simulated = false;    ///< its GPUs come from a profile
  bool may_run_jobs = true;  ///< false for a replication-only agent
  bool may_write_pool = true;
  std::string data_address;  ///< "127.0.0.1:4373": where its data connections are accepted
  bool dialable = true;      ///< false for a laptop behind NAT
  std::string power;         ///< "mains" | "battery"; empty where there is no battery
  std::string rocm;          ///< version of ROCm; empty where there is none
  std::vector<std::string> labels;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("version", self.version);
    visit("os", self.os);
    visit("os_version", self.os_version);
    visit("cpu_arch", self.cpu_arch);
    visit("cpu_model", self.cpu_model);
    visit("cpus", self.cpus);
    visit("memory", self.memory);
    visit("store", self.store);
    visit("pool", self.pool);
    visit("simulated", self.simulated);
    visit("may_run_jobs", self.may_run_jobs);
    visit("may_write_pool", self.may_write_pool);
    visit("data_address", self.data_address);
    visit("dialable", self.dialable);
    visit("power", self.power);
    visit("rocm", self.rocm);
    visit("labels", self.labels);
  }
  friend bool operator==(const NodeFacts&, const NodeFacts&) = default;
};

struct Node {
  NodeId id;
  NodeName name;
  NodeFacts facts;
  NodeStatus status = NodeStatus::up;
  std::vector<Gpu> gpus;
  Bytes pool_free;
  Bytes memory_free;
  Millis silent;  ///< since the last word from it
  std::optional<DeclaredNode> declared;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("id", self.id);
    visit("name", self.name);
    visit("facts", self.facts);
    visit("status", self.status);
    visit("gpus", self.gpus);
    visit("pool_free", self.pool_free);
    visit("memory_free", self.memory_free);
    visit("silent", self.silent);
    visit("declared", self.declared);
  }
  friend bool operator==(const Node&, const Node&) = default;
};

/// Everything by node. `revision` counts journalled changes of desired state and membership; what
/// else may have moved is checked by each plan step's own `expect`.
struct FleetView {
  std::uint64_t revision = 0;
  WallTime taken_at;
  std::map<NodeName, Node> nodes;
  std::map<NodeName, std::map<DatasetName, Dataset>> datasets;
  std::map<NodeName, std::vector<Attempt>> attempts;

  const Node* find_node(const NodeName& name) const;
  /// The copy of a dataset on a node, by its identity; nullptr if none.
  const Dataset* find_copy(const NodeName& node, const DatasetId& uuid) const;
};

}  // namespace zed
