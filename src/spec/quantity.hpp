#pragma once
// Quantities as people write them in the cluster file and on the command line.

#include <cstdint>
#include <string_view>

#include "base/result.hpp"
#include "base/units.hpp"
#include "core/requirement.hpp"

namespace zed::spec {

/// "90 seconds", "15 minutes", "12 hours", "2 days"; also s, sec, m, min, h, d. Whole, positive, at
/// most 10 years. Errors: `invalid`.
Result<Millis> parse_duration(std::string_view text);

/// "200 MB/s" (bytes, decimal), "50 Mbit/s" (bits): k, M, G, T, and KiB/s to TiB/s. Gives bytes per
/// second, at least 1. Errors: `invalid`.
Result<Bytes> parse_rate(std::string_view text);

/// "1 epoch", "5 epochs", "500 steps", or a duration of at least 1 second. Errors: `invalid`.
Result<CheckpointPolicy> parse_checkpoint_policy(std::string_view text);

/// "24GB" (nominal), "24GiB", "24564 MiB" (exact). A fraction ("1.5") counts as that many GiB,
/// exact. Positive. Errors: `invalid`.
Result<MemorySize> parse_memory_size(std::string_view text);

/// A number without unit: whole ones are nominal GB, others that many GiB, exact. Errors: `invalid`
/// unless it is above 0 and in range.
Result<MemorySize> memory_size_of(double gigabytes);

}  // namespace zed::spec
