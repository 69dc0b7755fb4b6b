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
  /// What is known without asking, for the moments until the first probe ends. Never blocks long.
  virtual std::vector<Gpu> known() { return {}; }
  /// How busy they were at the last probe. Thread-safe against probe().
  virtual std::vector<GpuLoad> loads() { return {}; }
  /// What a job's environment calls this GPU (CUDA_VISIBLE_DEVICES and its kin): the UUID, or a
  /// number where the vendor's runtime takes nothing else. Thread-safe against probe().
  virtual std::string visible_name(const std::string& uuid) { return uuid; }
};

}  // namespace zed::env
