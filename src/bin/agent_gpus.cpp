#include "bin/agent_gpus.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "gpu/probed.hpp"
#include "gpu/simulated.hpp"
#include "net/system.hpp"
#include "proc/process_table.hpp"
#include "sched/nominal.hpp"
#include "sched/visible.hpp"

namespace zed::bin {
namespace {

/// A job's processes carry the path of their attempt's socket, which lies in our run folder. What
/// may not be read belongs to somebody else.
bool has_socket_in(std::int64_t pid, const std::string& run_folder) {
  const std::string beginning = "ZED_SOCKET=" + run_folder + "/";
  const auto entries = proc::environment_of(static_cast<pid_t>(pid));
  return std::any_of(entries.begin(), entries.end(), [&beginning](const std::string& entry) {
    return entry.starts_with(beginning);
  });
}

/// The agent's own environment may leave it some of the machine's GPUs only.
class VisibleGpus final : public env::Gpus {
public:
  explicit VisibleGpus(gpu::ProbedOptions options) : probed_(std::move(options)) {
    for (const char* name : {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES"})
      if (const char* value = std::getenv(name)) environment_[name] = value;
  }
  Result<std::vector<Gpu>> probe() override {
    ZED_TRY(auto gpus, probed_.probe());
    return sched::visible_gpus(gpus, environment_);
  }
  std::vector<Gpu> known() override { return sched::visible_gpus(probed_.known(), environment_); }
  std::vector<GpuLoad> loads() override { return probed_.loads(); }
  std::string visible_name(const std::string& uuid) override { return probed_.visible_name(uuid); }

private:
  gpu::ProbedGpus probed_;
  std::map<std::string, std::string> environment_;
};

}  // namespace

bool are_simulated(const std::string& gpus) {
  return gpus != "auto" && gpus != "none";
}

Result<std::unique_ptr<env::Gpus>> open_gpus(const std::string& gpus, const AgentConfig& config) {
  if (gpus == "auto") {
    gpu::ProbedOptions options;
    ZED_TRY(options.program, net::own_program());
    options.inventory_file = config.state_folder / "gpus.json";
    options.nominal = [](Bytes reported, std::string_view model) {
      return sched::nominal_size_gb(reported, model);
    };
    options.is_ours = [folder = config.run_folder.string()](std::int64_t pid) {
      return has_socket_in(pid, folder);
    };
    return std::make_unique<VisibleGpus>(std::move(options));
  }
  auto simulated = std::make_unique<gpu::SimulatedGpus>(gpus, config.name);
  ZED_CHECK(simulated->probe());
  return simulated;
}

}  // namespace zed::bin
