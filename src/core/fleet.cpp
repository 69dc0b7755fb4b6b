#include "core/fleet.hpp"

namespace zed {

const Node* FleetView::find_node(const NodeName& name) const {
  auto found = nodes.find(name);
  return found == nodes.end() ? nullptr : &found->second;
}

const Dataset* FleetView::find_copy(const NodeName& node, const DatasetId& uuid) const {
  auto held = datasets.find(node);
  if (held == datasets.end()) return nullptr;
  for (const auto& entry : held->second)
    if (entry.second.uuid == uuid) return &entry.second;
  return nullptr;
}

}  // namespace zed
