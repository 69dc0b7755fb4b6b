#pragma once
// How much GPU memory a model takes to answer, by its parts. Rules of llama.cpp's allocator,
// measured against test/fixtures/model/measured.tsv; docs/models.md explains each.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/geometry.hpp"

namespace zed::model {

/// How an element of the cache is kept.
enum class CacheType { f32, f16, bf16, q8_0, q5_1, q5_0, q4_1, q4_0, iq4_nl, fp8 };
constexpr auto enum_names(CacheType) {
  return std::array<std::string_view, 10>{"f32",  "f16",  "bf16", "q8_0",   "q5_1",
                                          "q5_0", "q4_1", "q4_0", "iq4_nl", "fp8"};
}

/// How the model is to be used.
struct Workload {
  std::int64_t context = 0;   ///< tokens of each sequence; 0: see context_of()
  std::int64_t parallel = 1;  ///< sequences at once, 1 to 4096
  CacheType keys = CacheType::f16;
  CacheType values = CacheType::f16;
  std::int64_t batch = 512;     ///< tokens computed at once (llama.cpp's ubatch), 1 to 65536
  bool flash_attention = true;  ///< off: all scores are kept while they are computed
  std::int64_t gpus = 1;        ///< layers are dealt out over so many, 1 to 64
  std::optional<std::int64_t> gpu_layers;  ///< only so many layers on the GPUs, the rest on the CPU
};

inline constexpr std::int64_t longest_context = std::int64_t{1} << 28;

/// "q8_0" for both keys and values, "q8_0,f16" for each. Errors: `invalid`, naming what there is.
Status parse_cache_types(std::string_view text, Workload& workload);
/// Errors: `invalid` for a figure out of its range, naming the range.
Status check(const Workload& workload);

/// What a workload without a context gets: the model's own, at most 8,192 tokens; 4,096 where the
/// model does not say.
std::int64_t context_of(const Geometry& geometry, const Workload& workload);

/// Over all GPUs together.
struct Estimate {
  std::int64_t context = 0;  ///< tokens of each sequence that were counted
  Bytes weights;             ///< that are on the GPUs
  Bytes projector;           ///< with its compute
  Bytes cache;               ///< keys and values, recurrent state
  Bytes compute;
  Bytes overhead;  ///< of the driver and its libraries, for each GPU
  Bytes total() const { return weights + projector + cache + compute + overhead; }
};

/// Never fails: a geometry that lacks figures gives an estimate of what is known. `workload` passed
/// check(), `geometry` is sane.
Estimate estimate(const Geometry& geometry, const Workload& workload);

/// Compute buffers of one GPU, counted from 0. Scores are kept only without flash attention; each
/// GPU of several keeps copies of its inputs; only the last makes logits.
Bytes compute_on(const Geometry& geometry, const Workload& workload, std::int64_t gpu);

/// The most that one of the GPUs has to hold: the first has the projector, the last the logits.
Bytes largest_share(const Geometry& geometry, const Workload& workload);

}  // namespace zed::model
