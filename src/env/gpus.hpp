#pragma once
// Gpus: what detects the GPUs of one machine.

#include <vector>

#include "base/result.hpp"
#include "core/gpu.hpp"

namespace zed::env {

class Gpus {
public:
  virtual ~Gpus() = default;
  /// All GPUs, each with its health; one that fails never hides the others. May block up to its own
  /// deadline; call it from a worker. Errors: `timeout` (the last inventory is stale), `io`.
  virtual Result<std::vector<Gpu>> probe() = 0;
};

}  // namespace zed::env
