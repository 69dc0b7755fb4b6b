#pragma once
// The GPUs that are really there, asked by a helper process that may be given up.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>

#include "env/gpus.hpp"
#include "gpu/inventory.hpp"

namespace zed::gpu {

struct ProbedOptions {
  std::string program;                   ///< zed-agent, for `probe --full`
  std::filesystem::path inventory_file;  ///< the last known inventory, kept across restarts
  Nominal nominal;
  /// Whether a process belongs to one of our jobs; what others hold of a GPU is strangers'.
  std::function<bool(std::int64_t pid)> is_ours;
};

/// Thread-safe: known(), loads() and visible_name() may be called while probe() blocks.
class ProbedGpus final : public env::Gpus {
public:
  explicit ProbedGpus(ProbedOptions options);
  /// Runs the helper. A helper that does not end is given up: the last known GPUs are then stale,
  /// and the next probe has more patience. The inventory is written after each that answered.
  Result<std::vector<Gpu>> probe() override;
  std::vector<Gpu> known() override;
  std::vector<GpuLoad> loads() override;
  std::string visible_name(const std::string& uuid) override;

private:
  Result<Report> ask();
  Status write_inventory(const Report& report) const;
  std::vector<Gpu> gpus_of(const Report& report) const;

  ProbedOptions options_;
  std::mutex mutex_;
  Report last_;      ///< under mutex_
  Millis patience_;  ///< of each tool; used by probe() alone
};

/// What of a GPU's used memory is neither ours nor the driver's, rounded so that small movements
/// are no change. Where a driver does not say who uses what, all of it is ours if we use any.
Bytes strangers_of(const Device& device, const std::function<bool(std::int64_t pid)>& is_ours);

}  // namespace zed::gpu
