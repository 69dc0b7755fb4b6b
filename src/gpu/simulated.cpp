#include "gpu/simulated.hpp"

#include <array>
#include <fstream>
#include <iterator>

#include "base/describe.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

namespace zed::gpu {
namespace {

/// One line of a profile: `count` equal GPUs.
struct ProfileGpu {
  std::string model;
  std::int64_t vram_mib = 0;
  std::optional<std::int64_t> vram_nominal_gb;
  GpuVendor vendor = GpuVendor::nvidia;
  MemoryKind memory_kind = MemoryKind::dedicated;
  std::string uuid;
  std::string arch;
  std::string driver;
  std::string cuda;
  GpuHealth health = GpuHealth::ok;
  std::string why;
  std::int64_t count = 1;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("model", self.model);
    visit("vram_mib", self.vram_mib);
    visit("vram_nominal_gb", self.vram_nominal_gb);
    visit("vendor", self.vendor);
    visit("memory_kind", self.memory_kind);
    visit("uuid", self.uuid);
    visit("arch", self.arch);
    visit("driver", self.driver);
    visit("cuda", self.cuda);
    visit("health", self.health);
    visit("why", self.why);
    visit("count", self.count);
  }
};

struct Profile {
  std::vector<ProfileGpu> gpus;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("gpus", self.gpus);
  }
};

struct Builtin {
  std::string_view name;
  std::string_view json;
};

// Reported sizes as the drivers of the real cards print them; the M3 Max offers the 48 GiB that
// Metal recommends of its 64.
constexpr std::array<Builtin, 5> builtins{{
    {"rtx-4090", R"({"gpus": [{"model": "NVIDIA GeForce RTX 4090", "vram_mib": 24564,
        "vram_nominal_gb": 24, "arch": "8.9", "driver": "550.54.15", "cuda": "12.4"}]})"},
    {"m3-max-64", R"({"gpus": [{"model": "Apple M3 Max", "vram_mib": 49152, "vendor": "apple",
        "memory_kind": "unified", "arch": "metal3"}]})"},
    {"rtx-3080-10", R"({"gpus": [{"model": "NVIDIA GeForce RTX 3080", "vram_mib": 10240,
        "vram_nominal_gb": 10, "arch": "8.6", "driver": "550.54.15", "cuda": "12.4"}]})"},
    {"2x-a100-80", R"({"gpus": [{"model": "NVIDIA A100-SXM4-80GB", "vram_mib": 81920,
        "vram_nominal_gb": 80, "arch": "8.0", "driver": "550.54.15", "cuda": "12.4",
        "count": 2}]})"},
    {"none", R"({"gpus": []})"},
}};

constexpr std::int64_t most_gpus = 64;

bool is_file(const std::string& profile) {
  return profile.find('/') != std::string::npos || profile.ends_with(".json");
}

Result<std::string> profile_text(const std::string& profile) {
  for (const Builtin& builtin : builtins)
    if (builtin.name == profile) return std::string(builtin.json);
  if (!is_file(profile)) {
    auto nearest = nearest_word(profile, builtin_profiles());
    return fail(ErrorCode::not_found, "there is no GPU profile \"" + profile + "\"",
                nearest ? "did you mean \"" + *nearest + "\"?"
                        : "profiles: " + join(builtin_profiles(), ", ") +
                              "; or name a JSON file of your own");
  }
  std::ifstream file(profile, std::ios::binary);
  if (!file) return fail(ErrorCode::not_found, "cannot open the GPU profile " + profile);
  return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
}

Gpu gpu_of(const ProfileGpu& line, const NodeName& node, std::size_t index) {
  Gpu gpu;
  gpu.uuid = line.uuid.empty() ? "GPU-sim-" + node.str() + "-" + std::to_string(index) : line.uuid;
  gpu.vendor = line.vendor;
  gpu.model = line.model;
  gpu.memory_kind = line.memory_kind;
  gpu.vram_reported = mebibytes(line.vram_mib);
  gpu.vram_nominal_gb = line.vram_nominal_gb;
  gpu.arch = line.arch;
  gpu.driver = line.driver;
  gpu.cuda = line.cuda;
  gpu.health = line.health;
  gpu.why = line.why;
  return gpu;
}

Status check_line(const ProfileGpu& line) {
  constexpr std::int64_t most_vram_mib = std::int64_t{1} << 24;
  if (line.model.empty()) return fail(ErrorCode::invalid, "a GPU without \"model\"");
  if (line.vram_mib < 1 || line.vram_mib > most_vram_mib)
    return fail(ErrorCode::invalid, line.model + ": \"vram_mib\" is missing or out of range");
  if (line.count < 1 || line.count > most_gpus)
    return fail(ErrorCode::invalid, line.model + ": \"count\" is not 1 to 64");
  if (line.count > 1 && !line.uuid.empty())
    return fail(ErrorCode::invalid, line.model + ": several GPUs cannot have one \"uuid\"");
  return {};
}

Result<std::vector<Gpu>> read_profile(const std::string& profile, const NodeName& node) {
  ZED_TRY(std::string text, profile_text(profile));
  ZED_TRY(Value value, parse_json(text));
  ZED_TRY(Profile parsed, from_value<Profile>(value));
  std::vector<Gpu> gpus;
  for (const ProfileGpu& line : parsed.gpus) {
    ZED_CHECK(check_line(line));
    for (std::int64_t i = 0; i < line.count; ++i)
      gpus.push_back(gpu_of(line, node, gpus.size()));
  }
  if (std::ssize(gpus) > most_gpus)
    return fail(ErrorCode::invalid, "more than 64 GPUs on one machine");
  return gpus;
}

}  // namespace

std::vector<std::string> builtin_profiles() {
  std::vector<std::string> names;
  for (const Builtin& builtin : builtins)
    names.emplace_back(builtin.name);
  return names;
}

Result<std::vector<Gpu>> simulated_gpus(const std::string& profile, const NodeName& node) {
  auto gpus = read_profile(profile, node);
  if (!gpus) return fail(std::move(gpus).error().with("GPU profile " + profile));
  return gpus;
}

}  // namespace zed::gpu
