#pragma once
// `amd-smi static --json` and `rocm-smi`, as text. rocm-smi is asked for JSON; some versions print
// text, a table or CSV all the same, and warnings come first.

#include <cstdint>
#include <string_view>

#include "base/result.hpp"
#include "gpu/device.hpp"

namespace zed::gpu {

/// Error: `corrupt` if there is no JSON, or JSON of another shape. One odd device never hides the
/// others.
Result<Report> read_amd_smi(std::string_view text);
/// The same for any form that rocm-smi prints.
Result<Report> read_rocm_smi(std::string_view text);

/// "gfx1151" of KFD's gfx_target_version 110501; empty for 0.
std::string gfx_name(std::int64_t target_version);
/// A part whose memory is the host's, by its PCI id ("1002:1586") or its architecture.
bool is_amd_apu(std::string_view pci_id, std::string_view arch);

/// Decides memory_kind and what of a shared pool may be used.
void settle_amd_memory(Device& device, const std::string& source);

}  // namespace zed::gpu
