#pragma once
// The size printed on a GPU's box, found from the bytes that its driver reports.

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/gpu.hpp"
#include "core/requirement.hpp"

namespace zed::sched {

/// The nominal size in GB of dedicated memory: the smallest known size N with
/// 0.90 N <= GiB <= 1.002 N; none if it is near no known one. `model` corrects the few cards whose
/// ECC eats so much that they look like a smaller size.
std::optional<std::int64_t> nominal_size_gb(Bytes reported, std::string_view model);
/// The same for a detected GPU: none for unified memory, what its agent found where that is known.
std::optional<std::int64_t> nominal_size_gb(const Gpu& gpu);

/// What this GPU counts for against a size of that kind: reported bytes against an exact size;
/// nominal GB (as GiB) against a nominal one, or usable bytes where the GPU has no nominal size.
Bytes counted_vram(MemorySize::Kind kind, const Gpu& gpu);
/// Whether a whole GPU has `wanted`. Never compares a nominal size with free bytes.
bool vram_satisfies(const MemorySize& wanted, const Gpu& gpu);
/// RAM of a machine; a nominal size allows the tenth that firmware and kernel keep.
bool ram_satisfies(const MemorySize& wanted, Bytes memory);

}  // namespace zed::sched
