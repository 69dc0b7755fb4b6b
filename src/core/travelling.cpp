#include "core/travelling.hpp"

namespace zed {

Properties travelling_properties(const Snapshot& snapshot) {
  Properties properties = snapshot.properties;
  properties.try_emplace(property::id, snapshot.id.str());
  return properties;
}

}  // namespace zed
