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

Cluster simulated_cluster(std::uint64_t seed, std::size_t jobs) {
  Random random(seed, "cluster");
  Cluster cluster;
  cluster.name = "simulated";
  cluster.pool = "tank";
  for (std::size_t i = 0; i < jobs; ++i) {
    Job job;
    job.name = JobName(job_name(i));
    job.dataset = *DatasetName::parse("jobs/" + job_name(i));
    job.argv = {"train", std::to_string(i)};
    job.requirement.gpus = 1;
    job.requirement.vram = MemorySize{MemorySize::Kind::nominal_gb, random.chance(500) ? 8 : 20};
    if (random.chance(600)) job.prefer = {{Wish::Kind::gpu, "A100"}};
    job.copies = random.chance(150) ? 2 : 1;
    job.retries = 6;
    job.grace = seconds(random.between(1, 4));
    cluster.jobs.push_back(std::move(job));
  }
  return cluster;
}

}  // namespace zed::sim
