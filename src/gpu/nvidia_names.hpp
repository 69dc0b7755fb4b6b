#pragma once
// Inside the room: what NVIDIA's names and figures mean, whichever tool printed them.

#include <cstdint>
#include <string>
#include <string_view>

#include "gpu/device.hpp"

namespace zed::gpu {

/// A part that shares the host's memory (Jetson, GB10, N1X), whatever it reports as its own.
bool is_integrated_nvidia(std::string_view model);
/// A product known to have memory of its own.
bool is_discrete_nvidia(std::string_view model);
/// "GPU-…", "MIG-…" as drivers write them: at most 96 letters, digits, '-' and '/'.
bool is_uuid(std::string_view text);
/// A slice of a card lent to a virtual machine: "NVIDIA H100L-2-24C", "GRID T4-8C".
bool is_vgpu(std::string_view model);

/// Decides memory_kind, reserved and used from what was read. A present device that says "not
/// supported" for its memory shares the host's; one that says "no permission" does not. Where used
/// and free leave a gap to the total, the gap is the driver's.
void settle_nvidia_memory(Device& device, const std::string& source);

/// What to make of the text with which nvidia-smi or NVML failed; `status` is the exit status.
/// Devices may come from it (a lost GPU's bus id).
void explain_nvidia_failure(std::string_view text, int status, Report& report);

/// Whether nothing can use the driver until a person acted (missing, mismatched): what else the
/// machine shows of NVIDIA GPUs is there and of no use.
bool is_driver_down(std::string_view text, int status);

/// An XID that an application causes; it says nothing about the GPU.
bool is_application_xid(std::int64_t xid);
/// After which the GPU works again only when reset.
bool needs_reset_after(std::int64_t xid);

}  // namespace zed::gpu
