#pragma once
// Asking everything that a machine has about its GPUs.

#include <filesystem>
#include <optional>
#include <string>

#include "base/units.hpp"
#include "gpu/device.hpp"

namespace zed::gpu {

struct ProbeOptions {
  std::filesystem::path root = "/";    ///< where /sys, /proc, /etc and the device tree are read
  Millis tool_deadline = seconds(10);  ///< of each tool; two seconds are too few on a busy machine
  /// This program: NVML is read by `<self> probe --nvml`, which may hang without us. Empty: NVML is
  /// not read.
  std::string self;
  /// Ask NVIDIA's driver though a GPU is powered off: NVML and nvidia-smi wake them all.
  bool wake = false;
  /// Ask it once for a GPU that is powered off and of which `last` knows nothing.
  bool wake_unknown = false;
  std::optional<Report> last;  ///< the last known inventory
};

/// Every GPU with all that its tools say, merged (gpu/merge.hpp). Never fails: what could not be
/// asked is a problem of the report. Takes at most a few deadlines. Blocks; call it from a worker
/// or a process of its own.
Report probe_machine(const ProbeOptions& options);

}  // namespace zed::gpu
