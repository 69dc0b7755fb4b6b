#include "gpu/amd_tools.hpp"

#include <algorithm>

#include "base/json.hpp"
#include "base/text.hpp"
#include "gpu/pci_names.hpp"
#include "gpu/words.hpp"

namespace zed::gpu {
namespace {

const std::string amd_smi = "amd-smi";
const std::string rocm_smi = "rocm-smi";
constexpr std::size_t most_gpus = 256;

/// From the first brace on: warnings come before the document.
Result<Value> first_json(std::string_view text, const std::string& tool) {
  std::size_t begin = text.find_first_of("{[");
  if (begin == std::string_view::npos) return fail(ErrorCode::corrupt, tool + " printed no JSON");
  std::size_t end = text.find_last_of("}]");
  if (end == std::string_view::npos || end < begin)
    return fail(ErrorCode::corrupt, tool + " printed half a JSON document");
  auto value = parse_json(text.substr(begin, end - begin + 1));
  if (!value) return fail(std::move(value).error().with("read " + tool));
  return value;
}

/// Text of a member, whatever its type; empty if there is none.
std::string text_of(const Value* value) {
  if (value == nullptr) return {};
  if (auto* text = value->as_text()) return *text;
  if (auto* number = value->as_int()) return std::to_string(*number);
  return {};
}

const Value* member(const Value* value, std::string_view key) {
  return value != nullptr ? value->find(key) : nullptr;
}

std::string hex4(std::uint64_t number) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (int shift = 12; shift >= 0; shift -= 4)
    text += digits[(number >> shift) & 0xf];
  return text;
}

void set_pci_id(Device& device, std::string_view id, const std::string& tool) {
  if (auto number = hexadecimal(id); number && *number <= 0xffff)
    device.pci_id = Known<std::string>::of("1002:" + hex4(*number), tool);
}

void set_bus(Device& device, std::string_view text, const std::string& tool) {
  if (std::string bus = normal_bus_id(text); !bus.empty())
    device.bus_id = Known<std::string>::of(bus, tool);
}

/// A name that is one: not "N/A", not a number in hexadecimal.
void set_model(Device& device, std::string_view text, const std::string& tool) {
  auto name = known_text(text, tool);
  if (name && !name.value.starts_with("0x")) device.model.fill(name);
}

void set_arch(Device& device, std::string_view text, const std::string& tool) {
  auto arch = known_text(text, tool);
  if (arch && arch.value.starts_with("gfx")) device.arch = std::move(arch);
}

/// ROCm takes "GPU-" and the 16 digits of the unique id.
void set_unique_id(Device& device, std::string_view text, const std::string& tool) {
  auto number = hexadecimal(text);
  if (!number || *number == 0) return;
  std::string digits = lower(trim(text));
  if (digits.starts_with("0x")) digits.erase(0, 2);
  digits.insert(0, digits.size() < 16 ? 16 - digits.size() : 0, '0');
  device.uuid = Known<std::string>::of("GPU-" + digits, tool);
}

/// {"value": 196592, "unit": "MB"}, or text, or a bare number of MB.
Known<Bytes> amd_size(const Value* value) {
  if (value == nullptr) return {};
  if (auto* map = value->as_map(); map != nullptr)
    return known<Bytes>(text_of(value->find("value")) + " " + text_of(value->find("unit")), amd_smi,
                        size_of);
  if (auto* number = value->as_int())
    return known<Bytes>(std::to_string(*number) + " MB", amd_smi, size_of);
  return known<Bytes>(text_of(value), amd_smi, size_of);
}

Device read_amd_smi_gpu(const Value& entry) {
  Device device;
  device.vendor = GpuVendor::amd;
  device.driver_seen = true;
  device.compute_seen = true;
  device.index = whole_number(text_of(entry.find("gpu")));
  const Value* asic = entry.find("asic");
  set_pci_id(device, text_of(member(asic, "device_id")), amd_smi);
  set_arch(device, text_of(member(asic, "target_graphics_version")), amd_smi);
  set_model(device, text_of(member(asic, "market_name")), amd_smi);
  set_unique_id(device, text_of(member(asic, "asic_serial")), amd_smi);
  set_bus(device, text_of(member(entry.find("bus"), "bdf")), amd_smi);
  device.total = amd_size(member(entry.find("vram"), "size"));
  const Value* driver = entry.find("driver");
  std::string version = text_of(member(driver, "version"));
  // Some versions print "amdgpu 6.8.5" in place of the object.
  if (driver != nullptr && driver->as_text() != nullptr) {
    const std::string& words = *driver->as_text();
    version = words.substr(words.rfind(' ') == std::string::npos ? 0 : words.rfind(' ') + 1);
  }
  device.driver = known_text(version, amd_smi);
  settle_amd_memory(device, amd_smi);
  return device;
}

/// One "key: value" of a device, whichever form it stood in.
void take(Device& device, std::string_view raw_key, std::string_view value) {
  const std::string key = lower(trim(raw_key));
  auto bytes = [](std::string_view t) -> std::optional<Bytes> {
    auto number = whole_number(t);
    return number ? bytes_of(*number, 1) : std::nullopt;
  };
  // VIS_VRAM is the window that the CPU sees, not the memory.
  if (key == "vram total memory (b)") device.total = known<Bytes>(value, rocm_smi, bytes);
  if (key == "vram total used memory (b)") device.used = known<Bytes>(value, rocm_smi, bytes);
  if (key == "gtt total memory (b)") device.gtt = known<Bytes>(value, rocm_smi, bytes);
  if (key == "gfx version") set_arch(device, value, rocm_smi);
  if (key == "pci bus") set_bus(device, value, rocm_smi);
  if (key == "unique id") set_unique_id(device, value, rocm_smi);
  if (key == "card series" || key == "device name" || key == "product name")
    set_model(device, value, rocm_smi);
  // Old versions hold the name in "Card model", newer ones the PCI id.
  if (key == "device id") set_pci_id(device, value, rocm_smi);
  if (key == "card model") {
    if (trim(value).starts_with("0x"))
      set_pci_id(device, value, rocm_smi);
    else
      set_model(device, value, rocm_smi);
  }
  if (key == "gpu use (%)") device.utilization = known<std::int64_t>(value, rocm_smi, whole_number);
  if (key == "temperature (sensor edge) (c)")
    device.temperature = known<std::int64_t>(value, rocm_smi, [](std::string_view t) {
      auto celsius = decimal_number(t);
      return celsius ? std::optional(static_cast<std::int64_t>(*celsius)) : std::nullopt;
    });
  if (key == "average graphics package power (w)" ||
      key == "current socket graphics package power (w)")
    device.power = known<double>(value, rocm_smi, decimal_number);
  if (key == "(topology) numa node" || key == "numa node")
    if (auto node = whole_number(value); node && *node >= 0)
      device.numa_node = Known<std::int64_t>::of(*node, rocm_smi);
}

Device fresh(std::int64_t index) {
  Device device;
  device.vendor = GpuVendor::amd;
  device.driver_seen = true;
  device.compute_seen = true;
  device.index = index;
  return device;
}

std::optional<std::int64_t> card_number(std::string_view text) {
  return text.starts_with("card") ? whole_number(text.substr(4)) : std::nullopt;
}

void finish(Report& report) {
  for (Device& device : report.devices) {
    if (device.pci_id && device.pci_id.value == "1002:0000") device.pci_id = {};
    settle_amd_memory(device, rocm_smi);
  }
}

/// {"card0": {…}, "system": {…}}
Report read_rocm_json(const Value& value) {
  Report report;
  const auto* members = value.as_map();
  if (members == nullptr) return report;
  std::string driver = text_of(member(value.find("system"), "Driver version"));
  for (const auto& entry : *members) {
    auto number = card_number(entry.key);
    const auto* keys = entry.value.as_map();
    if (!number || keys == nullptr || report.devices.size() >= most_gpus) continue;
    Device device = fresh(*number);
    // A card's own series goes before the family's name, which lists several models.
    for (const char* first : {"Card Series", "Card series"})
      set_model(device, text_of(entry.value.find(first)), rocm_smi);
    for (const auto& field : *keys)
      take(device, field.key, text_of(&field.value));
    if (!driver.empty()) device.driver = known_text(driver, rocm_smi);
    report.devices.push_back(std::move(device));
  }
  return report;
}

Device& device_of(Report& report, std::int64_t index) {
  for (Device& device : report.devices)
    if (device.index == index) return device;
  report.devices.push_back(fresh(index));
  return report.devices.back();
}

/// "GPU[0]          : Card Series:            N/A"
bool take_line(Report& report, std::string_view line) {
  if (!line.starts_with("GPU[")) return false;
  std::size_t close = line.find(']');
  std::size_t colon = line.find(": ");
  if (close == std::string_view::npos || colon == std::string_view::npos) return false;
  auto index = whole_number(line.substr(4, close - 4));
  std::string_view rest = line.substr(colon + 2);
  std::size_t value = rest.rfind(':');
  if (!index || value == std::string_view::npos || report.devices.size() >= most_gpus) return false;
  // A bus id holds colons itself.
  if (rest.starts_with("PCI Bus:")) value = 7;
  take(device_of(report, *index), rest.substr(0, value), trim(rest.substr(value + 1)));
  return true;
}

/// Columns of a header, two blanks apart.
std::vector<std::string> table_header(std::string_view line) {
  std::vector<std::string> names;
  while (!line.empty()) {
    std::size_t gap = line.find("  ");
    if (auto name = trim(line.substr(0, gap)); !name.empty()) names.emplace_back(name);
    if (gap == std::string_view::npos) break;
    line.remove_prefix(gap + 2);
  }
  return names;
}

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  for (const std::string& word : split(line, ' '))
    if (!trim(word).empty()) words.emplace_back(trim(word));
  return words;
}

Report read_rocm_text(std::string_view text) {
  Report report;
  std::vector<std::string> header;
  for (std::string_view raw : lines_of(text)) {
    std::string_view line = trim(raw);
    if (take_line(report, line)) continue;
    // "Device" and "Node" are one blank apart from nothing: their header is cut at two blanks.
    if (line.starts_with("Device ")) {
      header = table_header(line);
      continue;
    }
    auto words = words_of(line);
    if (header.size() < 2 || words.size() != header.size() || report.devices.size() >= most_gpus)
      continue;
    auto index = whole_number(words[0]);
    if (!index) continue;
    Device& device = device_of(report, *index);
    for (std::size_t i = 1; i < words.size(); ++i)
      take(device, header[i], words[i]);
  }
  return report;
}

/// "device,Card Series,…": the vendor's name holds a comma and nothing is quoted. Only the columns
/// before it can be told.
Report read_rocm_csv(std::string_view text) {
  Report report;
  std::vector<std::string> header;
  for (std::string_view line : lines_of(text)) {
    if (line.starts_with("device,")) {
      header = split(line, ',');
      continue;
    }
    auto cells = split(line, ',');
    auto number = card_number(cells.front());
    if (header.empty() || !number || report.devices.size() >= most_gpus) continue;
    Device& device = device_of(report, *number);
    for (std::size_t i = 1; i < std::min(cells.size(), header.size()); ++i) {
      if (lower(header[i]) == "card vendor" && cells.size() != header.size()) break;
      take(device, header[i], cells[i]);
    }
  }
  return report;
}

}  // namespace

std::string gfx_name(std::int64_t version) {
  if (version <= 0 || version > 999'999) return {};
  constexpr std::string_view digits = "0123456789abcdef";
  std::int64_t minor = version / 100 % 100;
  std::int64_t step = version % 100;
  if (minor > 15 || step > 15) return {};
  return "gfx" + std::to_string(version / 10000) + digits[static_cast<std::size_t>(minor)] +
         digits[static_cast<std::size_t>(step)];
}

bool is_amd_apu(std::string_view pci_id, std::string_view arch) {
  // Raven, Picasso, Renoir, Lucienne, Cezanne, Barcelo, Van Gogh, Rembrandt, Raphael, Mendocino,
  // Phoenix, Hawk Point, Strix Point, Krackan, Strix Halo, Granite Ridge.
  constexpr std::array<std::string_view, 24> ids{"15dd", "15d8", "1636", "1638", "164c", "15e7",
                                                 "163f", "1435", "1681", "164e", "1506", "164d",
                                                 "15bf", "15c8", "1900", "1901", "150e", "1114",
                                                 "1586", "13c0", "1318", "13fe", "143f", "1902"};
  constexpr std::array<std::string_view, 13> archs{
      "gfx902",  "gfx90c",  "gfx1033", "gfx1035", "gfx1036", "gfx1037", "gfx1103",
      "gfx1150", "gfx1151", "gfx1152", "gfx1153", "gfx909",  "gfx1170"};
  bool known_id = pci_id.starts_with("1002:") &&
                  std::find(ids.begin(), ids.end(), pci_id.substr(5)) != ids.end();
  return known_id || std::find(archs.begin(), archs.end(), arch) != archs.end();
}

void settle_amd_memory(Device& device, const std::string& source) {
  device.integrated = device.integrated || is_amd_apu(device.pci_id.value, device.arch.value);
  if (device.integrated)
    device.memory_kind = Known<MemoryKind>::of(MemoryKind::unified, source);
  else if (device.total)
    device.memory_kind = Known<MemoryKind>::of(MemoryKind::dedicated, source);
}

Result<Report> read_amd_smi(std::string_view text) {
  ZED_TRY(Value value, first_json(text, amd_smi));
  const Value::List* list = value.as_list();
  // Newer versions put the list into an object.
  if (list == nullptr)
    if (const Value* data = value.find("gpu_data")) list = data->as_list();
  if (list == nullptr) return fail(ErrorCode::corrupt, "amd-smi printed JSON without a list");
  Report report;
  for (const Value& entry : *list)
    if (entry.as_map() != nullptr && report.devices.size() < most_gpus)
      report.devices.push_back(read_amd_smi_gpu(entry));
  return report;
}

Result<Report> read_rocm_smi(std::string_view text) {
  Report report;
  std::size_t brace = text.find('{');
  if (auto value = brace == std::string_view::npos
                       ? Result<Value>(fail(ErrorCode::corrupt, "no JSON"))
                       : first_json(text.substr(brace), rocm_smi))
    report = read_rocm_json(*value);
  if (report.devices.empty()) report = read_rocm_text(text);
  if (report.devices.empty()) report = read_rocm_csv(text);
  if (report.devices.empty())
    return fail(ErrorCode::corrupt, "rocm-smi printed nothing that names a GPU");
  finish(report);
  return report;
}

}  // namespace zed::gpu
