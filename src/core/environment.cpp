#include "core/environment.hpp"

#include <algorithm>
#include <array>

namespace zed {

const char* visibility_variable(GpuVendor vendor) {
  switch (vendor) {
  case GpuVendor::nvidia: return "CUDA_VISIBLE_DEVICES";
  case GpuVendor::amd: return "ROCR_VISIBLE_DEVICES";
  case GpuVendor::intel: return "ZE_AFFINITY_MASK";
  case GpuVendor::apple:
  case GpuVendor::simulated:
  case GpuVendor::other: return nullptr;
  }
  return nullptr;
}

bool is_set_by_zed(std::string_view variable) {
  constexpr std::array vendors{GpuVendor::nvidia, GpuVendor::amd, GpuVendor::intel};
  return variable.starts_with("ZED_") ||
         std::any_of(vendors.begin(), vendors.end(), [variable](GpuVendor vendor) {
           return variable == visibility_variable(vendor);
         });
}

}  // namespace zed
