#pragma once
// A GPU as an agent detected it. Identity is the UUID, then the PCI bus id; never an index.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"

namespace zed {

enum class GpuVendor { nvidia, amd, intel, apple, simulated, other };
constexpr auto enum_names(GpuVendor) {
  return std::array<std::string_view, 6>{"nvidia", "amd", "intel", "apple", "simulated", "other"};
}

/// dedicated: its own memory. unified: one pool shared with the host, counted once. slice: a MIG
/// instance or a vGPU. coherent: dedicated, addressable by the CPU (GH200).
enum class MemoryKind { dedicated, unified, slice, coherent };
constexpr auto enum_names(MemoryKind) {
  return std::array<std::string_view, 4>{"dedicated", "unified", "slice", "coherent"};
}

/// Only ok and degraded take new jobs.
enum class GpuHealth { ok, degraded, reset_required, lost, stale, no_driver, reserved };
constexpr auto enum_names(GpuHealth) {
  return std::array<std::string_view, 7>{"ok",    "degraded",  "reset-required", "lost",
                                         "stale", "no-driver", "reserved"};
}
constexpr bool is_schedulable(GpuHealth health) {
  return health == GpuHealth::ok || health == GpuHealth::degraded;
}

struct Gpu {
  std::string uuid;    ///< "GPU-6f…", "MIG-…"; never empty
  std::string bus_id;  ///< "0000:01:00.0"; may be empty
  GpuVendor vendor = GpuVendor::other;
  std::string model;  ///< as the driver prints it: "NVIDIA A100-SXM4-80GB"
  MemoryKind memory_kind = MemoryKind::dedicated;
  Bytes vram_reported;  ///< usable bytes; for unified memory what a GPU may use
  std::optional<std::int64_t> vram_nominal_gb;  ///< 24 for a 24 GB card; none for unified memory
  Bytes vram_reserved;                          ///< by the driver
  Bytes vram_strangers;                         ///< used by processes that are not ours
  std::string arch;                             ///< compute capability "8.0", "gfx1100"
  std::string driver;                           ///< "550.54.15"
  std::string cuda;                             ///< "12.4"; empty where none
  std::string mig_parent;                       ///< UUID of the GPU that this is an instance of
  std::int64_t numa_node = -1;
  std::string island;  ///< GPUs of one node with the same word reach each other by NVLink or xGMI
  GpuHealth health = GpuHealth::ok;
  std::string why;  ///< what is wrong, for people; empty when ok

  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("uuid", self.uuid);
    visit("bus_id", self.bus_id);
    visit("vendor", self.vendor);
    visit("model", self.model);
    visit("memory_kind", self.memory_kind);
    visit("vram_reported", self.vram_reported);
    visit("vram_nominal_gb", self.vram_nominal_gb);
    visit("vram_reserved", self.vram_reserved);
    visit("vram_strangers", self.vram_strangers);
    visit("arch", self.arch);
    visit("driver", self.driver);
    visit("cuda", self.cuda);
    visit("mig_parent", self.mig_parent);
    visit("numa_node", self.numa_node);
    visit("island", self.island);
    visit("health", self.health);
    visit("why", self.why);
  }
  friend bool operator==(const Gpu&, const Gpu&) = default;
};

/// How busy a GPU was at one moment. For people: nothing is decided by it, since a figure may be
/// latched (a killed kernel leaves 100 % on some). What the driver does not tell is absent.
struct GpuLoad {
  std::string uuid;
  WallTime at;
  std::optional<std::int64_t> utilization;  ///< per cent
  std::optional<Bytes> used;                ///< of its memory, whoever uses it
  std::optional<std::int64_t> temperature;  ///< degrees Celsius
  std::optional<double> power;              ///< watts
  std::int64_t processes = 0;

  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("uuid", self.uuid);
    visit("at", self.at);
    visit("utilization", self.utilization);
    visit("used", self.used);
    visit("temperature", self.temperature);
    visit("power", self.power);
    visit("processes", self.processes);
  }
  friend bool operator==(const GpuLoad&, const GpuLoad&) = default;
};

}  // namespace zed
