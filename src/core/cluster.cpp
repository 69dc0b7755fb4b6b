#include "core/cluster.hpp"

#include <algorithm>

namespace zed {
namespace {

template <class Items, class Key>
auto find_named(const Items& items, const Key& wanted) -> decltype(items.data()) {
  for (const auto& item : items)
    if (item.name == wanted) return &item;
  return nullptr;
}

}  // namespace

bool DeclaredNode::may_hold(const DatasetName& dataset) const {
  return dataset_roots.empty() || dataset.is_under("zed") ||
         std::any_of(dataset_roots.begin(), dataset_roots.end(),
                     [&](const DatasetName& root) { return dataset.is_under(root.str()); });
}

const DeclaredNode* Cluster::find_node(const NodeName& wanted) const {
  return find_named(nodes, wanted);
}
const DeclaredModel* Cluster::find_model(const ModelName& wanted) const {
  return find_named(models, wanted);
}
const Job* Cluster::find_job(const JobName& wanted) const {
  return find_named(jobs, wanted);
}

}  // namespace zed
