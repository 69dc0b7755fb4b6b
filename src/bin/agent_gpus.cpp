#include "bin/agent_gpus.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "gpu/probed.hpp"
#include "gpu/simulated.hpp"
#include "sched/nominal.hpp"
#include "sched/visible.hpp"

namespace zed::bin {
namespace {

/// A job's processes carry the path of their attempt's socket, which lies in our run folder. What
/// may not be read belongs to somebody else.
bool has_socket_in(std::int64_t pid, const std::string& run_folder) {
  constexpr std::size_t longest = std::size_t{256} << 10;
  std::ifstream file("/proc/" + std::to_string(pid) + "/environ", std::ios::binary);
  std::string text(longest, '\0');
  file.read(text.data(), static_cast<std::streamsize>(longest));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return (std::string(1, '\0') + text)
             .find(std::string(1, '\0') + "ZED_SOCKET=" + run_folder + "/") != std::string::npos;
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
    options.program = std::filesystem::read_symlink("/proc/self/exe");
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
