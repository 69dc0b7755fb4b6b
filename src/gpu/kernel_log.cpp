#include <algorithm>

#include "base/text.hpp"
#include "gpu/nvidia_names.hpp"
#include "gpu/sysfs.hpp"
#include "gpu/words.hpp"

namespace zed::gpu {
namespace {

const std::string tool = "dmesg";
constexpr std::size_t most_gpus = 256;

/// The first bus id in a line, whatever is around it ("PCI:0000:44:00", "GPU 0000:b3:00.0").
std::string bus_in(std::string_view line) {
  for (std::size_t at = line.find(':'); at != std::string_view::npos; at = line.find(':', at + 1)) {
    if (at < 4) continue;
    std::size_t end = std::min(line.find_first_not_of("0123456789abcdefABCDEF:.", at), line.size());
    std::string_view word = line.substr(at - 4, end - at + 4);
    while (word.ends_with('.') || word.ends_with(':'))
      word.remove_suffix(1);
    if (word.size() < 10) continue;
    if (std::string bus = normal_bus_id(word); !bus.empty()) return bus;
  }
  return {};
}

/// The message behind "[  101.000001] ".
std::string_view message_of(std::string_view line) {
  line = trim(line);
  if (!line.starts_with('[')) return line;
  std::size_t end = line.find(']');
  return end == std::string_view::npos ? line : trim(line.substr(end + 1));
}

class Log {
public:
  void line(std::string_view text) {
    if (text.starts_with("NVRM:")) return nvidia(trim(text.substr(5)));
    current_.clear();
    if (text.starts_with("xe ") || text.starts_with("i915 ")) intel(text);
    if (text.starts_with("amdgpu ")) amd(text);
  }
  std::vector<Device> take() { return std::move(devices_); }

private:
  Device& device(const std::string& bus, GpuVendor vendor) {
    for (Device& known : devices_)
      if (known.bus_id.value == bus) return known;
    Device fresh;
    fresh.vendor = vendor;
    fresh.bus_id = Known<std::string>::of(bus, tool);
    fresh.only_logged = true;
    fresh.driver_seen = true;
    devices_.push_back(std::move(fresh));
    return devices_.back();
  }

  void nvidia(std::string_view text) {
    std::string bus = bus_in(text);
    if (devices_.size() >= most_gpus && bus.empty()) return;
    if (text.starts_with("Xid") && !bus.empty()) return xid(text, bus);
    // "The NVIDIA GPU 0000:b3:00.0" begins a message of three lines.
    if (text.starts_with("The NVIDIA GPU")) current_ = bus;
    if (text.starts_with("(PCI ID:") && !current_.empty()) {
      std::string id = lower(trim(text.substr(8, 10)));
      if (id.size() == 9 && id[4] == ':' && hexadecimal(id.substr(0, 4)) &&
          hexadecimal(id.substr(5)))
        device(current_, GpuVendor::nvidia).pci_id = Known<std::string>::of(id, tool);
      return;
    }
    if (text.find("fallen off the bus") == std::string_view::npos) return;
    if (bus.empty()) bus = current_;
    if (!bus.empty())
      device(bus, GpuVendor::nvidia)
          .diagnose(GpuHealth::lost, "the kernel says: GPU has fallen off the bus", tool);
  }

  void xid(std::string_view text, const std::string& bus) {
    std::size_t at = text.find("): ");
    if (at == std::string_view::npos) return;
    std::string_view rest = text.substr(at + 3);
    auto number = whole_number(rest.substr(0, rest.find_first_not_of("0123456789")));
    if (!number) return;
    Device& gpu = device(bus, GpuVendor::nvidia);
    const std::string name = "XID " + std::to_string(*number);
    if (is_application_xid(*number))
      gpu.diagnose(GpuHealth::ok, name + " (an application's fault)", tool);
    else if (*number == 79)
      gpu.diagnose(GpuHealth::lost, name + ": GPU has fallen off the bus", tool);
    else
      gpu.diagnose(needs_reset_after(*number) ? GpuHealth::reset_required : GpuHealth::degraded,
                   name, tool);
  }

  /// What was said of it before counts no more.
  static void begin_anew(Device& gpu) {
    gpu.health = GpuHealth::ok;
    gpu.health_source.clear();
    gpu.why.clear();
  }

  /// A driver that is loaded again counts the tiles again.
  Device& begin_intel(const std::string& bus) {
    Device& gpu = device(bus, GpuVendor::intel);
    begin_anew(gpu);
    gpu.total = {};
    return gpu;
  }

  /// "amdgpu 0000:03:00.0: amdgpu: GPU reset(1) failed": the driver resets a GPU that hangs by
  /// itself, and tells how that went (amdgpu_device.c). A card that the reset finds gone from the
  /// bus does not come back before the machine starts again.
  void amd(std::string_view text) {
    const std::string bus = bus_in(text);
    const auto says = [text](std::string_view words) {
      return text.find(words) != std::string_view::npos;
    };
    if (bus.empty() || devices_.size() >= most_gpus) return;
    if (says("device lost from bus"))
      device(bus, GpuVendor::amd)
          .diagnose(GpuHealth::lost, "the kernel says: device lost from bus", tool);
    else if (says("GPU reset(") && says("succeeded"))
      begin_anew(device(bus, GpuVendor::amd));
    else if ((says("GPU reset(") && says("failed")) || says("GPU reset end with ret"))
      device(bus, GpuVendor::amd)
          .diagnose(GpuHealth::reset_required, "the driver could not reset it after it hung", tool);
  }

  /// "xe 0000:01:00.0: [drm] Small BAR device"
  void intel(std::string_view text) {
    std::string bus = bus_in(text);
    if (bus.empty() || devices_.size() >= most_gpus) return;
    if (std::size_t at = text.find("(device ID "); at != std::string_view::npos) {
      std::string id = lower(text.substr(at + 11, 4));
      if (text.find("discrete") != std::string_view::npos && hexadecimal(id))
        begin_intel(bus).pci_id = Known<std::string>::of("8086:" + id, tool);
    }
    // "CRITICAL: Xe has declared device 0000:03:00.0 as wedged.": nothing runs until the driver is
    // bound again.
    if (text.find("as wedged") != std::string_view::npos)
      device(bus, GpuVendor::intel)
          .diagnose(GpuHealth::reset_required, "its driver declared it wedged", tool);
    if (text.find("Small BAR device") != std::string_view::npos)
      device(bus, GpuVendor::intel)
          .diagnose(GpuHealth::degraded,
                    "small BAR: turn on Resizable BAR in the firmware, transfers are slow without",
                    tool);
    constexpr std::string_view usable = "usable size exclude stolen ";
    if (std::size_t at = text.find(usable); at != std::string_view::npos) {
      std::string_view rest = text.substr(at + usable.size());
      auto bytes = hexadecimal(rest.substr(0, rest.find(',')));
      if (!bytes || *bytes > (std::uint64_t{1} << 50)) return;
      Device& gpu = device(bus, GpuVendor::intel);
      // One line a tile.
      Bytes sum = gpu.total.value + Bytes{static_cast<std::int64_t>(*bytes)};
      gpu.total = Known<Bytes>::of(sum, tool);
      gpu.memory_kind = Known<MemoryKind>::of(MemoryKind::dedicated, tool);
    }
  }

  std::vector<Device> devices_;
  std::string current_;  ///< bus id of a message that goes on
};

}  // namespace

std::vector<Device> read_kernel_log(std::string_view text) {
  Log log;
  for (std::string_view line : lines_of(text))
    log.line(message_of(line));
  return log.take();
}

}  // namespace zed::gpu
