#include "gpu/sysfs.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "gpu/amd_tools.hpp"
#include "gpu/pci_names.hpp"
#include "gpu/words.hpp"

namespace zed::gpu {
namespace {

const std::string tool = "sysfs";
constexpr std::size_t most_gpus = 256;
constexpr std::int64_t page_bytes = 4096;

std::string hex4(std::uint64_t number) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (int shift = 12; shift >= 0; shift -= 4)
    text += digits[(number >> shift) & 0xf];
  return text;
}

/// Drivers that hold a device for a virtual machine.
bool lends_devices(std::string_view driver) {
  return driver == "vfio-pci" || driver == "pci-stub" || driver == "xen-pciback" ||
         driver == "nvgrace_gpu_vfio_pci";
}

/// Reads the folder of one PCI device.
class PciDevice {
public:
  PciDevice(const Tree& tree, std::string folder) : tree_(tree), folder_(std::move(folder)) {}

  std::optional<Device> read(const std::string& bus) {
    auto vendor = tree_.hex(folder_ + "/vendor");
    auto id = tree_.hex(folder_ + "/device");
    if (!is_display() || !vendor || !id || *vendor > 0xffff || *id > 0xffff) return std::nullopt;
    std::string pci_id = hex4(*vendor) + ":" + hex4(*id);
    device_.vendor = vendor_of_pci_id(pci_id);
    if (device_.vendor == GpuVendor::other) return std::nullopt;
    device_.pci_id = Known<std::string>::of(pci_id, tool);
    if (!bus.empty()) device_.bus_id = Known<std::string>::of(bus, tool);
    if (auto node = tree_.number(folder_ + "/numa_node"); node && *node >= 0)
      device_.numa_node = Known<std::int64_t>::of(*node, tool);
    device_.removable = tree_.text(folder_ + "/removable") == "removable";
    if (device_.removable) device_.why = "removable: its bus id changes with the port";
    read_power();
    read_memory();
    read_driver();
    read_sensors();
    return std::move(device_);
  }

private:
  /// Class 03xx is a display; where no class is told, a GPU is function 0 of its vendor.
  bool is_display() const {
    auto kind = tree_.hex(folder_ + "/class");
    if (!kind) return !folder_.ends_with(".1") && !folder_.ends_with(".2");
    std::uint64_t subclass = *kind >> 8;
    return subclass == 0x0300 || subclass == 0x0302 || subclass == 0x0380;
  }

  void read_power() {
    auto status = tree_.text(folder_ + "/power/runtime_status");
    device_.suspended = status == "suspended";
    if (device_.suspended) device_.diagnose(GpuHealth::ok, "suspended: it wakes when used", tool);
  }

  void set_total(std::int64_t bytes) {
    if (auto size = bytes_of(bytes, 1)) device_.total = Known<Bytes>::of(*size, tool);
    device_.driver_seen = true;
  }

  void read_memory() {
    switch (device_.vendor) {
    case GpuVendor::amd: return read_amd();
    case GpuVendor::intel: return read_intel();
    default: return;
    }
  }

  Known<Bytes> bytes_in(const std::string& name) const {
    if (auto number = tree_.number(folder_ + "/" + name))
      if (auto size = bytes_of(*number, 1)) return Known<Bytes>::of(*size, tool);
    if (tree_.is_denied(folder_ + "/" + name)) return {FieldState::denied, {}, tool};
    return {};
  }

  void read_amd() {
    device_.total = bytes_in("mem_info_vram_total");
    device_.used = bytes_in("mem_info_vram_used");
    device_.gtt = bytes_in("mem_info_gtt_total");
    device_.driver_seen = static_cast<bool>(device_.total);
    // TTM's limit may be set below what the GPU could map.
    if (auto pages = tree_.number("/sys/module/ttm/parameters/pages_limit"); pages && *pages > 0)
      if (auto limit = bytes_of(*pages, page_bytes); limit && device_.gtt)
        device_.gtt.value = std::min(device_.gtt.value, *limit);
    if (auto unique = tree_.hex(folder_ + "/unique_id"); unique && *unique != 0) {
      std::string digits =
          hex4(*unique >> 48) + hex4(*unique >> 32) + hex4(*unique >> 16) + hex4(*unique);
      device_.uuid = Known<std::string>::of("GPU-" + digits, tool);
    }
    if (auto name = tree_.text(folder_ + "/product_name"); name && !name->empty())
      device_.model = known_text(*name, tool);
    settle_amd_memory(device_, tool);
  }

  /// i915 says it of the whole card, xe of each tile.
  void read_intel() {
    std::int64_t total = 0;
    for (const std::string& card : tree_.names(folder_ + "/drm"))
      if (card.starts_with("card") && total == 0)
        total = tree_.number(folder_ + "/drm/" + card + "/lmem_total_bytes").value_or(0);
    for (const std::string& name : tree_.names(folder_))
      if (name.starts_with("tile"))
        if (auto bytes = tree_.number(folder_ + "/" + name + "/physical_vram_size_bytes");
            bytes && *bytes > 0 && total < INT64_MAX - *bytes)
          total += *bytes;
    if (total > 0) set_total(total);
    device_.integrated = is_integrated_intel(device_.bus_id.value);
    if (device_.integrated)
      device_.memory_kind = Known<MemoryKind>::of(MemoryKind::unified, tool);
    else if (device_.total)
      device_.memory_kind = Known<MemoryKind>::of(MemoryKind::dedicated, tool);
  }

  void read_driver() {
    const std::string driver = tree_.link_name(folder_ + "/driver");
    if (lends_devices(driver)) {
      device_.passed_through = true;
      device_.diagnose(GpuHealth::reserved,
                       "reserved: " + driver + " holds it for virtual machines", tool);
      return;
    }
    if (!driver.empty() && driver != "nouveau") device_.driver_seen = true;
    const std::string bus = device_.bus_id.value;
    if (!bus.empty() && tree_.exists("/proc/driver/nvidia/gpus/" + bus)) device_.driver_seen = true;
    if (driver == "nouveau")
      device_.diagnose(GpuHealth::no_driver, "nouveau drives it, which has no compute", tool);
    // A folder with a class is the kernel's own: there, no link means that nothing drives it.
    else if (driver.empty() && !device_.driver_seen && tree_.exists(folder_ + "/class"))
      device_.diagnose(GpuHealth::no_driver, "no driver is bound to it", tool);
  }

  /// Reading a sensor wakes a GPU: only of one that is awake.
  void read_sensors() {
    if (device_.vendor != GpuVendor::amd || device_.suspended) return;
    if (auto busy = tree_.number(folder_ + "/gpu_busy_percent"); busy && *busy >= 0 && *busy <= 100)
      device_.utilization = Known<std::int64_t>::of(*busy, tool);
    for (const std::string& name : tree_.names(folder_ + "/hwmon")) {
      const std::string monitor = folder_ + "/hwmon/" + name;
      if (auto millidegrees = tree_.number(monitor + "/temp1_input"))
        device_.temperature = Known<std::int64_t>::of(*millidegrees / 1000, tool);
      for (const char* power : {"/power1_average", "/power1_input"})
        if (auto microwatts = tree_.number(monitor + power))
          device_.power = Known<double>::of(static_cast<double>(*microwatts) / 1e6, tool);
    }
    read_memory_errors();
  }

  /// "ue: 0", "ce: 12": errors that ECC could not correct, and those that it did, since the driver
  /// was loaded (amdgpu_ras.c).
  void read_memory_errors() {
    const auto counts = tree_.text(folder_ + "/ras/umc_err_count");
    if (!counts) return;
    for (std::string_view line : lines_of(*counts)) {
      if (!line.starts_with("ue:")) continue;
      const auto count = whole_number(trim(line.substr(3)));
      if (!count || *count <= 0) continue;
      device_.diagnose(GpuHealth::degraded,
                       std::to_string(*count) + " memory errors that could not be corrected", tool);
    }
  }

  const Tree& tree_;
  std::string folder_;
  Device device_;
};

/// "0000:03:00.0" that a card's `device` link leads to.
std::string bus_of_card(const Tree& tree, const std::string& card) {
  std::string bus = normal_bus_id(tree.link_name(card + "/device"));
  if (!bus.empty()) return bus;
  auto uevent = tree.text(card + "/device/uevent");
  std::size_t at = uevent ? uevent->find("PCI_SLOT_NAME=") : std::string::npos;
  if (at == std::string::npos) return {};
  return normal_bus_id(uevent->substr(at + 14, uevent->find('\n', at) - at - 14));
}

bool is_card(const std::string& name) {
  return name.starts_with("card") && whole_number(std::string_view(name).substr(4)).has_value();
}

/// KFD's nodes with compute units, by bus id where it tells; an APU's node may be the CPU's.
struct KfdNode {
  std::string bus;
  std::string arch;
  std::string gpu_id;  ///< KFD's own number, of which its lists of processes are made
  std::string hive;    ///< GPUs of one xGMI hive have the same number; empty: in none
};

/// 64 bits, so that it may be more than whole_number() takes.
bool is_hive(std::string_view digits) {
  constexpr std::size_t longest = 20;
  return digits != "0" && !digits.empty() && digits.size() <= longest &&
         digits.find_first_not_of("0123456789") == std::string_view::npos;
}

std::vector<KfdNode> kfd_nodes(const Tree& tree) {
  std::vector<KfdNode> found;
  const std::string nodes = "/sys/class/kfd/kfd/topology/nodes";
  for (const std::string& name : tree.names(nodes)) {
    auto text = tree.text(nodes + "/" + name + "/properties");
    if (!text || found.size() >= most_gpus) continue;
    std::string flat;
    for (char c : *text)
      flat += c == '\n' || c == '\t' ? ' ' : c;
    auto words = split(flat, ' ');
    KfdNode node;
    std::int64_t units = 0;
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
      if (words[i] == "hive_id" && is_hive(words[i + 1])) node.hive = words[i + 1];
      auto number = whole_number(words[i + 1]);
      if (!number) continue;
      if (words[i] == "simd_count") units = *number;
      if (words[i] == "gfx_target_version") node.arch = gfx_name(*number);
      if (words[i] == "location_id" && *number > 0 && *number <= 0xffff) {
        std::string id = hex4(static_cast<std::uint64_t>(*number));
        // Bus in the high byte, device in five bits, function in three.
        std::uint64_t low = static_cast<std::uint64_t>(*number) & 0xff;
        node.bus = normal_bus_id("0000:" + id.substr(0, 2) + ":" + hex4(low >> 3).substr(2) + "." +
                                 hex4(low & 7).substr(3));
      }
    }
    node.gpu_id = tree.text(nodes + "/" + name + "/gpu_id").value_or("");
    if (units > 0 && !node.arch.empty()) found.push_back(std::move(node));
  }
  return found;
}

/// Who holds how much of a GPU's memory for compute.
std::vector<GpuProcess> kfd_processes(const Tree& tree, const std::string& gpu_id) {
  constexpr std::size_t most_processes = 256;
  std::vector<GpuProcess> found;
  const std::string folder = "/sys/class/kfd/kfd/proc";
  if (gpu_id.empty() || !whole_number(gpu_id)) return found;
  for (const std::string& name : tree.names(folder)) {
    auto pid = whole_number(name);
    auto used = tree.number(folder + "/" + name + "/vram_" + gpu_id);
    if (!pid || !used || *used <= 0 || found.size() >= most_processes) continue;
    found.push_back({*pid, {}, bytes_of(*used, 1)});
  }
  return found;
}

void add_kfd(const Tree& tree, std::vector<Device>& devices) {
  auto nodes = kfd_nodes(tree);
  std::vector<Device*> amd;
  for (Device& device : devices)
    if (device.vendor == GpuVendor::amd) amd.push_back(&device);
  for (const KfdNode& node : nodes)
    for (Device* device : amd) {
      bool same = node.bus.empty() ? nodes.size() == 1 && amd.size() == 1
                                   : node.bus == device->bus_id.value;
      // Where one side has no bus id, one GPU and one node are the same.
      same = same || (nodes.size() == 1 && amd.size() == 1 && device->bus_id.value.empty());
      if (!same) continue;
      device->arch = Known<std::string>::of(node.arch, tool);
      device->compute_seen = true;
      if (!node.hive.empty()) device->island = "xgmi-" + node.hive;
      device->processes = kfd_processes(tree, node.gpu_id);
      settle_amd_memory(*device, tool);
    }
}

void add_nvidia_name(const Tree& tree, Device& device) {
  if (device.vendor != GpuVendor::nvidia || device.bus_id.value.empty()) return;
  auto text = tree.text("/proc/driver/nvidia/gpus/" + device.bus_id.value + "/information");
  if (!text) return;
  for (std::string_view line : lines_of(*text)) {
    std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    std::string_view value = trim(line.substr(colon + 1));
    if (line.starts_with("Model:")) device.model = known_text(value, "/proc/driver/nvidia");
    // While it sleeps the file holds question marks.
    if (line.starts_with("GPU UUID:") && value.find('?') == std::string_view::npos &&
        value.starts_with("GPU-"))
      device.uuid = known_text(value, "/proc/driver/nvidia");
  }
}

}  // namespace

std::vector<Device> read_sysfs(const Tree& tree) {
  std::vector<Device> devices;
  for (const std::string& name : tree.names("/sys/bus/pci/devices")) {
    std::string bus = normal_bus_id(name);
    if (bus.empty() || devices.size() >= most_gpus) continue;
    if (auto device = PciDevice(tree, "/sys/bus/pci/devices/" + name).read(bus))
      devices.push_back(std::move(*device));
  }
  // cardN is no number of a vendor's: card0 may be a server's own screen.
  for (const std::string& name : tree.names("/sys/class/drm")) {
    const std::string card = "/sys/class/drm/" + name;
    if (!is_card(name) || devices.size() >= most_gpus) continue;
    std::string bus = bus_of_card(tree, card);
    bool known = !bus.empty() && std::any_of(devices.begin(), devices.end(), [&](const Device& d) {
      return d.bus_id.value == bus;
    });
    if (known) continue;
    if (auto device = PciDevice(tree, card + "/device").read(bus))
      devices.push_back(std::move(*device));
  }
  add_kfd(tree, devices);
  for (Device& device : devices)
    add_nvidia_name(tree, device);
  return devices;
}

}  // namespace zed::gpu
