#include "gpu/nvidia_names.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "gpu/words.hpp"

namespace zed::gpu {
namespace {

constexpr std::array<std::string_view, 12> integrated_words{"n1",     "n1x",    "gb10",  "thor",
                                                            "orin",   "xavier", "nvgpu", "tegra",
                                                            "jetson", "tx1",    "tx2",   "nano"};

// Lines that are sold as cards or modules with memory of their own.
constexpr std::array<std::string_view, 11> discrete_words{
    "geforce", "tesla", "quadro", "rtx", "gtx", "titan", "grid", "nvs", "cmp", "gh200", "gb200"};

bool is_all(std::string_view text, std::string_view allowed) {
  return !text.empty() && text.find_first_not_of(allowed) == std::string_view::npos;
}

std::vector<std::string> words_in(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (char c : lower(text) + " ") {
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  return words;
}

template <std::size_t N>
bool holds_any(std::string_view text, const std::array<std::string_view, N>& known) {
  const auto words = words_in(text);
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return std::find(known.begin(), known.end(), word) != known.end();
  });
}

/// "a100", "l40s", "t4", "v100": a letter of a data centre line and a number.
bool is_data_centre_word(std::string_view word) {
  return word.size() >= 2 &&
         std::string_view("abhklmptv").find(word[0]) != std::string_view::npos && word[1] >= '0' &&
         word[1] <= '9';
}

}  // namespace

bool is_integrated_nvidia(std::string_view model) {
  return holds_any(model, integrated_words);
}

bool is_discrete_nvidia(std::string_view model) {
  const auto words = words_in(model);
  return holds_any(model, discrete_words) ||
         std::any_of(words.begin(), words.end(), is_data_centre_word);
}

bool is_uuid(std::string_view text) {
  constexpr std::size_t longest = 96;
  bool known = text.starts_with("GPU-") || text.starts_with("MIG-");
  return known && text.size() <= longest && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '/';
         });
}

// "<card>-<gigabytes><series>" or "<card>-<instances>-<gigabytes><series>", the series one letter
// of A, B, C, Q: NVIDIA's vGPU user guide.
bool is_vgpu(std::string_view model) {
  std::size_t dash = model.rfind('-');
  if (dash == std::string_view::npos) return false;
  std::string_view profile = model.substr(dash + 1);
  if (profile.size() < 2 || std::string_view("ABCQ").find(profile.back()) == std::string_view::npos)
    return false;
  return is_all(profile.substr(0, profile.size() - 1), "0123456789");
}

void settle_nvidia_memory(Device& device, const std::string& source) {
  const std::string& model = device.model.value;
  bool lost = severity(device.health) >= severity(GpuHealth::reset_required);
  bool has_no_size = device.total.state == FieldState::unsupported;
  // "Not supported" of a present device means that it shares the host's memory, unless its name
  // says that it does not: a wrapper may leave a column out.
  bool shares = has_no_size && !lost && !device.mig_enabled &&
                (device.model ? !is_discrete_nvidia(model) : device.coherent);
  device.integrated = is_integrated_nvidia(model) || shares;
  if (device.integrated)
    device.memory_kind = Known<MemoryKind>::of(MemoryKind::unified, source);
  else if (is_vgpu(model) || !device.mig_parent.empty())
    device.memory_kind = Known<MemoryKind>::of(MemoryKind::slice, source);
  else if (device.coherent && device.total)
    device.memory_kind = Known<MemoryKind>::of(MemoryKind::coherent, source);
  else if (device.total)
    device.memory_kind = Known<MemoryKind>::of(MemoryKind::dedicated, source);
  if (!device.total || !device.used || !device.free || device.reserved) return;
  Bytes gap = device.total.value - device.used.value - device.free.value;
  if (gap >= Bytes{}) device.reserved = Known<Bytes>::of(gap, device.total.source);
}

bool is_driver_down(std::string_view text, int status) {
  auto says = [&](std::string_view part) { return text.find(part) != std::string_view::npos; };
  return status == 9 || status == 18 || says("version mismatch") ||
         says("couldn't communicate with the NVIDIA driver") || says("Driver Not Loaded");
}

void explain_nvidia_failure(std::string_view text, int status, Report& report) {
  auto says = [&](std::string_view part) { return text.find(part) != std::string_view::npos; };
  if (status == 18 || says("version mismatch")) {
    report.problem("NVIDIA's kernel driver and its libraries are of different versions",
                   "reboot, or unload the nvidia modules and load them again");
  } else if (status == 9 || says("couldn't communicate with the NVIDIA driver") ||
             says("Driver Not Loaded")) {
    report.problem("NVIDIA's driver is not loaded",
                   "install the driver or load it (modprobe nvidia), then look at dmesg");
  } else if (says("GPU is lost") || says("fallen off the bus") || status == 15) {
    std::string bus;
    if (std::size_t at = text.find("GPU "); at != std::string_view::npos) {
      std::string_view rest = text.substr(at + 4);
      bus = normal_bus_id(rest.substr(0, rest.find(": ")));
    }
    if (!bus.empty()) {
      Device device;
      device.vendor = GpuVendor::nvidia;
      device.bus_id = Known<std::string>::of(bus, "nvidia-smi");
      device.diagnose(GpuHealth::lost, "the driver says: GPU is lost", "nvidia-smi");
      device.driver_seen = true;
      report.devices.push_back(std::move(device));
    }
    report.problem("a GPU" + (bus.empty() ? std::string() : " at " + bus) +
                       " is lost, and nvidia-smi tells nothing of the others",
                   "reboot; if it comes back lost, check power and seating");
  } else if (says("Unknown Error") && says("NVML")) {
    report.problem("NVML answers \"Unknown Error\": a container that lost its devices, as after "
                   "systemctl daemon-reload",
                   "restart the container; the host is fine");
  } else if (says("Insufficient Permissions")) {
    report.problem("NVIDIA's devices may not be opened by this user",
                   "check the permissions of /dev/nvidia*");
  } else if (says("No devices were found") || status == 6) {
    // Not a failure: the driver is there and drives nothing.
  } else if (status != 0) {
    std::string first(trim(text.substr(0, text.find('\n'))).substr(0, 200));
    report.problem("nvidia-smi failed (exit status " + std::to_string(status) + ")" +
                       (first.empty() ? "" : ": " + first),
                   "run nvidia-smi by hand");
  }
}

bool is_application_xid(std::int64_t xid) {
  constexpr std::array<std::int64_t, 6> application{13, 31, 43, 45, 68, 109};
  return std::find(application.begin(), application.end(), xid) != application.end();
}

// NVIDIA's XID catalogue: resolution "RESET_GPU" or worse.
bool needs_reset_after(std::int64_t xid) {
  constexpr std::array<std::int64_t, 9> reset{62, 64, 79, 95, 119, 120, 140, 143, 155};
  return std::find(reset.begin(), reset.end(), xid) != reset.end();
}

}  // namespace zed::gpu
