#include "store/zfs/own_rollbacks.hpp"

namespace zed::store::zfs {

void OwnRollbacks::expect(const std::string& dataset) {
  std::lock_guard lock(mutex_);
  ++expected_[dataset];
}

bool OwnRollbacks::claim(const std::string& dataset) {
  std::lock_guard lock(mutex_);
  const auto own = expected_.find(dataset);
  if (own == expected_.end()) return false;
  if (--own->second == 0) expected_.erase(own);
  return true;
}

}  // namespace zed::store::zfs
