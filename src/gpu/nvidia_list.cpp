#include "gpu/nvidia_list.hpp"

#include <algorithm>
#include <numeric>

#include "base/text.hpp"
#include "gpu/nvidia_names.hpp"
#include "gpu/words.hpp"

namespace zed::gpu {
namespace {

const std::string tool = "nvidia-smi -L";
constexpr std::size_t most_devices = 256;

/// What stands behind "(UUID: " up to ")"; empty if it is none.
std::string uuid_in(std::string_view line) {
  constexpr std::string_view mark = "(UUID: ";
  std::size_t at = line.rfind(mark);
  if (at == std::string_view::npos) return {};
  std::string_view rest = line.substr(at + mark.size());
  std::string_view uuid = rest.substr(0, rest.find(')'));
  return is_uuid(uuid) ? std::string(uuid) : std::string();
}

std::optional<Device> read_whole(std::string_view line) {
  if (!line.starts_with("GPU ")) return std::nullopt;
  std::size_t colon = line.find(": ");
  if (colon == std::string_view::npos) return std::nullopt;
  auto index = whole_number(line.substr(4, colon - 4));
  if (!index) return std::nullopt;
  Device device;
  device.vendor = GpuVendor::nvidia;
  device.index = index;
  device.driver_seen = true;
  std::string_view rest = line.substr(colon + 2);
  device.model = known_text(rest.substr(0, rest.rfind(" (UUID: ")), tool);
  if (std::string uuid = uuid_in(line); !uuid.empty())
    device.uuid = Known<std::string>::of(uuid, tool);
  settle_nvidia_memory(device, tool);
  return device;
}

/// "MIG 1g.20gb     Device  0: (UUID: MIG-…)"
std::optional<Device> read_instance(std::string_view line, const Device& parent) {
  if (!line.starts_with("MIG ")) return std::nullopt;
  std::size_t word = line.find("Device");
  std::size_t colon = line.find(':', word == std::string_view::npos ? 0 : word);
  std::string uuid = uuid_in(line);
  if (word == std::string_view::npos || colon == std::string_view::npos || uuid.empty())
    return std::nullopt;
  Device device;
  device.vendor = GpuVendor::nvidia;
  device.index = parent.index;
  device.driver_seen = true;
  device.uuid = Known<std::string>::of(uuid, tool);
  device.model = Known<std::string>::of(
      parent.model.value + " " + std::string(trim(line.substr(0, word))), tool);
  device.mig_parent = parent.uuid.value;
  device.mig_device = whole_number(line.substr(word + 6, colon - word - 6)).value_or(-1);
  device.memory_kind = Known<MemoryKind>::of(MemoryKind::slice, tool);
  return device;
}

/// Words between tabs, or runs of spaces where there are no tabs.
std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells;
  std::string cell;
  for (char c : std::string(line) + "\t") {
    if (c != '\t' && c != ' ') {
      cell += c;
    } else if (!cell.empty()) {
      cells.push_back(std::move(cell));
      cell.clear();
    }
  }
  return cells;
}

std::optional<std::int64_t> gpu_number(const std::string& cell) {
  return cell.starts_with("GPU") ? whole_number(cell.substr(3)) : std::nullopt;
}

bool is_nvlink(const std::string& cell) {
  return cell.starts_with("NV") && whole_number(std::string_view(cell).substr(2)).has_value();
}

/// The cell of a row under the header's tab-separated column; positions differ by missing cells, so
/// columns are counted by tabs.
std::optional<std::size_t> column_of(const std::vector<std::string>& header,
                                     std::string_view name) {
  for (std::size_t i = 0; i < header.size(); ++i)
    if (trim(header[i]) == name) return i;
  return std::nullopt;
}

}  // namespace

std::vector<Device> read_nvidia_list(std::string_view text) {
  std::vector<Device> devices;
  std::size_t parent = 0;
  for (std::string_view raw : lines_of(text)) {
    std::string_view line = trim(raw);
    if (devices.size() >= most_devices) break;
    if (auto whole = read_whole(line)) {
      parent = devices.size();
      devices.push_back(std::move(*whole));
    } else if (!devices.empty()) {
      auto instance = read_instance(line, devices[parent]);
      if (!instance) continue;
      devices[parent].mig_enabled = true;
      devices.push_back(std::move(*instance));
    }
  }
  return devices;
}

Topology read_topology(std::string_view text) {
  Topology topology;
  std::vector<std::int64_t> numbers;
  std::optional<std::size_t> numa_column;
  std::map<std::int64_t, std::int64_t> joined;  // GPU -> the lowest one that it reaches
  auto root = [&](std::int64_t gpu) {
    while (joined.count(gpu) > 0 && joined[gpu] != gpu)
      gpu = joined[gpu];
    return gpu;
  };
  for (std::string_view line : lines_of(text)) {
    if (trim(line).starts_with("Legend")) break;
    std::vector<std::string> cells = cells_of(line);
    if (cells.empty() || cells.size() > most_devices) continue;
    auto own = gpu_number(cells.front());
    if (numbers.empty()) {
      // The header: "GPU0 GPU1 … CPU Affinity  NUMA Affinity".
      for (const std::string& cell : cells)
        if (auto number = gpu_number(cell)) numbers.push_back(*number);
      numa_column = column_of(split(line, '\t'), "NUMA Affinity");
      continue;
    }
    if (!own || cells.size() < numbers.size() + 1) continue;
    joined.try_emplace(*own, *own);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (!is_nvlink(cells[i + 1])) continue;
      joined.try_emplace(numbers[i], numbers[i]);
      std::int64_t a = root(*own);
      std::int64_t b = root(numbers[i]);
      joined[std::max(a, b)] = std::min(a, b);
    }
    std::vector<std::string> columns = split(line, '\t');
    if (numa_column && *numa_column < columns.size())
      if (auto node = whole_number(columns[*numa_column])) topology.numa[*own] = *node;
  }
  std::map<std::int64_t, std::int64_t> sizes;
  for (const auto& entry : joined)
    ++sizes[root(entry.first)];
  for (const auto& entry : joined)
    if (sizes[root(entry.first)] > 1)
      topology.islands[entry.first] = "nvlink-" + std::to_string(root(entry.first));
  return topology;
}

}  // namespace zed::gpu
