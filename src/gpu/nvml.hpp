#pragma once
// NVIDIA's management library, loaded at run time.

#include <string>

#include "base/result.hpp"
#include "gpu/device.hpp"

namespace zed::gpu {

/// All GPUs and MIG instances that NVML shows; a GPU that fails is in the answer with its health,
/// at its own number. Opens the library and leaves it again: an open handle keeps a laptop's GPU
/// awake. May hang with the driver: call it in a process that can be given up.
///
/// Errors: `not_found` if there is no such library, `unavailable` if it does not start, its hint
/// saying what to do; `denied` for want of permission is `refused`.
Result<Report> read_nvml(const std::string& library = "libnvidia-ml.so.1");

}  // namespace zed::gpu
