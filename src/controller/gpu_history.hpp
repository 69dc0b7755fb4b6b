#pragma once
// How busy the fleet's GPUs were lately; in memory only, bounded over the whole fleet.

#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "core/gpu.hpp"
#include "core/names.hpp"

namespace zed::controller {

class GpuHistory {
public:
  static constexpr std::size_t longest = 60;          ///< samples of one GPU
  static constexpr std::size_t most_gpus = 128;       ///< of one node
  static constexpr std::size_t most_samples = 65536;  ///< of all; each GPU keeps at least its last

  /// Appends what a node measured. A sample no newer than the last one of its GPU is dropped.
  void add(const NodeName& node, const std::vector<GpuLoad>& loads);
  /// Samples of one GPU, oldest first; empty if there are none.
  std::vector<GpuLoad> of(const NodeName& node, const std::string& uuid) const;
  void forget(const NodeName& node);

private:
  /// What each GPU may keep, so that the fleet stays within most_samples.
  std::size_t share() const;

  std::map<NodeName, std::map<std::string, std::deque<GpuLoad>>> nodes_;
  std::size_t gpus_ = 0;
};

}  // namespace zed::controller
