#pragma once
// Inside the room: a request compiled once, so that looking at a node touches no text.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/job.hpp"
#include "sched/gpu_name.hpp"
#include "sched/node_state.hpp"
#include "sched/request.hpp"

namespace zed::sched {

/// Which of a node's resources the job takes; each has its own notion of a tight fit.
enum class Family { none, whole, shared };

struct Demand {
  explicit Demand(const PlaceRequest& request);

  const PlaceRequest& request;
  const Requirement& requirement;
  Family family = Family::none;
  std::optional<std::int64_t> count;  ///< GPUs; none: the fewest for `total`
  std::optional<Bytes> total;         ///< vram_total, in bytes of its kind
  Bytes each;                         ///< what of a GPU the job needs; the rest is left over
  Bytes ram;                          ///< the machine must report this much
  std::vector<GpuName> gpu_names;     ///< any of
  Preference wishes;                  ///< prefer's list, then fallback's
  std::vector<GpuName> wish_names;    ///< of the GPU wishes, at their index; else empty
  std::vector<NodeName> wish_nodes;   ///< of the node wishes, at their index; else empty
  std::vector<DatasetName> datasets;  ///< that the node must be allowed to hold
  Bytes input_size;                   ///< to move to a node that has nothing

  /// Bytes that must travel before the job can start there.
  Bytes data_cost(const NodeName& node) const;
  /// Free space that the pool must have if so much must travel.
  Bytes disk(Bytes cost) const;
  /// Whether the wish of that index (wishes.size(): none) likes a node, GPUs aside.
  bool likes(std::size_t wish, const NodeName& node, const NodeClass& node_class) const;
};

/// Sizes as bytes, held below 1 EiB: a hostile size must not overflow a sum.
Bytes bounded(const MemorySize& size);

/// Version order of dotted numbers: "550.54" >= "535". Text that is no version is never at least.
bool version_at_least(std::string_view have, std::string_view wanted);
/// One alternative of an `arch:` clause: a number is "at least", anything else equal.
bool arch_satisfies(std::string_view wanted, std::string_view have);

/// What the hard clauses say of one group of equal GPUs.
struct GroupFit {
  bool eligible = false;
  Bytes counted;  ///< its size, of the kind (nominal, exact) that is summed or left over
};

/// What the clauses say of one class of nodes; `wishes[i * groups + g]` is 1 if wish i likes it.
struct ClassFit {
  bool possible = false;
  std::vector<GroupFit> groups;
  std::vector<char> wishes;
  bool likes(std::size_t wish, std::size_t group) const {
    return wishes[wish * groups.size() + group] != 0;
  }
};
ClassFit fit_class(const Demand& demand, const NodeClass& node_class);
/// The same for one group of GPUs, whatever else the node lacks.
GroupFit fit_group(const Demand& demand, const NodeClass& node_class, std::size_t group);

}  // namespace zed::sched
