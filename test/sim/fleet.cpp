#include "sim/fleet.hpp"

#include <fmt/format.h>

#include "sim/operator.hpp"
#include "sim/random.hpp"

namespace zed::sim {
namespace {

Gpu gpu_of(const std::string& node, int index, const std::string& model, std::int64_t gb,
           MemoryKind kind) {
  Gpu gpu;
  gpu.uuid = fmt::format("GPU-{}-{}", node, index);
  gpu.vendor = kind == MemoryKind::unified ? GpuVendor::apple : GpuVendor::nvidia;
  gpu.model = model;
  gpu.memory_kind = kind;
  gpu.vram_reported = gibibytes(gb);
  if (kind == MemoryKind::dedicated) gpu.vram_nominal_gb = gb;
  gpu.arch = "8.0";
  gpu.driver = "550.54.15";
  gpu.cuda = "12.4";
  return gpu;
}

}  // namespace

std::vector<Hardware> simulated_hardware(std::size_t machines) {
  std::vector<Hardware> all;
  for (std::size_t i = 0; i < machines; ++i) {
    const std::string number = i < 4 ? "" : std::to_string(i / 4 + 1);
    Hardware hardware;
    switch (i % 4) {
    case 0:
      hardware.name = "server" + number;
      for (int index = 0; index < 2; ++index)
        hardware.gpus.push_back(
            gpu_of(hardware.name, index, "NVIDIA A100-SXM4-80GB", 80, MemoryKind::dedicated));
      hardware.memory_gib = 512;
      break;
    case 1:
      hardware.name = "workstation" + number;
      hardware.gpus = {
          gpu_of(hardware.name, 0, "NVIDIA GeForce RTX 4090", 24, MemoryKind::dedicated)};
      break;
    case 2:
      hardware.name = "laptop" + number;
      hardware.gpus = {gpu_of(hardware.name, 0, "NVIDIA GeForce RTX 3080 Laptop GPU", 10,
                              MemoryKind::dedicated)};
      hardware.laptop = true;
      break;
    default:
      hardware.name = "macbook" + number;
      hardware.gpus = {gpu_of(hardware.name, 0, "Apple M3 Max", 48, MemoryKind::unified)};
      hardware.laptop = true;
      break;
    }
    all.push_back(std::move(hardware));
  }
  return all;
}

namespace {

/// What `keep` says, of a job or a policy.
std::string drawn_keep(Random& random) {
  std::string text = fmt::format("    keep last: {}", random.between(1, 4));
  if (random.chance(300)) text += ", best: 1, metric: \"loss\", mode: :min";
  if (random.chance(300)) text += fmt::format(", every: {}", random.between(2, 4));
  return text + "\n";
}

std::string drawn_job(Random& random, std::size_t number, bool has_model,
                      const ClusterShape& shape) {
  std::string text =
      fmt::format("  job :{} do\n    run [\"train\", \"{}\"]\n", job_name(number), number);
  text +=
      fmt::format("    requires gpus: 1, vram: {}\n    retries 6\n", random.chance(500) ? 8 : 20);
  if (random.chance(600)) text += "    prefer gpu: \"A100\"\n";
  text += fmt::format("    copies {}\n", random.chance(350) ? 2 : 1);
  if (random.chance(shape.all_keep ? 1000 : 300)) text += drawn_keep(random);
  if (random.chance(150)) text += "    exclusive true\n";
  if (random.chance(100))
    text += fmt::format("    timeout \"{} seconds\"\n", random.between(15, 150));
  if (random.chance(300)) text += fmt::format("    priority {}\n", random.between(1, 20) - 10);
  if (has_model && random.chance(500)) text += "    model :base\n";
  if (number > 0 && random.chance(120))
    text += fmt::format("    after :{}\n", job_name(random.index(number)));
  return text + "  end\n";
}

std::string drawn_policy(Random& random, const std::string& what, const std::string& from,
                         const std::vector<Hardware>& machines) {
  std::string targets;
  for (const Hardware& machine : machines)
    if (machine.name != from && random.chance(600))
      targets += (targets.empty() ? ":" : ", :") + machine.name;
  if (targets.empty()) return "";
  std::string text =
      fmt::format("  replicate :{} do\n    from :{}\n    to [{}]\n", what, from, targets);
  if (random.chance(500)) text += fmt::format("    every \"{} seconds\"\n", random.between(10, 60));
  if (random.chance(300)) text += "    max_rate \"100 MB/s\"\n";
  if (random.chance(400)) text += drawn_keep(random);
  return text + "  end\n";
}

}  // namespace

std::string simulated_cluster(std::uint64_t seed, const ClusterShape& shape) {
  Random random(seed, "cluster");
  const std::vector<Hardware> hardware = simulated_hardware(shape.machines);
  std::string text = "deploy :simulated, pool: \"tank\" do\n";
  const bool has_model = random.chance(400);
  if (has_model) text += "  model :base do\n    file \"/models/base\"\n  end\n";
  for (std::size_t number = 0; number < shape.jobs; ++number)
    text += drawn_job(random, number, has_model, shape);
  if (has_model && random.chance(500))
    text += drawn_policy(random, "models", shape.files_on, hardware);
  if (random.chance(300))
    text += drawn_policy(random, "jobs", hardware[random.index(hardware.size())].name, hardware);
  return text + "end\n";
}

std::string plain_cluster(std::size_t jobs) {
  std::string text = "deploy :simulated, pool: \"tank\" do\n";
  for (std::size_t number = 0; number < jobs; ++number)
    text += fmt::format("  job :{} do\n    run [\"train\", \"{}\"]\n    requires gpus: 1, vram: 8\n"
                        "    prefer gpu: \"A100\"\n    retries 6\n  end\n",
                        job_name(number), number);
  return text + "end\n";
}

}  // namespace zed::sim
