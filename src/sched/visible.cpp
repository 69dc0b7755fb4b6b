#include "sched/visible.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "base/text.hpp"

namespace zed::sched {
namespace {

using Positions = std::vector<std::size_t>;

/// What CUDA numbers 0, 1, 2…: whole GPUs, and of a GPU in MIG mode its first instance.
Positions numbered(const std::vector<Gpu>& gpus, bool by_bus_id) {
  Positions devices;
  std::set<std::string> parents;
  for (std::size_t i = 0; i < gpus.size(); ++i)
    if (gpus[i].vendor == GpuVendor::nvidia &&
        (gpus[i].mig_parent.empty() || parents.insert(gpus[i].mig_parent).second))
      devices.push_back(i);
  if (by_bus_id)
    std::stable_sort(devices.begin(), devices.end(), [&](std::size_t a, std::size_t b) {
      return lower(gpus[a].bus_id) < lower(gpus[b].bus_id);
    });
  return devices;
}

std::optional<std::size_t> by_number(const Positions& devices, std::string_view entry) {
  bool digits = !entry.empty() && entry.size() < 6 &&
                entry.find_first_not_of("0123456789") == std::string_view::npos;
  if (!digits) return std::nullopt;
  auto number = static_cast<std::size_t>(std::stoul(std::string(entry)));
  return number < devices.size() ? std::optional(devices[number]) : std::nullopt;
}

std::optional<std::size_t> by_uuid(const std::vector<Gpu>& gpus, std::string_view entry) {
  if (!entry.starts_with("GPU-") && !entry.starts_with("MIG-")) return std::nullopt;
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (gpus[i].vendor != GpuVendor::nvidia || !std::string_view(gpus[i].uuid).starts_with(entry))
      continue;
    if (found) return std::nullopt;  // two begin so: none is meant
    found = i;
  }
  return found;
}

Positions listed(const std::vector<Gpu>& gpus, std::string_view list, bool by_bus_id) {
  Positions devices = numbered(gpus, by_bus_id);
  Positions chosen;
  for (const std::string& part : split(list, ',')) {
    std::string_view entry = trim(part);
    auto found = by_number(devices, entry);
    if (!found) found = by_uuid(gpus, entry);
    if (!found) break;
    // CUDA takes a list with a repetition for an error and shows nothing.
    if (std::find(chosen.begin(), chosen.end(), *found) != chosen.end()) return {};
    chosen.push_back(*found);
  }
  auto instance = std::find_if(chosen.begin(), chosen.end(),
                               [&](std::size_t i) { return !gpus[i].mig_parent.empty(); });
  if (instance != chosen.end()) chosen = {*instance};
  return chosen;
}

}  // namespace

std::vector<Gpu> visible_gpus(const std::vector<Gpu>& gpus,
                              const std::map<std::string, std::string>& environment) {
  auto variable = [&](const char* name) {
    auto found = environment.find(name);
    return found == environment.end() ? std::nullopt : std::optional(found->second);
  };
  // A list in NVIDIA_VISIBLE_DEVICES numbers the host's GPUs; inside the container only those are
  // left, so it narrows nothing more.
  auto container = variable("NVIDIA_VISIBLE_DEVICES");
  auto cuda = variable("CUDA_VISIBLE_DEVICES");
  bool hidden = container && (*container == "void" || *container == "none");
  if (!hidden && !cuda) return gpus;
  Positions chosen;
  if (!hidden) chosen = listed(gpus, *cuda, variable("CUDA_DEVICE_ORDER") == "PCI_BUS_ID");
  std::vector<Gpu> visible;
  for (std::size_t position : chosen)
    visible.push_back(gpus[position]);
  for (const Gpu& gpu : gpus)
    if (gpu.vendor != GpuVendor::nvidia) visible.push_back(gpu);
  return visible;
}

}  // namespace zed::sched
