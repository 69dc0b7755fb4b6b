#pragma once
// Inside the room: the tightest set of GPUs on one node. What is free is given as numbers by
// group, so that one answer holds for every node of equal shape.

#include <cstdint>

#include "sched/demand.hpp"

namespace zed::sched {

/// How tight a place is; less is better, compared field by field.
struct Score {
  std::int64_t gpus = 0;       ///< only where the job leaves the number open
  bool mixed = false;          ///< GPUs of several models in one set
  std::int64_t leftover = 0;   ///< bytes of VRAM that the job leaves unused on what it takes
  std::int64_t islands = 0;    ///< parts of the set that no NVLink or xGMI joins
  std::int64_t spans = 0;      ///< NUMA nodes that the set touches
  std::int64_t remaining = 0;  ///< free GPUs that stay on the node: fragmentation
  friend auto operator<=>(const Score&, const Score&) = default;
};

/// What to take: of each group so many GPUs (whole), or GPUs with exactly this much left (shared).
struct Choice {
  Score score;
  std::vector<std::int64_t> take;  ///< by group; shared: the chosen GPUs' free bytes are in `bytes`
  std::vector<std::pair<std::size_t, std::int64_t>> bytes;
};

/// Looks at many shapes for one demand; holds the scratch memory of that.
class Chooser {
public:
  explicit Chooser(const Demand& demand) : demand_(demand) {}

  /// The tightest set for wish `tier` (wishes.size(): no wish) among what `shape` has free; false
  /// if there is none. `shape` is that of the demand's family.
  bool choose(const NodeClass& node_class, const ClassFit& fit, const Shape& shape,
              std::size_t tier, Choice& choice);

private:
  /// GPUs of one model within a node: groups [first, last) differ by NUMA node only.
  struct Range {
    std::size_t first = 0;
    std::size_t last = 0;
    std::int64_t free = 0;  ///< eligible ones
    Bytes size;
  };

  bool choose_whole();
  bool choose_shared();
  bool is_usable(std::size_t group) const;
  bool is_single(const GpuKind& kind) const;
  std::size_t try_vendor(std::size_t first);
  void try_one_model(const Range& range);
  void try_mixed();
  std::int64_t still_wanted(const Range& range, std::int64_t taken, std::int64_t sum) const;
  void begin();
  void try_one_island(const Range& range, std::int64_t wanted, std::size_t first);
  void take_from(const Range& range, std::int64_t wanted, const std::string* only = nullptr);
  bool is_tighter(std::size_t group, std::size_t than, std::int64_t wanted) const;
  void touch(const GpuGroup& group, std::int64_t count);
  void offer();
  void offer_shared();

  const Demand& demand_;
  const std::vector<GpuGroup>* groups_ = nullptr;
  const ClassFit* fit_ = nullptr;
  const Shape* shape_ = nullptr;
  std::size_t tier_ = 0;
  Choice* best_ = nullptr;
  bool found_ = false;
  Choice trial_;
  std::vector<Range> ranges_;
  std::vector<std::int64_t> numas_;
  std::vector<std::string_view> islands_;
  std::vector<std::pair<std::int64_t, std::size_t>> enough_;  ///< shared: free bytes, group
};

/// The GPUs' UUIDs of a choice, lowest position first.
std::vector<std::string> pick(const Demand& demand, const NodeState& node, const Choice& choice);

}  // namespace zed::sched
