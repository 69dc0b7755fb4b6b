#pragma once
// A report as others see it: JSON for people and programs, core GPUs for the fleet.

#include <cstdint>
#include <functional>

#include "base/value.hpp"
#include "gpu/device.hpp"

namespace zed::gpu {

/// Nominal GB of dedicated bytes and a model's name (sched/nominal.hpp, which this room may not
/// see).
using Nominal = std::function<std::optional<std::int64_t>(Bytes reported, std::string_view model)>;

/// What identifies a GPU: its UUID, else its bus id, else vendor and number. Never empty.
std::string identity_of(const Device& device);

/// Bytes that count as the GPU's: of dedicated memory its size, of unified memory what a GPU may
/// use; none where unknown.
std::optional<Bytes> reported_memory(const Device& device);

/// The document of `zed-agent probe --json` (docs/hardware.md).
Value probe_document(const Report& report, const Nominal& nominal);
/// The same for people, a line a GPU.
std::string probe_text(const Report& report, const Nominal& nominal);

/// The GPUs as the fleet knows them. What a job could not use is `reserved`, with the reason: lent
/// to virtual machines, a MIG parent, an integrated GPU without a compute runtime. Used memory is
/// counted as strangers' until the agent takes its own jobs' share off.
std::vector<Gpu> core_gpus(const Report& report, const Nominal& nominal);

/// What a job's environment calls this GPU: CUDA and ROCm take a UUID where there is one, else the
/// vendor's number.
std::string visible_name(const Device& device);

}  // namespace zed::gpu
