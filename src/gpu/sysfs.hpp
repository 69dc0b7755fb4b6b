#pragma once
// What the kernel itself says of GPUs: the PCI bus, DRM, KFD, NVIDIA's /proc files, the device
// tree. Nothing here wakes a GPU that is powered off.

#include <vector>

#include "gpu/device.hpp"
#include "gpu/tree.hpp"

namespace zed::gpu {

/// Every display or 3D controller of the three vendors, with what sysfs knows of it: memory of
/// amdgpu, i915 and xe, power state, driver, whether it is lent to virtual machines or removable.
std::vector<Device> read_sysfs(const Tree& tree);

/// A Jetson or another board whose device tree names NVIDIA's chip; none elsewhere.
std::optional<Device> read_device_tree(const Tree& tree);

/// What messages of the kernel (dmesg) tell: XIDs, GPUs that fell off the bus, small BARs. A GPU
/// without any message of note is not in it.
std::vector<Device> read_kernel_log(std::string_view text);

}  // namespace zed::gpu
