#pragma once
// The variables of a job's environment that say what it was given.

#include <string_view>

#include "core/gpu.hpp"

namespace zed {

/// The variable by which a vendor's runtime is told which GPUs it may see; nullptr if it has none.
const char* visibility_variable(GpuVendor vendor);

/// Whether each attempt gets that variable from its agent: nobody else's value would last.
bool is_set_by_zed(std::string_view variable);

}  // namespace zed
