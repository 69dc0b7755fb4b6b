#pragma once
// `nvidia-smi -q -x`, as text: versions 9 to 13 of its document.

#include <string_view>

#include "base/result.hpp"
#include "gpu/device.hpp"

namespace zed::gpu {

/// One device a <gpu>; of a GPU in MIG mode its instances too, behind it, without UUID or profile
/// (only -L has those). At most 4 MiB of text. Error: `corrupt` if it is no such document.
Result<Report> read_nvidia_xml(std::string_view text);

}  // namespace zed::gpu
