#include "gpu/inventory.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "gpu/pci_names.hpp"

namespace zed::gpu {
namespace {

MemoryKind kind_of(const Device& device) {
  if (device.memory_kind) return device.memory_kind.value;
  return device.integrated ? MemoryKind::unified : MemoryKind::dedicated;
}

/// Unified memory has no size on a box; a slice's is what it is.
std::optional<std::int64_t> nominal_of(const Device& device, const Nominal& nominal) {
  auto bytes = reported_memory(device);
  if (!bytes || !nominal || kind_of(device) == MemoryKind::unified) return std::nullopt;
  return nominal(*bytes, device.model.value);
}

/// The schema has no word for a sound GPU that takes no jobs: `why` says it, unless it has no
/// driver of ours.
std::string health_word(const Device& device) {
  if (device.health != GpuHealth::reserved) return std::string(to_string(device.health));
  return std::string(to_string(device.passed_through ? GpuHealth::no_driver : GpuHealth::ok));
}

Value optional_number(std::optional<std::int64_t> number) {
  return number ? Value(*number) : Value();
}

template <class T> void add_source(Value& sources, std::string_view name, const Known<T>& field) {
  if (field) sources.set(name, field.source);
}

const Known<Bytes>& memory_field(const Device& device) {
  return kind_of(device) == MemoryKind::unified ? device.usable : device.total;
}

Value sources_of(const Device& device, bool has_nominal) {
  Value sources = Value::map();
  add_source(sources, "uuid", device.uuid);
  if (!device.uuid) sources.set("uuid", device.bus_id ? "bus_id" : "index");
  add_source(sources, "bus_id", device.bus_id);
  add_source(sources, "model", device.model);
  add_source(sources, "memory_kind", device.memory_kind);
  add_source(sources, "vram_reported_mib", memory_field(device));
  if (has_nominal) sources.set("vram_nominal_gb", "vram_reported_mib");
  if (!device.health_source.empty()) sources.set("health", device.health_source);
  return sources;
}

Value document_of(const Device& device, const Nominal& nominal) {
  auto bytes = reported_memory(device);
  auto size = nominal_of(device, nominal);
  Value value = Value::map();
  value.set("index", optional_number(device.index));
  value.set("uuid", identity_of(device));
  value.set("bus_id", device.bus_id.value);
  value.set("vendor", std::string(to_string(device.vendor)));
  value.set("model", device.model.value);
  value.set("memory_kind", std::string(to_string(kind_of(device))));
  value.set("vram_reported_mib",
            optional_number(bytes ? std::optional(bytes->value >> 20) : std::nullopt));
  value.set("vram_nominal_gb", optional_number(size));
  value.set("health", health_word(device));
  value.set("why", device.why);
  value.set("sources", sources_of(device, size.has_value()));
  return value;
}

/// Why a GPU that looks sound takes no jobs; empty if it does.
std::string why_not_offered(const Device& device) {
  if (!device.driver_seen) return "whether its driver works is not known";
  if (!device.mig_parent.empty() && !device.uuid)
    return "the UUID of this MIG instance is not known (nvidia-smi -L tells it)";
  if (device.vendor == GpuVendor::intel && device.integrated && !device.compute_seen)
    return "an integrated GPU without a compute runtime";
  if (device.vendor == GpuVendor::amd && device.integrated && !device.compute_seen)
    return "an integrated GPU that KFD does not offer for compute";
  return {};
}

Gpu core_gpu(const Device& device, const Nominal& nominal) {
  Gpu gpu;
  gpu.uuid = identity_of(device);
  gpu.bus_id = device.bus_id.value;
  gpu.vendor = device.vendor;
  gpu.model = device.model.value;
  gpu.memory_kind = kind_of(device);
  gpu.vram_reported = reported_memory(device).value_or(Bytes{});
  gpu.vram_nominal_gb = nominal_of(device, nominal);
  bool dedicated = gpu.memory_kind != MemoryKind::unified;
  if (dedicated && device.reserved) gpu.vram_reserved = device.reserved.value;
  if (dedicated && device.used) gpu.vram_strangers = device.used.value;
  gpu.arch = device.arch.value;
  gpu.driver = device.driver.value;
  gpu.cuda = device.cuda.value;
  gpu.mig_parent = device.mig_parent;
  gpu.numa_node = device.numa_node ? device.numa_node.value : -1;
  gpu.health = device.health;
  // A note about a sound GPU (asleep, removable) is no reason for anything.
  gpu.why = device.health == GpuHealth::ok ? "" : device.why;
  if (!is_schedulable(gpu.health)) return gpu;
  if (std::string why = why_not_offered(device); !why.empty()) {
    gpu.health = GpuHealth::reserved;
    gpu.why = std::move(why);
  }
  return gpu;
}

}  // namespace

std::string identity_of(const Device& device) {
  if (device.partition >= 0)
    return (device.uuid ? device.uuid.value : "PCI-" + device.bus_id.value) + "/" +
           std::to_string(device.partition);
  if (device.uuid) return device.uuid.value;
  if (!device.mig_parent.empty())
    return device.mig_parent + "/mig-" + std::to_string(device.mig_device);
  if (device.bus_id) return "PCI-" + device.bus_id.value;
  return std::string(to_string(device.vendor)) + "-" + std::to_string(device.index.value_or(0));
}

std::optional<Bytes> reported_memory(const Device& device) {
  return memory_field(device).get();
}

Value probe_document(const Report& report, const Nominal& nominal) {
  Value gpus = Value::list();
  for (const Device& device : report.devices)
    gpus.push(document_of(device, nominal));
  Value document = Value::map();
  document.set("schema", 1);
  document.set("gpus", std::move(gpus));
  document.set("problems", to_value(report.problems));
  return document;
}

std::string probe_text(const Report& report, const Nominal& nominal) {
  std::string text;
  for (const Device& device : report.devices) {
    auto bytes = reported_memory(device);
    auto size = nominal_of(device, nominal);
    text += std::string(to_string(device.vendor)) + " " + std::to_string(device.index.value_or(0)) +
            "  " + device.model.value + "  ";
    text += bytes ? std::to_string(bytes->value >> 20) + " MiB" : "memory unknown";
    if (size) text += " (" + std::to_string(*size) + " GB)";
    text += " " + std::string(to_string(kind_of(device))) + "  " + health_word(device);
    if (!device.why.empty()) text += ": " + device.why;
    text += "\n    " + identity_of(device);
    const Value sources = sources_of(device, size.has_value());
    for (const auto& source : *sources.as_map())
      text += "  " + source.key + ": " + *source.value.as_text();
    text += "\n";
  }
  if (report.devices.empty()) text += "no GPU found\n";
  for (const Problem& problem : report.problems)
    text += "! " + problem.what + "\n  -> " + problem.act + "\n";
  return text;
}

std::vector<Gpu> core_gpus(const Report& report, const Nominal& nominal) {
  std::vector<Gpu> gpus;
  for (const Device& device : report.devices)
    if (!device.only_logged) gpus.push_back(core_gpu(device, nominal));
  return gpus;
}

std::string visible_name(const Device& device) {
  std::string number = std::to_string(device.index.value_or(0));
  switch (device.vendor) {
  case GpuVendor::nvidia: return device.uuid ? device.uuid.value : number;
  // The parts of one accelerator share its identity.
  case GpuVendor::amd: return device.uuid && device.partition < 0 ? device.uuid.value : number;
  // Level Zero's mask counts devices.
  case GpuVendor::intel: return number;
  case GpuVendor::apple:
  case GpuVendor::simulated:
  case GpuVendor::other: return identity_of(device);
  }
  return identity_of(device);
}

}  // namespace zed::gpu
