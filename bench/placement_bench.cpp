// Placement decisions a second on one core. A decision is: find the best node and GPUs, reserve
// them, and let an older job's go, so that the fleet stays about two thirds full.
//
//   placement_bench --benchmark_filter=Decide

#include <algorithm>
#include <chrono>
#include <deque>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "sched/place.hpp"

namespace zed::sched {
namespace {

Gpu gpu_of(std::size_t kind, const std::string& uuid, std::int64_t numa) {
  struct Card {
    const char* model;
    std::int64_t reported_mib;
    std::int64_t nominal_gb;
    const char* arch;
  };
  static const Card cards[] = {{"NVIDIA A100-SXM4-80GB", 81920, 80, "8.0"},
                               {"NVIDIA H100 80GB HBM3", 81559, 80, "9.0"},
                               {"NVIDIA GeForce RTX 4090", 24564, 24, "8.9"},
                               {"NVIDIA L40S", 46068, 48, "8.9"}};
  const Card& card = cards[kind % 4];
  Gpu gpu;
  gpu.uuid = uuid;
  gpu.vendor = GpuVendor::nvidia;
  gpu.model = card.model;
  gpu.vram_reported = mebibytes(card.reported_mib);
  gpu.vram_nominal_gb = card.nominal_gb;
  gpu.vram_reserved = mebibytes(300);
  gpu.arch = card.arch;
  gpu.driver = "550.54.15";
  gpu.cuda = "12.4";
  gpu.numa_node = numa;
  return gpu;
}

NodeName name_of(std::size_t number) {
  return NodeName::parse("node-" + std::to_string(100000 + number)).value();
}

/// Machines of 8 GPUs on two NUMA nodes, four models, every pool filled differently.
FleetView fleet_of(std::size_t nodes) {
  FleetView fleet;
  for (std::size_t i = 0; i < nodes; ++i) {
    Node node;
    node.name = name_of(i);
    node.facts.os = "linux";
    node.facts.memory = gibibytes(500) + kibibytes(static_cast<std::int64_t>(i * 37 % 1000));
    node.pool_free = gibibytes(static_cast<std::int64_t>(200 + i * 131 % 3000));
    for (std::int64_t g = 0; g < 8; ++g)
      node.gpus.push_back(gpu_of(i % 4, "GPU-" + node.name.str() + "-" + std::to_string(g), g / 4));
    fleet.nodes.emplace(node.name, node);
  }
  return fleet;
}

JobId id_of(std::uint64_t number) {
  JobId id;
  for (std::size_t i = 0; i < 8; ++i)
    id.bytes[i] = static_cast<std::uint8_t>(number >> (8 * i));
  return id;
}

/// Ten kinds of jobs: sizes, several GPUs, wishes, inputs held by three nodes, shared cards.
std::vector<PlaceRequest> jobs_of(std::size_t nodes) {
  const char* requirements[] = {
      "vram:48",        "vram:24",           "vram:80,gpus:2",  "gpu:RTX 4090", "vram:24,gpus:4",
      "vram_total:160", "vram:8,share:true", "vram:40,cuda:12", "gpus:8",       "memory:64"};
  std::vector<PlaceRequest> jobs;
  for (std::size_t i = 0; i < 10; ++i) {
    PlaceRequest request;
    request.job.requirement = Requirement::parse(requirements[i]).value();
    request.job.dataset = DatasetName::parse("jobs/bench").value();
    if (i % 2 == 0 && i < 8) request.job.prefer = {{Wish::Kind::gpu, "A100"}};
    if (i % 3 == 0) {
      InputData input{DatasetName::parse("models/llama").value(), gibibytes(40), {}};
      for (std::size_t k = 0; k < 3; ++k)
        input.missing[name_of((i * 977 + k * 313) % nodes)] = Bytes{};
      request.inputs.push_back(input);
    }
    jobs.push_back(request);
  }
  return jobs;
}

void decide(benchmark::State& state) {
  auto nodes = static_cast<std::size_t>(state.range(0));
  Index index(fleet_of(nodes));
  std::vector<PlaceRequest> jobs = jobs_of(nodes);
  std::deque<JobId> running;
  std::uint64_t next = 1;
  std::vector<double> micros;
  std::int64_t placed = 0;
  auto decide_one = [&] {
    PlaceRequest& request = jobs[next % jobs.size()];
    request.job.id = id_of(next++);
    auto placement = place(index, request);
    if (placement) {
      ++placed;
      index.reserve(reservation_of(request, *placement));
      running.push_back(request.job.id);
    }
    if (running.size() > nodes * 2) {
      index.release(running.front());
      running.pop_front();
    }
    benchmark::DoNotOptimize(placement);
  };
  while (running.size() < nodes * 2 && next < nodes * 4)
    decide_one();
  placed = 0;
  for (auto _ : state) {
    auto begin = std::chrono::steady_clock::now();
    decide_one();
    auto end = std::chrono::steady_clock::now();
    micros.push_back(std::chrono::duration<double, std::micro>(end - begin).count());
  }
  std::sort(micros.begin(), micros.end());
  state.counters["decisions/s"] =
      benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
  state.counters["placed"] =
      benchmark::Counter(static_cast<double>(placed), benchmark::Counter::kAvgIterations);
  state.counters["p50_us"] = micros[micros.size() / 2];
  state.counters["p99_us"] = micros[micros.size() * 99 / 100];
}

void exhaustive(benchmark::State& state) {
  auto nodes = static_cast<std::size_t>(state.range(0));
  FleetView fleet = fleet_of(nodes);
  PlaceRequest request = jobs_of(nodes)[0];
  for (auto _ : state)
    benchmark::DoNotOptimize(place(fleet, request));
}

void update(benchmark::State& state) {
  auto nodes = static_cast<std::size_t>(state.range(0));
  FleetView fleet = fleet_of(nodes);
  Index index(fleet);
  std::size_t i = 0;
  for (auto _ : state) {
    Node& node = fleet.nodes.at(name_of(i++ % nodes));
    node.pool_free += mebibytes(1);
    index.update(node, {});
  }
}

BENCHMARK(decide)->Name("Decide")->Arg(1000)->Arg(10000)->Unit(benchmark::kMicrosecond);
BENCHMARK(exhaustive)->Name("Exhaustive")->Arg(1000)->Unit(benchmark::kMicrosecond);
BENCHMARK(update)->Name("UpdateNode")->Arg(10000)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace zed::sched

BENCHMARK_MAIN();
