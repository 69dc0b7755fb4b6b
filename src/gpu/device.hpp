#pragma once
// What the tools of one machine say of its GPUs: every field with where it came from, or why it is
// not known. One failed field or GPU never hides the others.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/describe.hpp"
#include "core/gpu.hpp"

namespace zed::gpu {

/// unsupported: the device has no such thing. denied: it has, and we may not read it. error: it
/// should have answered. unasked: nobody asked.
enum class FieldState { unasked, value, unsupported, denied, error };
constexpr auto enum_names(FieldState) {
  return std::array<std::string_view, 5>{"unasked", "value", "unsupported", "denied", "error"};
}

/// One field of one GPU.
template <class T> struct Known {
  FieldState state = FieldState::unasked;
  T value{};
  std::string source;  ///< the tool that said so: "nvml", "nvidia-smi -q -x", "sysfs"

  static Known of(T value, std::string source) {
    return {FieldState::value, std::move(value), std::move(source)};
  }
  explicit operator bool() const { return state == FieldState::value; }
  std::optional<T> get() const { return *this ? std::optional<T>(value) : std::nullopt; }
  /// Takes `other` where it tells more: a value where there is none, else a reason where none was
  /// given.
  void fill(const Known& other) {
    if (*this || other.state == FieldState::unasked) return;
    if (other || state == FieldState::unasked || state == FieldState::unsupported) *this = other;
  }
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("state", self.state);
    visit("value", self.value);
    visit("source", self.source);
  }
  friend bool operator==(const Known&, const Known&) = default;
};

/// A process that holds memory of a GPU.
struct GpuProcess {
  std::int64_t pid = 0;
  std::string name;
  std::optional<Bytes> used;  ///< none where the driver does not say (Windows' WDDM, containers)
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("pid", self.pid);
    visit("name", self.name);
    visit("used", self.used);
  }
  friend bool operator==(const GpuProcess&, const GpuProcess&) = default;
};

/// A GPU, or what one tool knows of it.
struct Device {
  GpuVendor vendor = GpuVendor::other;
  std::optional<std::int64_t> index;  ///< the vendor's own number; never an identity
  Known<std::string> uuid;
  Known<std::string> bus_id;  ///< "0000:01:00.0": four digits of domain where they are enough
  Known<std::string> pci_id;  ///< "10de:2684"
  Known<std::string> model;
  Known<std::string> arch;    ///< "8.9", "gfx1100"
  Known<std::string> driver;  ///< "550.54.15"
  Known<std::string> cuda;    ///< what the driver can run: "12.4"
  Known<Bytes> total;         ///< of dedicated memory, or an integrated GPU's carve-out
  Known<Bytes> gtt;           ///< host memory that an AMD GPU may map
  Known<Bytes> usable;        ///< where the vendor says what of a shared pool a GPU may use
  Known<Bytes> reserved;      ///< by the driver
  Known<Bytes> used;          ///< without what the driver reserves
  Known<Bytes> free;
  Known<std::int64_t> utilization;  ///< per cent
  Known<std::int64_t> temperature;  ///< degrees Celsius
  Known<double> power;              ///< watts
  Known<std::int64_t> numa_node;
  Known<MemoryKind> memory_kind;
  std::string mig_parent;  ///< UUID, where this is an instance of one
  std::string mig_parent_bus;
  std::int64_t mig_device = -1;  ///< number of the instance within its parent
  std::int64_t partition = -1;   ///< number of a part of an AMD accelerator (CPX and its kin)
  std::string island;            ///< GPUs with the same word see each other by NVLink or xGMI
  bool mig_enabled = false;
  bool suspended = false;  ///< powered off by runtime power management
  bool removable = false;  ///< in an enclosure that may be unplugged
  bool integrated = false;
  bool coherent = false;        ///< the CPU addresses its memory (ATS)
  bool driver_seen = false;     ///< something that only a working driver shows was read
  bool compute_seen = false;    ///< a compute runtime lists it
  bool only_logged = false;     ///< known from kernel messages alone
  bool passed_through = false;  ///< bound to a driver that lends it to virtual machines
  std::vector<GpuProcess> processes;
  GpuHealth health = GpuHealth::ok;
  std::string why;  ///< everything noteworthy, "; " between
  std::string health_source;

  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("vendor", self.vendor);
    visit("index", self.index);
    visit("uuid", self.uuid);
    visit("bus_id", self.bus_id);
    visit("pci_id", self.pci_id);
    visit("model", self.model);
    visit("arch", self.arch);
    visit("driver", self.driver);
    visit("cuda", self.cuda);
    visit("total", self.total);
    visit("gtt", self.gtt);
    visit("usable", self.usable);
    visit("reserved", self.reserved);
    visit("used", self.used);
    visit("free", self.free);
    visit("utilization", self.utilization);
    visit("temperature", self.temperature);
    visit("power", self.power);
    visit("numa_node", self.numa_node);
    visit("memory_kind", self.memory_kind);
    visit("mig_parent", self.mig_parent);
    visit("mig_parent_bus", self.mig_parent_bus);
    visit("mig_device", self.mig_device);
    visit("partition", self.partition);
    visit("island", self.island);
    visit("mig_enabled", self.mig_enabled);
    visit("suspended", self.suspended);
    visit("removable", self.removable);
    visit("integrated", self.integrated);
    visit("coherent", self.coherent);
    visit("driver_seen", self.driver_seen);
    visit("compute_seen", self.compute_seen);
    visit("only_logged", self.only_logged);
    visit("passed_through", self.passed_through);
    visit("processes", self.processes);
    visit("health", self.health);
    visit("why", self.why);
    visit("health_source", self.health_source);
  }
  friend bool operator==(const Device&, const Device&) = default;

  /// Records what is wrong; the worst health wins, reasons add up.
  void diagnose(GpuHealth worse, std::string_view reason, std::string_view source);
};

/// Something that a person should know or do.
struct Problem {
  std::string what;
  std::string act;  ///< "do" in JSON: what to do about it
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("what", self.what);
    visit("do", self.act);
  }
  friend bool operator==(const Problem&, const Problem&) = default;
};

/// All that one probe found.
struct Report {
  std::vector<Device> devices;
  std::vector<Problem> problems;
  std::string rocm;  ///< version of ROCm; empty where there is none
  std::string boot;  ///< the machine's run that this was found in; empty if unknown
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("devices", self.devices);
    visit("problems", self.problems);
    visit("rocm", self.rocm);
    visit("boot", self.boot);
  }
  friend bool operator==(const Report&, const Report&) = default;

  void problem(std::string what, std::string act);
};

/// How bad a health is; the larger one wins where tools disagree.
int severity(GpuHealth health);

/// "0000:01:00.0" of "00000000:01:00.0", "0000:0A:00.0" or "01:00.0": lower case, four digits of
/// domain where they are enough, function 0 where none is given. Empty if it is no bus id.
std::string normal_bus_id(std::string_view text);

}  // namespace zed::gpu
