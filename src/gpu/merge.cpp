#include "gpu/merge.hpp"

#include <algorithm>
#include <map>

#include "base/text.hpp"
#include "gpu/pci_names.hpp"

namespace zed::gpu {
namespace {

const std::string cached = "last inventory";

bool is_instance(const Device& device) {
  return !device.mig_parent.empty();
}

bool contradict(const Known<std::string>& a, const Known<std::string>& b) {
  return a && b && a.value != b.value;
}

bool may_be_same(const Device& a, const Device& b) {
  return a.vendor == b.vendor && is_instance(a) == is_instance(b) &&
         !contradict(a.bus_id, b.bus_id) && !contradict(a.uuid, b.uuid) &&
         !contradict(a.pci_id, b.pci_id);
}

bool same_parent(const Device& a, const Device& b) {
  if (a.index && b.index) return a.index == b.index;
  return a.mig_parent == b.mig_parent;
}

/// By what identifies a GPU.
bool is_same(const Device& a, const Device& b) {
  if (a.vendor != b.vendor || is_instance(a) != is_instance(b)) return false;
  if (a.uuid && b.uuid && !a.uuid.value.empty() && a.vendor != GpuVendor::intel)
    if (a.uuid.value == b.uuid.value) return true;
  if (is_instance(a))
    return !contradict(a.uuid, b.uuid) && a.mig_device >= 0 && a.mig_device == b.mig_device &&
           same_parent(a, b);
  return a.bus_id && b.bus_id && a.bus_id.value == b.bus_id.value;
}

/// A tool that is asked now and answered with figures.
bool has_live_reading(const Device& device) {
  return device.total && device.total.source != cached && !device.only_logged &&
         device.total.source != "sysfs" && device.total.source != "dmesg";
}

void fill_health(Device& into, const Device& from) {
  GpuHealth health = from.health;
  if (health == GpuHealth::no_driver && from.health_source == "sysfs" && into.driver_seen) return;
  // An old message says nothing of a GPU that works since.
  if (from.only_logged && severity(health) > severity(GpuHealth::degraded) &&
      has_live_reading(into) && severity(into.health) < severity(GpuHealth::stale))
    health = GpuHealth::degraded;
  into.diagnose(health, from.why, from.health_source);
}

void fill(Device& into, const Device& from) {
  fill_health(into, from);
  if (!into.index) into.index = from.index;
  into.uuid.fill(from.uuid);
  into.bus_id.fill(from.bus_id);
  into.pci_id.fill(from.pci_id);
  // Only -L knows an instance's profile: "… MIG 1g.20gb" goes on where "… MIG" ends.
  if (is_instance(into) && from.model && into.model &&
      from.model.value.size() > into.model.value.size() &&
      from.model.value.starts_with(into.model.value))
    into.model = from.model;
  into.model.fill(from.model);
  into.arch.fill(from.arch);
  into.driver.fill(from.driver);
  into.cuda.fill(from.cuda);
  into.total.fill(from.total);
  into.gtt.fill(from.gtt);
  into.usable.fill(from.usable);
  into.reserved.fill(from.reserved);
  into.used.fill(from.used);
  into.free.fill(from.free);
  into.utilization.fill(from.utilization);
  into.temperature.fill(from.temperature);
  into.power.fill(from.power);
  into.numa_node.fill(from.numa_node);
  into.integrated = into.integrated || from.integrated;
  into.memory_kind.fill(from.memory_kind);
  if (from.memory_kind && from.memory_kind.value == MemoryKind::unified)
    into.memory_kind = from.memory_kind;
  if (from.memory_kind && from.memory_kind.value == MemoryKind::slice && !into.integrated)
    into.memory_kind = from.memory_kind;
  if (into.mig_device < 0) into.mig_device = from.mig_device;
  if (into.mig_parent == "unknown") into.mig_parent = from.mig_parent;
  if (into.island.empty()) into.island = from.island;
  if (into.processes.empty()) into.processes = from.processes;
  into.mig_enabled = into.mig_enabled || from.mig_enabled;
  into.suspended = into.suspended || from.suspended;
  into.removable = into.removable || from.removable;
  into.coherent = into.coherent || from.coherent;
  into.driver_seen = into.driver_seen || from.driver_seen;
  into.compute_seen = into.compute_seen || from.compute_seen;
  into.passed_through = into.passed_through || from.passed_through;
  into.only_logged = into.only_logged && from.only_logged;
}

/// Pairs devices of two lists by ever weaker signs; each is used once.
class Pairing {
public:
  Pairing(std::vector<Device>& known, std::vector<Device>& found)
      : known_(known), found_(found), known_used_(known.size()), found_used_(found.size()) {}

  std::vector<std::pair<std::size_t, std::size_t>> run() {
    by([](const Device& a, const Device& b) { return is_same(a, b); });
    by([](const Device& a, const Device& b) {
      return !is_instance(a) && a.index && a.index == b.index && may_be_same(a, b);
    });
    by_elimination();
    return pairs_;
  }
  bool is_new(std::size_t found) const { return !found_used_[found]; }
  bool is_missing(std::size_t known) const { return !known_used_[known]; }

private:
  template <class Same> void by(Same&& same) {
    for (std::size_t f = 0; f < found_.size(); ++f)
      for (std::size_t k = 0; k < known_used_.size() && !found_used_[f]; ++k)
        if (!known_used_[k] && same(known_[k], found_[f])) pair(k, f);
  }

  void by_elimination() {
    for (GpuVendor vendor :
         {GpuVendor::nvidia, GpuVendor::amd, GpuVendor::intel, GpuVendor::apple}) {
      auto k = only_left(known_, known_used_, vendor);
      auto f = only_left(found_, found_used_, vendor);
      if (k && f && may_be_same(known_[*k], found_[*f])) pair(*k, *f);
    }
  }

  static std::optional<std::size_t> only_left(const std::vector<Device>& devices,
                                              const std::vector<bool>& used, GpuVendor vendor) {
    std::optional<std::size_t> only;
    for (std::size_t i = 0; i < used.size(); ++i) {
      if (used[i] || devices[i].vendor != vendor || is_instance(devices[i])) continue;
      if (only) return std::nullopt;
      only = i;
    }
    return only;
  }

  void pair(std::size_t known, std::size_t found) {
    known_used_[known] = true;
    found_used_[found] = true;
    pairs_.emplace_back(known, found);
  }

  std::vector<Device>& known_;
  std::vector<Device>& found_;
  std::vector<bool> known_used_;
  std::vector<bool> found_used_;
  std::vector<std::pair<std::size_t, std::size_t>> pairs_;
};

/// "Navi 22 [Radeon RX 6700/6700 XT / 6800M]" names three products.
bool lists_several(const std::string& name) {
  return name.find('/') != std::string::npos;
}

void settle_name(Device& device,
                 const std::function<std::string(std::string_view pci_id)>& name_of) {
  std::string_view known = device.pci_id ? name_of_pci_id(device.pci_id.value) : std::string_view();
  bool unclear =
      !device.model || (device.vendor == GpuVendor::amd && lists_several(device.model.value));
  if (unclear && !known.empty())
    device.model = Known<std::string>::of(std::string(known), "PCI id");
  if (!device.model && name_of && device.pci_id)
    if (std::string name = name_of(device.pci_id.value); !name.empty())
      device.model = Known<std::string>::of(std::move(name), "pci.ids");
  if (device.model) return;
  std::string name(vendor_word(device.vendor));
  if (device.arch && device.arch.value.starts_with("gfx"))
    name += " " + device.arch.value;
  else
    name += device.pci_id ? " GPU " + device.pci_id.value : " GPU";
  device.model = Known<std::string>::of(std::move(name), "vendor");
}

Bytes host_share(std::int64_t memory) {
  return Bytes{memory - std::max(gibibytes(4).value, memory / 10)};
}

/// What of the host's memory a unified GPU may use.
void settle_unified(Device& device, const HostMemory& host) {
  if (!device.integrated || device.usable) return;
  if (device.vendor == GpuVendor::amd) {
    if (!device.total) return;
    Bytes sum = device.total.value + (device.gtt ? device.gtt.value : Bytes{});
    if (host.total) sum = std::min(sum, std::max(device.total.value, Bytes{*host.total}));
    device.usable = Known<Bytes>::of(sum, device.total.source);
    return;
  }
  bool shares_host = device.vendor == GpuVendor::nvidia || device.vendor == GpuVendor::intel;
  if (!shares_host || !host.total) return;
  device.usable = Known<Bytes>::of(std::max(host_share(*host.total), Bytes{}), "/proc/meminfo");
}

/// Instances stand for their parent. A parent without any, or one that may not be read, is of no
/// use to a job.
void settle_mig(Report& report) {
  auto& devices = report.devices;
  auto has_instance = [&](const Device& parent) {
    return std::any_of(devices.begin(), devices.end(), [&](const Device& device) {
      if (!is_instance(device)) return false;
      bool by_uuid = parent.uuid && device.mig_parent == parent.uuid.value;
      return by_uuid || (device.index && device.index == parent.index);
    });
  };
  std::vector<bool> stands(devices.size());
  for (std::size_t i = 0; i < devices.size(); ++i) {
    Device& device = devices[i];
    bool parent = !is_instance(device) && device.vendor == GpuVendor::nvidia;
    stands[i] = parent && has_instance(device);
    if (stands[i] || !parent) continue;
    if (device.mig_enabled)
      device.diagnose(GpuHealth::reserved, "in MIG mode without an instance: nothing can run on it",
                      "mig");
    else if (device.total.state == FieldState::denied)
      device.diagnose(GpuHealth::reserved,
                      "its memory may not be read: MIG in a container without rights? Instances "
                      "are offered, not their GPU",
                      device.total.source);
  }
  std::size_t at = 0;
  std::erase_if(devices, [&](const Device&) { return stands[at++]; });
}

/// "0000:05:00" of "0000:05:00.1".
std::string slot_of(const Device& device) {
  const std::string& bus = device.bus_id.value;
  return bus.substr(0, bus.rfind('.'));
}

/// An MI300X cut into parts shows each as a GPU with the whole memory: they share it.
void settle_partitions(Report& report) {
  std::map<std::string, std::vector<Device*>> slots;
  for (Device& device : report.devices)
    if (device.vendor == GpuVendor::amd && device.bus_id) slots[slot_of(device)].push_back(&device);
  for (auto& [slot, parts] : slots) {
    if (parts.size() < 2) continue;
    std::int64_t number = 0;
    for (Device* part : parts) {
      part->partition = number++;
      part->memory_kind = Known<MemoryKind>::of(MemoryKind::slice, part->bus_id.source);
      if (part->total) part->total.value.value /= std::ssize(parts);
      part->used = {};
      part->free = {};
    }
  }
}

void settle_numbers(Report& report) {
  std::map<GpuVendor, std::int64_t> next;
  for (const Device& device : report.devices)
    if (device.index) next[device.vendor] = std::max(next[device.vendor], *device.index + 1);
  for (Device& device : report.devices)
    if (!device.index) device.index = next[device.vendor]++;
}

void sort_devices(Report& report) {
  std::stable_sort(report.devices.begin(), report.devices.end(),
                   [](const Device& a, const Device& b) {
                     if (a.vendor != b.vendor) return a.vendor < b.vendor;
                     if (a.index != b.index) return a.index < b.index;
                     return a.mig_device < b.mig_device;
                   });
}

/// Shared by all that only a machine that is asked at all can say.
void settle_offer(Device& device) {
  bool bare_pci = !device.driver_seen && severity(device.health) == 0;
  if (bare_pci)
    device.diagnose(GpuHealth::ok,
                    "seen on the PCI bus only: whether its driver works was not told", "sysfs");
}

}  // namespace

void merge(Report& report, std::vector<Device> found) {
  Pairing pairing(report.devices, found);
  for (const auto& [known, index] : pairing.run())
    fill(report.devices[known], found[index]);
  for (std::size_t i = 0; i < found.size(); ++i)
    if (pairing.is_new(i)) report.devices.push_back(std::move(found[i]));
}

void settle(Report& report, const HostMemory& host,
            const std::function<std::string(std::string_view pci_id)>& name_of) {
  settle_mig(report);
  settle_partitions(report);
  for (Device& device : report.devices) {
    settle_name(device, name_of);
    settle_unified(device, host);
    settle_offer(device);
  }
  settle_numbers(report);
  sort_devices(report);
}

void remember(Report& report, const Report& last) {
  std::vector<Device> known = last.devices;
  Pairing pairing(known, report.devices);
  for (const auto& [old, now] : pairing.run()) {
    const Device& was = known[old];
    Device& device = report.devices[now];
    auto recall = [](auto& field, const auto& from) {
      if (field || !from) return;
      field = from;
      field.source = cached;
    };
    // A model made up from a PCI id gives way to the one that the driver told.
    if (device.model.source == "vendor" || device.model.source == "PCI id")
      if (was.model) device.model = {FieldState::value, was.model.value, cached};
    recall(device.uuid, was.uuid);
    recall(device.bus_id, was.bus_id);
    recall(device.model, was.model);
    recall(device.arch, was.arch);
    recall(device.driver, was.driver);
    recall(device.cuda, was.cuda);
    recall(device.total, was.total);
    recall(device.usable, was.usable);
    recall(device.reserved, was.reserved);
    recall(device.memory_kind, was.memory_kind);
    if (was.index && was.vendor == device.vendor) device.index = was.index;
  }
  bool same_run = !report.boot.empty() && report.boot == last.boot;
  for (std::size_t i = 0; i < known.size() && same_run; ++i) {
    // Instances come and go by a person's command; whole GPUs do not.
    if (!pairing.is_missing(i) || is_instance(known[i])) continue;
    Device gone = known[i];
    bool has_become_instances =
        std::any_of(report.devices.begin(), report.devices.end(), [&](const Device& device) {
          return gone.uuid && device.mig_parent == gone.uuid.value;
        });
    if (has_become_instances) continue;
    gone.processes.clear();
    gone.health = GpuHealth::ok;
    gone.why.clear();
    gone.diagnose(GpuHealth::lost,
                  gone.removable ? "it was unplugged" : "it was here and is not seen any more",
                  cached);
    report.devices.push_back(std::move(gone));
  }
  sort_devices(report);
}

Report stale_report(const Report& last, std::string_view why) {
  Report report = last;
  report.problems.clear();
  for (Device& device : report.devices) {
    device.diagnose(GpuHealth::stale, why, cached);
    device.processes.clear();
  }
  return report;
}

}  // namespace zed::gpu
