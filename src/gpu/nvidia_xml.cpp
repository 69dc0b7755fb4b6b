#include "gpu/nvidia_xml.hpp"

#include <pugixml.hpp>

#include "base/text.hpp"
#include "gpu/nvidia_names.hpp"
#include "gpu/words.hpp"

namespace zed::gpu {
namespace {

const std::string tool = "nvidia-smi -q -x";
constexpr std::size_t longest_document = std::size_t{4} << 20;
constexpr std::size_t most_gpus = 256;

std::string_view text_at(const pugi::xml_node& node, const char* path) {
  return node.first_element_by_path(path).text().get();
}

/// A number with its unit behind it: "30 C", "66.92 W", "93 %".
Known<std::int64_t> number_before(std::string_view text, std::string_view unit) {
  return known<std::int64_t>(text, tool, [unit](std::string_view t) {
    if (t.ends_with(unit)) t.remove_suffix(unit.size());
    return whole_number(t);
  });
}

Known<double> watts(const pugi::xml_node& gpu) {
  for (const char* path : {"gpu_power_readings/power_draw", "gpu_power_readings/instant_power_draw",
                           "gpu_power_readings/average_power_draw", "power_readings/power_draw"}) {
    std::string_view text = text_at(gpu, path);
    if (text.empty()) continue;
    auto value = known<double>(text, tool, [](std::string_view t) {
      if (t.ends_with('W')) t.remove_suffix(1);
      return decimal_number(t);
    });
    if (value) return value;
  }
  return {FieldState::unsupported, 0, tool};
}

void read_memory(Device& device, const pugi::xml_node& node) {
  device.total = known_mebibytes(text_at(node, "fb_memory_usage/total"), tool);
  device.used = known_mebibytes(text_at(node, "fb_memory_usage/used"), tool);
  device.free = known_mebibytes(text_at(node, "fb_memory_usage/free"), tool);
  if (node.first_element_by_path("fb_memory_usage/reserved"))
    device.reserved = known_mebibytes(text_at(node, "fb_memory_usage/reserved"), tool);
}

/// Every element that says of the whole GPU that it is lost or wants a reset.
void read_errors(Device& device, const pugi::xml_node& gpu) {
  for (const pugi::xml_node& child : gpu.children()) {
    Word word = word_of(child.text().get());
    if (word.health == GpuHealth::lost)
      device.diagnose(word.health, "the driver says: GPU is lost", tool);
    if (word.health == GpuHealth::reset_required)
      device.diagnose(word.health, "the driver says: GPU requires reset", tool);
  }
}

// The driver's own verdict, since R570.
void read_recovery_action(Device& device, const pugi::xml_node& gpu) {
  const std::string action(trim(gpu.child_value("gpu_recovery_action")));
  const std::string word = lower(action);
  if (word.empty() || word == "none" || word == "n/a") return;
  std::string why = "the driver asks for: " + action.substr(0, 60);
  // "Drain P2P" concerns links only; all others stop the GPU.
  device.diagnose(word == "drain p2p" ? GpuHealth::degraded : GpuHealth::reset_required, why, tool);
}

void read_rows(Device& device, const pugi::xml_node& gpu) {
  auto yes = [&](const char* path) { return lower(text_at(gpu, path)) == "yes"; };
  if (yes("remapped_rows/remapped_row_failure"))
    device.diagnose(GpuHealth::reset_required,
                    "memory rows could not be remapped: the card should be replaced", tool);
  if (yes("remapped_rows/remapped_row_pending"))
    device.diagnose(GpuHealth::reset_required,
                    "a memory row is to be remapped: drain the GPU and reset it", tool);
  if (yes("retired_pages/pending_blacklist") || yes("retired_pages/pending_retirement"))
    device.diagnose(GpuHealth::reset_required, "memory pages are to be retired: reset the GPU",
                    tool);
}

void read_licence(Device& device, const pugi::xml_node& gpu) {
  std::string_view status = text_at(gpu, "vgpu_software_licensed_product/license_status");
  if (status.starts_with("Unlicensed"))
    device.diagnose(GpuHealth::degraded,
                    "the vGPU has no licence: it is slowed down after about 20 minutes", tool);
}

void read_processes(Device& device, const pugi::xml_node& gpu) {
  constexpr std::size_t most_processes = 256;
  for (const pugi::xml_node& info : gpu.child("processes").children("process_info")) {
    auto pid = whole_number(info.child_value("pid"));
    if (!pid || device.processes.size() >= most_processes) continue;
    GpuProcess process{*pid, known_text(info.child_value("process_name"), tool).value,
                       std::nullopt};
    process.used = known_mebibytes(info.child_value("used_memory"), tool).get();
    device.processes.push_back(std::move(process));
  }
}

Device read_gpu(const pugi::xml_node& gpu, const pugi::xml_node& root, std::int64_t index) {
  Device device;
  device.vendor = GpuVendor::nvidia;
  device.index = index;
  device.driver_seen = true;
  device.uuid = known<std::string>(gpu.child_value("uuid"), tool, [](std::string_view t) {
    return is_uuid(t) ? std::optional<std::string>(t) : std::nullopt;
  });
  if (std::string bus = normal_bus_id(gpu.attribute("id").value()); !bus.empty())
    device.bus_id = Known<std::string>::of(bus, tool);
  device.model = known_text(gpu.child_value("product_name"), tool);
  device.driver = known_text(root.child_value("driver_version"), tool);
  device.cuda = known_text(root.child_value("cuda_version"), tool);
  if (auto id = hexadecimal(text_at(gpu, "pci/pci_device_id"));
      id && *id <= 0xffffffff && (*id & 0xffff) == 0x10de) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text = "10de:";
    for (int shift = 28; shift >= 16; shift -= 4)
      text += digits[(*id >> shift) & 0xf];
    device.pci_id = Known<std::string>::of(text, tool);
  }
  device.coherent = lower(gpu.child_value("addressing_mode")) == "ats";
  device.mig_enabled = lower(text_at(gpu, "mig_mode/current_mig")) == "enabled";
  read_memory(device, gpu);
  device.utilization = number_before(text_at(gpu, "utilization/gpu_util"), "%");
  device.temperature = number_before(text_at(gpu, "temperature/gpu_temp"), "C");
  device.power = watts(gpu);
  read_errors(device, gpu);
  read_recovery_action(device, gpu);
  read_rows(device, gpu);
  read_licence(device, gpu);
  read_processes(device, gpu);
  settle_nvidia_memory(device, tool);
  std::string_view mode = text_at(gpu, "gpu_virtualization_mode/virtualization_mode");
  if (lower(mode) == "vgpu") device.memory_kind = Known<MemoryKind>::of(MemoryKind::slice, tool);
  return device;
}

Device read_instance(const pugi::xml_node& mig, const Device& parent) {
  Device device;
  device.vendor = GpuVendor::nvidia;
  device.index = parent.index;
  device.driver_seen = true;
  device.mig_parent = parent.uuid ? parent.uuid.value : std::string("unknown");
  device.mig_parent_bus = parent.bus_id.value;
  device.mig_device = whole_number(mig.child_value("index")).value_or(-1);
  device.model = parent.model;
  if (device.model) device.model.value += " MIG";
  device.driver = parent.driver;
  device.cuda = parent.cuda;
  device.arch = parent.arch;
  device.numa_node = parent.numa_node;
  read_memory(device, mig);
  settle_nvidia_memory(device, tool);
  device.diagnose(parent.health, parent.why, parent.health_source);
  return device;
}

}  // namespace

Result<Report> read_nvidia_xml(std::string_view text) {
  if (text.size() > longest_document)
    return fail(ErrorCode::corrupt, "the answer of nvidia-smi -q -x is longer than 4 MiB");
  pugi::xml_document document;
  // Neither DTD nor entities are read: pugixml fetches nothing and expands nothing of its own.
  auto parsed =
      document.load_buffer(text.data(), text.size(), pugi::parse_minimal | pugi::parse_escapes);
  if (!parsed)
    return fail(ErrorCode::corrupt,
                std::string("nvidia-smi -q -x printed no XML document: ") + parsed.description());
  pugi::xml_node root = document.child("nvidia_smi_log");
  if (!root)
    return fail(ErrorCode::corrupt, "nvidia-smi -q -x printed XML without <nvidia_smi_log>");
  Report report;
  std::int64_t index = 0;
  for (const pugi::xml_node& gpu : root.children("gpu")) {
    if (report.devices.size() >= most_gpus) break;
    Device device = read_gpu(gpu, root, index++);
    report.devices.push_back(device);
    for (const pugi::xml_node& mig : gpu.child("mig_devices").children("mig_device"))
      if (report.devices.size() < most_gpus) report.devices.push_back(read_instance(mig, device));
  }
  return report;
}

}  // namespace zed::gpu
