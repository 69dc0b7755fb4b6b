#include <algorithm>

#include "base/text.hpp"
#include "gpu/sysfs.hpp"
#include "gpu/words.hpp"

namespace zed::gpu {
namespace {

const std::string tool = "device tree";

struct Chip {
  std::string_view compatible;
  std::string_view arch;
  std::string_view name;
};
// NVIDIA's chips with a GPU of their own, and its compute capability.
constexpr std::array chips{
    Chip{"nvidia,tegra264", "11.0", "NVIDIA Thor"},
    Chip{"nvidia,tegra234", "8.7", "NVIDIA Orin"},
    Chip{"nvidia,tegra194", "7.2", "NVIDIA Xavier"},
    Chip{"nvidia,tegra186", "6.2", "NVIDIA Tegra X2"},
    Chip{"nvidia,tegra210", "5.3", "NVIDIA Tegra X1"},
};

struct Module {
  std::string_view part;
  std::string_view name;
};
// Part numbers of Jetson modules; the carrier's stand beside them.
constexpr std::array modules{
    Module{"p3834-0008", "Jetson AGX Thor"},
    Module{"p3701-0000", "Jetson AGX Orin"},
    Module{"p3701-0004", "Jetson AGX Orin 32GB"},
    Module{"p3701-0005", "Jetson AGX Orin 64GB"},
    Module{"p3701-0008", "Jetson AGX Orin Industrial"},
    Module{"p3767-0000", "Jetson Orin NX 16GB"},
    Module{"p3767-0001", "Jetson Orin NX 8GB"},
    Module{"p3767-0003", "Jetson Orin Nano 8GB"},
    Module{"p3767-0004", "Jetson Orin Nano 4GB"},
    Module{"p3767-0005", "Jetson Orin Nano 8GB"},
    Module{"p2888-0001", "Jetson AGX Xavier"},
    Module{"p2888-0004", "Jetson AGX Xavier 32GB"},
    Module{"p2888-0005", "Jetson AGX Xavier 64GB"},
    Module{"p3668-0000", "Jetson Xavier NX"},
    Module{"p3668-0001", "Jetson Xavier NX"},
    Module{"p3310-1000", "Jetson TX2"},
    Module{"p3448-0000", "Jetson Nano"},
    Module{"p3448-0002", "Jetson Nano"},
};

/// The entries of a property, which NUL ends (some dumps write it as a backslash and a 0).
std::vector<std::string> entries_of(std::string text) {
  for (std::size_t at; (at = text.find("\\0")) != std::string::npos;)
    text.replace(at, 2, std::string(1, '\0'));
  return split(text, '\0');
}

/// "Jetson AGX Orin Developer Kit" of "NVIDIA Jetson AGX Orin Developer Kit".
std::string board_name(std::string_view model) {
  std::string name(model.substr(0, model.find('\0')));
  if (name.starts_with("NVIDIA ")) name.erase(0, 7);
  return name.substr(0, 120);
}

void read_thermal(const Tree& tree, Device& device) {
  const std::string zones = "/sys/class/thermal";
  // tj is the hottest of the chip; the GPU's own zone stands in for it.
  for (const char* wanted : {"tj-thermal", "gpu-thermal", "GPU-therm"})
    for (const std::string& zone : tree.names(zones)) {
      if (device.temperature || tree.text(zones + "/" + zone + "/type") != wanted) continue;
      if (auto millidegrees = tree.number(zones + "/" + zone + "/temp"))
        device.temperature = Known<std::int64_t>::of(*millidegrees / 1000, "thermal zone");
    }
}

}  // namespace

std::optional<Device> read_device_tree(const Tree& tree) {
  auto compatible = tree.text("/proc/device-tree/compatible");
  auto model = tree.text("/proc/device-tree/model");
  if (!compatible) compatible = tree.text("/sys/firmware/devicetree/base/compatible");
  if (!model) model = tree.text("/sys/firmware/devicetree/base/model");
  if (!compatible) return std::nullopt;
  auto entries = entries_of(*compatible);
  auto chip = std::find_if(chips.begin(), chips.end(), [&](const Chip& known) {
    return std::find(entries.begin(), entries.end(), known.compatible) != entries.end();
  });
  if (chip == chips.end()) return std::nullopt;
  Device device;
  device.vendor = GpuVendor::nvidia;
  device.index = 0;
  device.integrated = true;
  device.driver_seen = true;
  device.compute_seen = true;
  device.memory_kind = Known<MemoryKind>::of(MemoryKind::unified, tool);
  device.arch = Known<std::string>::of(std::string(chip->arch), tool);
  std::string name = model ? board_name(*model) : std::string(chip->name);
  for (const Module& module : modules)
    if (compatible->find(module.part) != std::string::npos) {
      name = module.name;
      break;
    }
  device.model = Known<std::string>::of(std::move(name), tool);
  if (auto release = tree.text("/etc/nv_tegra_release")) {
    // "# R36 (release), REVISION: 4.3, …": L4T 36.4.3.
    auto words = split(*release, ' ');
    for (std::size_t i = 0; i + 1 < words.size(); ++i)
      if (words[i] == "REVISION:" && words.size() > 1 && words[1].starts_with('R'))
        device.driver = Known<std::string>::of(words[1].substr(1) + "." +
                                                   words[i + 1].substr(0, words[i + 1].find(',')),
                                               "nv_tegra_release");
  }
  read_thermal(tree, device);
  return device;
}

}  // namespace zed::gpu
