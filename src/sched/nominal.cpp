#include "sched/nominal.hpp"

#include <array>

#include "sched/gpu_name.hpp"

namespace zed::sched {
namespace {

constexpr std::array<std::int64_t, 29> known_sizes{1,  2,  3,   4,   5,   6,   8,   10,  11, 12,
                                                   16, 20, 22,  24,  32,  40,  48,  64,  72, 80,
                                                   94, 96, 128, 141, 144, 180, 192, 256, 288};

struct Corrected {
  std::string_view model;
  std::int64_t nominal_gb;
};
// Cards with ECC always on: what is left can look like a smaller size (an L4 with 22 GiB).
constexpr std::array<Corrected, 9> corrected{{{"T4", 16},
                                              {"L4", 24},
                                              {"A10", 24},
                                              {"A10G", 24},
                                              {"A30", 24},
                                              {"A40", 48},
                                              {"L40", 48},
                                              {"L40S", 48},
                                              {"P40", 24}}};

// 0.90 N <= GiB <= 1.002 N in whole numbers, so that the border is the same everywhere.
bool is_at_least_nine_tenths(Bytes reported, std::int64_t nominal_gb) {
  return reported.value >= gibibytes(nominal_gb).value / 10 * 9;
}
bool is_at_most(Bytes reported, std::int64_t nominal_gb) {
  return reported.value <= gibibytes(nominal_gb).value / 1000 * 1002;
}

}  // namespace

std::optional<std::int64_t> nominal_size_gb(Bytes reported, std::string_view model) {
  for (const Corrected& card : corrected)
    if (is_at_least_nine_tenths(reported, card.nominal_gb) &&
        is_at_most(reported, card.nominal_gb) && name_matches(card.model, model))
      return card.nominal_gb;
  for (std::int64_t size : known_sizes)
    if (is_at_least_nine_tenths(reported, size) && is_at_most(reported, size)) return size;
  return std::nullopt;
}

std::optional<std::int64_t> nominal_size_gb(const Gpu& gpu) {
  if (gpu.memory_kind == MemoryKind::unified) return std::nullopt;
  if (gpu.vram_nominal_gb) return gpu.vram_nominal_gb;
  return nominal_size_gb(gpu.vram_reported, gpu.model);
}

Bytes counted_vram(MemorySize::Kind kind, const Gpu& gpu) {
  if (kind == MemorySize::Kind::exact) return gpu.vram_reported;
  auto nominal = nominal_size_gb(gpu);
  return nominal ? gibibytes(*nominal) : gpu.vram_reported;
}

bool vram_satisfies(const MemorySize& wanted, const Gpu& gpu) {
  return counted_vram(wanted.kind, gpu) >= wanted.bytes();
}

bool ram_satisfies(const MemorySize& wanted, Bytes memory) {
  if (wanted.kind == MemorySize::Kind::exact) return memory >= wanted.bytes();
  return memory.value >= wanted.bytes().value / 10 * 9;
}

}  // namespace zed::sched
