#include "api/model_memory.hpp"

namespace zed::api {

Result<model::Workload> workload_of(const ModelUse& use, std::int64_t gpus) {
  model::Workload workload;
  workload.context = use.context;
  workload.parallel = use.parallel;
  workload.batch = use.batch;
  workload.flash_attention = use.flash_attention;
  workload.gpus = gpus;
  ZED_CHECK(model::parse_cache_types(use.cache, workload));
  ZED_CHECK(model::check(workload));
  return workload;
}

MemoryParts memory_of(const model::Geometry& geometry, const model::Workload& workload) {
  const model::Estimate sum = model::estimate(geometry, workload);
  MemoryParts parts;
  parts.context = sum.context;
  parts.gpus = workload.gpus;
  parts.weights = sum.weights;
  parts.projector = sum.projector;
  parts.cache = sum.cache;
  parts.compute = sum.compute;
  parts.overhead = sum.overhead;
  parts.total = sum.total();
  parts.largest = model::largest_share(geometry, workload);
  return parts;
}

}  // namespace zed::api
