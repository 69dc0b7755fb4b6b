#include "core/travelling.hpp"

namespace zed {

Properties travelling_properties(const Snapshot& snapshot) {
  Properties properties = snapshot.properties;
  properties.try_emplace(property::id, snapshot.id.str());
  return properties;
}

bool is_about(const ReplicationPolicy& policy, const DatasetName& dataset) {
  return policy.selects == ReplicationPolicy::Selects::prefix
             ? dataset.is_under(policy.selector.str())
             : dataset == policy.selector;
}

}  // namespace zed
