#pragma once
// The stores under contract.

#include "contract/contract.hpp"

namespace zed::contract {

inline std::vector<Factory> all_stores() {
  return {{"memory", make_memory_subject}};
}

inline std::string store_name(const testing::TestParamInfo<Factory>& info) {
  return info.param.name;
}

}  // namespace zed::contract
