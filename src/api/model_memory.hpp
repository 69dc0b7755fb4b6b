#pragma once
// From how a model is to be used to the memory that it takes.

#include <cstdint>

#include "api/model_operations.hpp"
#include "model/estimate.hpp"

namespace zed::api {

/// Errors: `invalid`, naming the figure that is out of its range.
Result<model::Workload> workload_of(const ModelUse& use, std::int64_t gpus);

MemoryParts memory_of(const model::Geometry& geometry, const model::Workload& workload);

}  // namespace zed::api
