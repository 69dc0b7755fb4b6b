#include "controller/gpu_history.hpp"

#include <algorithm>

namespace zed::controller {

std::size_t GpuHistory::share() const {
  return std::clamp<std::size_t>(most_samples / std::max<std::size_t>(1, gpus_), 1, longest);
}

void GpuHistory::add(const NodeName& node, const std::vector<GpuLoad>& loads) {
  if (loads.empty()) return;
  auto& gpus = nodes_[node];
  for (const GpuLoad& load : loads) {
    auto found = gpus.find(load.uuid);
    if (found == gpus.end()) {
      if (gpus.size() >= most_gpus) continue;
      found = gpus.emplace(load.uuid, std::deque<GpuLoad>()).first;
      ++gpus_;
    }
    std::deque<GpuLoad>& samples = found->second;
    if (!samples.empty() && load.at <= samples.back().at) continue;
    samples.push_back(load);
    while (samples.size() > share())
      samples.pop_front();
  }
}

std::vector<GpuLoad> GpuHistory::of(const NodeName& node, const std::string& uuid) const {
  auto known = nodes_.find(node);
  if (known == nodes_.end()) return {};
  auto samples = known->second.find(uuid);
  if (samples == known->second.end()) return {};
  return {samples->second.begin(), samples->second.end()};
}

void GpuHistory::forget(const NodeName& node) {
  auto known = nodes_.find(node);
  if (known == nodes_.end()) return;
  gpus_ -= known->second.size();
  nodes_.erase(known);
}

}  // namespace zed::controller
