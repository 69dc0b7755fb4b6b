#include "gpu/other_tools.hpp"

#include <algorithm>

#include "base/json.hpp"
#include "base/text.hpp"
#include "gpu/amd_tools.hpp"
#include "gpu/nvidia_names.hpp"
#include "gpu/pci_names.hpp"
#include "gpu/words.hpp"

namespace zed::gpu {
namespace {

const std::string xpu_smi = "xpu-smi";
const std::string profiler = "system_profiler";
const std::string sysctl = "sysctl";
const std::string lspci = "lspci";
constexpr std::size_t most_gpus = 256;

std::string text_of(const Value& map, std::string_view key) {
  const Value* value = map.find(key);
  if (value == nullptr) return {};
  if (auto* text = value->as_text()) return *text;
  if (auto* number = value->as_int()) return std::to_string(*number);
  return {};
}

Result<Value> json_of(std::string_view text, const std::string& tool) {
  std::size_t begin = text.find_first_of("{[");
  if (begin == std::string_view::npos) return fail(ErrorCode::corrupt, tool + " printed no JSON");
  std::size_t end = text.find_last_of("}]");
  auto value = parse_json(text.substr(begin, end == std::string_view::npos || end < begin
                                                 ? std::string_view::npos
                                                 : end - begin + 1));
  if (!value) return fail(std::move(value).error().with("read " + tool));
  return value;
}

Known<Bytes> byte_count(const Value& map, std::string_view key) {
  std::string text = text_of(map, key);
  if (text.empty()) return {};
  return known<Bytes>(text, xpu_smi, [](std::string_view t) -> std::optional<Bytes> {
    auto number = whole_number(t);
    return number ? bytes_of(*number, 1) : std::nullopt;
  });
}

/// "e211" of "Intel(R) Graphics [0xe211]": what an old table prints for a name.
std::string id_in_name(std::string_view name) {
  std::size_t at = name.find("[0x");
  if (at == std::string_view::npos) return {};
  std::string_view id = name.substr(at + 3, name.find(']', at) - at - 3);
  return id.size() == 4 && hexadecimal(id) ? lower(id) : std::string();
}

Device read_xpu(const Value& entry) {
  Device device;
  device.vendor = GpuVendor::intel;
  device.driver_seen = true;
  device.compute_seen = true;
  device.index = whole_number(text_of(entry, "device_id"));
  std::string name = text_of(entry, "device_name");
  std::string id = id_in_name(name);
  if (id.empty())
    if (auto pci = hexadecimal(text_of(entry, "pci_device_id")); pci && *pci <= 0xffff) {
      id = text_of(entry, "pci_device_id");
      id = lower(id.starts_with("0x") ? id.substr(2) : id);
    }
  if (id.size() == 4) device.pci_id = Known<std::string>::of("8086:" + id, xpu_smi);
  if (id_in_name(name).empty()) device.model = known_text(name, xpu_smi);
  if (std::string bus = normal_bus_id(text_of(entry, "pci_bdf_address")); !bus.empty())
    device.bus_id = Known<std::string>::of(bus, xpu_smi);
  device.uuid = known_text(text_of(entry, "uuid"), xpu_smi);
  auto driver = known_text(text_of(entry, "driver_version"), xpu_smi);
  if (driver) device.driver = std::move(driver);
  device.total = byte_count(entry, "memory_physical_size_byte");
  device.free = byte_count(entry, "memory_free_size_byte");
  device.integrated = is_integrated_intel(device.bus_id.value);
  if (device.total || device.integrated)
    device.memory_kind = Known<MemoryKind>::of(
        device.integrated ? MemoryKind::unified : MemoryKind::dedicated, xpu_smi);
  std::string firmware = text_of(entry, "gfx_firmware_status");
  if (!firmware.empty() && word_of(firmware).state == FieldState::value && firmware != "normal")
    device.diagnose(GpuHealth::degraded, "its firmware is " + firmware.substr(0, 40), xpu_smi);
  return device;
}

GpuVendor apple_vendor(std::string_view text) {
  const std::string word = lower(text);
  auto has = [&](std::string_view part) { return word.find(part) != std::string::npos; };
  if (has("apple")) return GpuVendor::apple;
  if (has("amd") || has("ati") || has("0x1002")) return GpuVendor::amd;
  if (has("intel") || has("0x8086")) return GpuVendor::intel;
  if (has("nvidia") || has("0x10de")) return GpuVendor::nvidia;
  return GpuVendor::other;
}

Known<Bytes> shown_size(const Value& map, std::initializer_list<std::string_view> keys) {
  for (std::string_view key : keys)
    if (std::string text = text_of(map, key); !text.empty())
      if (auto size = known<Bytes>(text, profiler, size_of)) return size;
  return {};
}

Device read_display(const Value& entry, std::int64_t index) {
  Device device;
  device.index = index;
  device.driver_seen = true;
  device.vendor = apple_vendor(text_of(entry, "spdisplays_vendor"));
  std::string name = text_of(entry, "sppci_model");
  if (name.empty()) name = text_of(entry, "_name");
  device.model = known_text(name, profiler);
  if (device.vendor == GpuVendor::other) device.vendor = apple_vendor(name);
  if (auto id = hexadecimal(text_of(entry, "spdisplays_device-id")); id && *id <= 0xffff) {
    std::string_view vendor = device.vendor == GpuVendor::amd     ? "1002:"
                              : device.vendor == GpuVendor::intel ? "8086:"
                                                                  : "10de:";
    std::string digits = lower(text_of(entry, "spdisplays_device-id"));
    device.pci_id =
        Known<std::string>::of(std::string(vendor) + digits.substr(digits.size() - 4), profiler);
  }
  // "spdisplays_metal3": what of Metal it can do.
  std::string metal = text_of(entry, "spdisplays_mtlgpufamilysupport");
  if (metal.empty()) metal = text_of(entry, "spdisplays_metalfamily");
  if (metal.starts_with("spdisplays_")) device.arch = known_text(metal.substr(11), profiler);
  Known<Bytes> shared = shown_size(entry, {"spdisplays_vram_shared"});
  device.integrated =
      device.vendor == GpuVendor::apple || shared || device.vendor == GpuVendor::intel;
  device.total = shared ? shared : shown_size(entry, {"spdisplays_vram", "_spdisplays_vram"});
  if (device.integrated) {
    device.memory_kind = Known<MemoryKind>::of(MemoryKind::unified, profiler);
    device.usable = device.total;  // what macOS says of an Intel part is what it may take
  } else if (device.total) {
    device.memory_kind = Known<MemoryKind>::of(MemoryKind::dedicated, profiler);
  }
  device.compute_seen = device.arch || device.vendor == GpuVendor::apple;
  return device;
}

/// Fields of a line of `lspci -mm`: bare words, or quoted ones that may hold blanks and commas.
std::vector<std::string> lspci_fields(std::string_view line) {
  std::vector<std::string> fields;
  std::size_t at = 0;
  while (at < line.size()) {
    if (line[at] == ' ' || line[at] == '\t') {
      ++at;
      continue;
    }
    bool quoted = line[at] == '"';
    std::size_t begin = quoted ? at + 1 : at;
    std::size_t end = line.find(quoted ? '"' : ' ', begin);
    // A quotation mark within is escaped by a backslash.
    while (quoted && end != std::string_view::npos && line[end - 1] == '\\')
      end = line.find('"', end + 1);
    if (end == std::string_view::npos) end = line.size();
    fields.emplace_back(line.substr(begin, end - begin));
    at = end + (quoted ? 1 : 0);
  }
  return fields;
}

/// "10de" of "NVIDIA Corporation [10de]".
std::string last_bracket(std::string_view text) {
  std::size_t open = text.rfind('[');
  std::size_t close = text.rfind(']');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return {};
  std::string id = lower(text.substr(open + 1, close - open - 1));
  return id.size() == 4 && hexadecimal(id) ? id : std::string();
}

/// "GeForce RTX 4090" of "AD102 [GeForce RTX 4090] [2684]"; the family's name where it has no
/// other.
std::string product_in(std::string_view text) {
  text = text.substr(0, text.rfind('['));
  text = trim(text);
  std::size_t open = text.find('[');
  if (open != std::string_view::npos && text.ends_with(']'))
    text = text.substr(open + 1, text.size() - open - 2);
  return std::string(trim(text));
}

}  // namespace

Result<Report> read_xpu_smi(std::string_view text) {
  ZED_TRY(Value value, json_of(text, xpu_smi));
  Report report;
  const Value* devices = value.find("device_list");
  const Value::List* list = devices != nullptr ? devices->as_list() : value.as_list();
  if (list != nullptr) {
    for (const Value& entry : *list)
      if (entry.as_map() != nullptr && report.devices.size() < most_gpus)
        report.devices.push_back(read_xpu(entry));
  } else if (value.find("device_id") != nullptr) {
    report.devices.push_back(read_xpu(value));
  } else {
    return fail(ErrorCode::corrupt, "xpu-smi printed JSON without devices");
  }
  return report;
}

Result<Report> read_system_profiler(std::string_view text) {
  ZED_TRY(Value value, json_of(text, profiler));
  const Value* displays = value.find("SPDisplaysDataType");
  const Value::List* list = displays != nullptr ? displays->as_list() : nullptr;
  if (list == nullptr)
    return fail(ErrorCode::corrupt, "system_profiler printed JSON without SPDisplaysDataType");
  Report report;
  for (const Value& entry : *list) {
    if (entry.as_map() == nullptr || report.devices.size() >= most_gpus) continue;
    Device device = read_display(entry, std::ssize(report.devices));
    if (device.vendor != GpuVendor::other) report.devices.push_back(std::move(device));
  }
  return report;
}

AppleFacts read_apple_sysctl(std::string_view text) {
  AppleFacts facts;
  for (std::string_view line : lines_of(text)) {
    std::size_t colon = line.find(": ");
    std::size_t skip = 2;
    if (colon == std::string_view::npos) {
      colon = line.find(" = ");
      skip = 3;
    }
    if (colon == std::string_view::npos) continue;
    std::string_view key = trim(line.substr(0, colon));
    std::string_view value = trim(line.substr(colon + skip));
    auto number = whole_number(value);
    if (key == "hw.memsize" && number && *number > 0) facts.memory = bytes_of(*number, 1);
    if (key == "machdep.cpu.brand_string")
      facts.brand = known_text(value.substr(0, 120), sysctl).value;
    bool limit = key == "iogpu.wired_limit_mb" || key == "debug.iogpu.wired_limit";
    // The older key counts bytes.
    if (limit && number && *number > 0)
      facts.wired_limit = bytes_of(*number, key == "iogpu.wired_limit_mb" ? 1 << 20 : 1);
  }
  return facts;
}

void settle_apple_memory(Report& report, const AppleFacts& facts) {
  bool apple_chip = facts.brand.starts_with("Apple ");
  bool listed = std::any_of(report.devices.begin(), report.devices.end(),
                            [](const Device& device) { return device.vendor == GpuVendor::apple; });
  if (apple_chip && !listed) {
    Device device;
    device.vendor = GpuVendor::apple;
    device.index = 0;
    device.driver_seen = true;
    device.compute_seen = true;
    device.integrated = true;
    device.model = Known<std::string>::of(facts.brand, sysctl);
    device.memory_kind = Known<MemoryKind>::of(MemoryKind::unified, sysctl);
    report.devices.push_back(std::move(device));
  }
  for (Device& device : report.devices) {
    if (device.vendor != GpuVendor::apple || !facts.memory) continue;
    device.total = Known<Bytes>::of(*facts.memory, sysctl);
    const Bytes limit = facts.wired_limit.value_or(Bytes{facts.memory->value / 4 * 3});
    device.usable = Known<Bytes>::of(std::min(facts.working_set.value_or(limit), *facts.memory),
                                     facts.working_set ? "Metal" : sysctl);
  }
}

std::vector<Device> read_lspci(std::string_view text) {
  std::vector<Device> devices;
  for (std::string_view line : lines_of(text)) {
    auto fields = lspci_fields(line);
    if (fields.size() < 4 || devices.size() >= most_gpus) continue;
    std::string kind = last_bracket(fields[1]);
    std::string vendor = last_bracket(fields[2]);
    std::string id = last_bracket(fields[3]);
    std::string bus = normal_bus_id(fields[0]);
    if ((kind != "0300" && kind != "0302" && kind != "0380") || id.empty() || bus.empty()) continue;
    Device device;
    device.vendor = vendor_of_pci_id(vendor + ":");
    if (device.vendor == GpuVendor::other) continue;
    device.bus_id = Known<std::string>::of(bus, lspci);
    device.pci_id = Known<std::string>::of(vendor + ":" + id, lspci);
    // lspci names the chip, or all products that it is in; the table names one.
    std::string name(name_of_pci_id(device.pci_id.value));
    if (name.empty()) name = std::string(vendor_word(device.vendor)) + " " + product_in(fields[3]);
    device.model = known_text(name, lspci);
    if (device.vendor == GpuVendor::amd) settle_amd_memory(device, lspci);
    if (device.vendor == GpuVendor::intel && is_integrated_intel(bus)) {
      device.integrated = true;
      device.memory_kind = Known<MemoryKind>::of(MemoryKind::unified, lspci);
    }
    devices.push_back(std::move(device));
  }
  return devices;
}

}  // namespace zed::gpu
