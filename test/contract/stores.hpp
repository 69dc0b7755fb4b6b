#pragma once
// The stores under contract.

#include <cstdlib>

#include "contract/contract.hpp"

namespace zed::contract {

/// In a machine of the lab: the store that is only there, and one for it to meet.
inline std::vector<Factory> all_stores() {
  if (std::getenv("ZED_TEST_ZFS_ROOT") != nullptr)
    return {{"dir", make_dir_subject}, {"zfs", make_zfs_subject}};
  std::vector<Factory> stores{{"memory", make_memory_subject},
                              {"dir", make_dir_subject},
                              {"dir_tmpfs", make_dir_tmpfs_subject}};
  if (std::getenv("ZED_TEST_REFLINK_DIR") != nullptr)
    stores.push_back({"dir_reflink", make_dir_reflink_subject});
  return stores;
}

inline std::string store_name(const testing::TestParamInfo<Factory>& info) {
  return info.param.name;
}

}  // namespace zed::contract
