#pragma once
// What xpu-smi, system_profiler, sysctl and lspci print, as text.

#include <string_view>

#include "base/result.hpp"
#include "gpu/device.hpp"

namespace zed::gpu {

/// `xpu-smi discovery -j`, of all devices or of one (-d N). Numbers are text there.
Result<Report> read_xpu_smi(std::string_view text);

/// `system_profiler SPDisplaysDataType -json`. A key that is absent is unknown, not 0.
Result<Report> read_system_profiler(std::string_view text);

/// `sysctl hw.memsize machdep.cpu.brand_string iogpu.wired_limit_mb`: one that is unknown does not
/// spoil the others.
struct AppleFacts {
  std::optional<Bytes> memory;
  std::string brand;
  std::optional<Bytes> wired_limit;  ///< none also for 0, which means "the default"
  std::optional<Bytes> working_set;  ///< what Metal recommends, where it can be asked
};
AppleFacts read_apple_sysctl(std::string_view text);
/// Gives Apple's own GPUs their share of the memory: what Metal recommends, else the limit that a
/// person set, else three quarters; makes one where only sysctl knows of it.
void settle_apple_memory(Report& report, const AppleFacts& facts);

/// `lspci -Dmmnn`: displays and 3D controllers of the three vendors.
std::vector<Device> read_lspci(std::string_view text);

}  // namespace zed::gpu
