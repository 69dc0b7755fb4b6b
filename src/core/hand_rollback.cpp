#include "core/hand_rollback.hpp"

namespace zed {

bool was_rolled_back_by_hand(const Dataset& dataset) {
  if (!dataset.property(property::intent).empty()) return false;
  if (!dataset.property(property::reverted).empty()) return true;
  const std::string at = dataset.property(property::checkpoint);
  return !at.empty() && dataset.find(at) == nullptr;
}

}  // namespace zed
