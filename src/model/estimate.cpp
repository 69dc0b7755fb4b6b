#include "model/estimate.hpp"

#include <algorithm>

#include "base/enum.hpp"
#include "base/text.hpp"

namespace zed::model {
namespace {

constexpr std::int64_t default_context = 8192;
constexpr std::int64_t unknown_context = 4096;
/// Caches are allocated in steps of so many tokens (llama-kv-cache.cpp).
constexpr std::int64_t cell_step = 256;
/// Of a driver's context, its libraries' workspaces and pools.
constexpr Bytes gpu_overhead = mebibytes(512);
/// Small batches of an encoder need no pools besides the context (measured row 13).
constexpr Bytes encoder_overhead = mebibytes(320);
/// Copies of a batch's inputs while several GPUs work on several batches at once
/// (GGML_SCHED_MAX_COPIES).
constexpr std::int64_t pipeline_copies = 4;

struct Ratio {
  std::int64_t bytes;
  std::int64_t elements;
};
Ratio ratio_of(CacheType type) {
  switch (type) {
  case CacheType::f32: return {4, 1};
  case CacheType::f16:
  case CacheType::bf16: return {2, 1};
  case CacheType::q8_0: return {34, 32};
  case CacheType::q5_1: return {24, 32};
  case CacheType::q5_0: return {22, 32};
  case CacheType::q4_1: return {20, 32};
  case CacheType::q4_0:
  case CacheType::iq4_nl: return {18, 32};
  case CacheType::fp8: return {1, 1};
  }
  return {2, 1};
}

std::int64_t padded(std::int64_t tokens) {
  return (tokens + cell_step - 1) / cell_step * cell_step;
}

/// Sums of products of outside figures: as doubles, cut off where no machine comes near. 2^53 bytes
/// are exact.
Bytes bytes_of(double bytes) {
  constexpr double most = 1e18;
  return Bytes{static_cast<std::int64_t>(std::clamp(bytes, 0.0, most))};
}
double real(std::int64_t n) {
  return static_cast<double>(n);
}

/// Tokens of all sequences that a layer remembers.
std::int64_t cells_of(const LayerGroup& group, std::int64_t context, const Workload& workload) {
  const std::int64_t all = padded(context) * workload.parallel;
  if (group.window == 0) return all;
  const std::int64_t seen = std::min(group.window, longest_context) * workload.parallel;
  return std::min(all, padded(seen + workload.batch));
}

double cache_of(const LayerGroup& group, std::int64_t context, const Workload& workload) {
  const Ratio k = ratio_of(workload.keys);
  const Ratio v = ratio_of(workload.values);
  const double row = real(group.k_dim) * real(k.bytes) / real(k.elements) +
                     real(group.v_dim) * real(v.bytes) / real(v.elements);
  const double cells = group.kv_heads == 0 ? 0 : real(cells_of(group, context, workload));
  return real(group.layers) *
         (real(group.kv_heads) * row * cells + real(group.state) * real(workload.parallel));
}

/// As compute_on().
double compute_of(const Geometry& geometry, const Workload& workload, std::int64_t context,
                  bool makes_logits) {
  const double batch = real(std::min(workload.batch, context * workload.parallel));
  const bool caches = std::any_of(geometry.groups.begin(), geometry.groups.end(),
                                  [](const LayerGroup& group) { return group.kv_heads != 0; });
  const double cells = caches             ? real(padded(context) * workload.parallel)
                       : geometry.encoder ? batch
                                          : 0;
  const bool pipelined = workload.gpus > 1;
  const double hidden = batch * real(geometry.hidden) * 4;
  double sum = 4 * hidden;  // what one layer hands on
  sum += (pipelined ? real(pipeline_copies) : 1) * hidden;
  sum += pipelined ? real(pipeline_copies) * batch * cells * 4 : batch * cells * 2;  // the mask
  if (!workload.flash_attention) sum += real(geometry.heads) * cells * batch * 4;
  if (makes_logits) sum += batch * real(geometry.vocab) * 4;
  return sum;
}

/// How much of the layers is on the GPUs, 0 to 1, and whether the logits are made there: layers
/// come first, what makes the logits counts as one more.
struct Offload {
  double part = 1;
  bool output = true;
};
Offload offload_of(const Geometry& geometry, const Workload& workload) {
  if (!workload.gpu_layers || geometry.layers == 0) return {};
  const std::int64_t layers = std::min(*workload.gpu_layers, geometry.layers);
  return {real(layers) / real(geometry.layers), *workload.gpu_layers > geometry.layers};
}

}  // namespace

Status parse_cache_types(std::string_view text, Workload& workload) {
  const std::vector<std::string> words = split(text, ',');
  const auto keys = enum_of<CacheType>(lower(trim(words.front())));
  const auto values = enum_of<CacheType>(lower(trim(words.back())));
  if (!keys || !values || words.size() > 2) {
    std::vector<std::string> known;
    for (const std::string_view name : enum_names(CacheType{}))
      known.emplace_back(name);
    return fail(ErrorCode::invalid,
                "\"" + percent_encode(text.substr(0, 80)) + "\" is no type of a cache",
                "it takes one of " + join(known, ", ") + ", or two with a comma: keys,values");
  }
  workload.keys = *keys;
  workload.values = *values;
  return {};
}

Status check(const Workload& workload) {
  const auto within = [](std::int64_t n, std::int64_t least, std::int64_t most, const char* what) {
    if (n >= least && n <= most) return Status();
    return Status(fail(ErrorCode::invalid, std::string(what) + " " + std::to_string(n) +
                                               " is not from " + std::to_string(least) + " to " +
                                               std::to_string(most)));
  };
  ZED_CHECK(within(workload.context, 0, longest_context, "context"));
  ZED_CHECK(within(workload.parallel, 1, 4096, "parallel"));
  ZED_CHECK(within(workload.batch, 1, 65'536, "batch"));
  ZED_CHECK(within(workload.gpus, 1, 64, "gpus"));
  return within(workload.gpu_layers.value_or(0), 0, 65'536, "gpu layers");
}

std::int64_t context_of(const Geometry& geometry, const Workload& workload) {
  if (workload.context != 0) return workload.context;
  if (geometry.context == 0) return unknown_context;
  return std::min(geometry.context, default_context);
}

Estimate estimate(const Geometry& geometry, const Workload& workload) {
  Estimate sum;
  sum.context = context_of(geometry, workload);
  const Offload offload = offload_of(geometry, workload);
  const double layers =
      real((geometry.weights - geometry.embedding - geometry.output).value) * offload.part;
  sum.weights = bytes_of(layers + (offload.output ? real(geometry.output.value) : 0));
  sum.projector = geometry.projector + geometry.projector_compute;
  double cache = 0;
  for (const LayerGroup& group : geometry.groups)
    cache += cache_of(group, sum.context, workload);
  sum.cache = bytes_of(cache * offload.part);
  const double compute =
      compute_of(geometry, workload, sum.context, offload.output) +
      real(workload.gpus - 1) * compute_of(geometry, workload, sum.context, false);
  sum.compute = bytes_of(compute);
  sum.overhead = (geometry.encoder ? encoder_overhead : gpu_overhead) * workload.gpus;
  return sum;
}

Bytes compute_on(const Geometry& geometry, const Workload& workload, std::int64_t gpu) {
  const bool last = gpu == workload.gpus - 1 && offload_of(geometry, workload).output;
  return bytes_of(compute_of(geometry, workload, context_of(geometry, workload), last));
}

Bytes largest_share(const Geometry& geometry, const Workload& workload) {
  const Estimate all = estimate(geometry, workload);
  if (workload.gpus == 1) return all.total();
  // Whole layers are dealt out: one GPU has up to one more than its part.
  const double gpus = real(workload.gpus);
  const double layers = real(std::max<std::int64_t>(geometry.layers, 1));
  const double most = std::min(1.0, 1 / gpus + 1 / layers);
  const double dealt = real((all.weights - geometry.output).value + all.cache.value) * most;
  const double first =
      dealt + real(all.projector.value) + compute_of(geometry, workload, all.context, false);
  const double last =
      dealt + real(geometry.output.value) + compute_of(geometry, workload, all.context, true);
  return bytes_of(std::max(first, last)) + Bytes{all.overhead.value / workload.gpus};
}

}  // namespace zed::model
