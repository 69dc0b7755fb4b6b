#include "gpu/nvml.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>

#include "base/text.hpp"
#include "gpu/nvidia_names.hpp"
#include "gpu/nvml_api.hpp"
#include "gpu/words.hpp"

namespace zed::gpu {
namespace {

const std::string tool = "nvml";
constexpr unsigned most_gpus = 256;
constexpr unsigned most_instances = 16;
constexpr std::size_t longest_name = 96;

// The driver's library gets what it needs from its own dependencies, not from what this program
// happens to export: it may hold another C++ runtime. The address sanitizer cannot have that.
#if defined(RTLD_DEEPBIND) && !defined(__SANITIZE_ADDRESS__)
constexpr int load_mode = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
#else
constexpr int load_mode = RTLD_NOW | RTLD_LOCAL;
#endif

struct CloseLibrary {
  void operator()(void* library) const { ::dlclose(library); }
};
using Library = std::unique_ptr<void, CloseLibrary>;

/// Calls a function by name; one that the library lacks answers like one that is not supported.
class Nvml {
public:
  explicit Nvml(void* library) : library_(library) {}

  template <class... Args> nvmlReturn_t call(const char* name, Args... args) const {
    using Function = nvmlReturn_t (*)(Args...);
    void* symbol = ::dlsym(library_, name);
    if (symbol == nullptr) return NVML_ERROR_FUNCTION_NOT_FOUND;
    return reinterpret_cast<Function>(symbol)(args...);
  }

  template <class... Args> std::string text(const char* name, Args... args) const {
    std::array<char, longest_name> buffer{};
    if (call(name, args..., buffer.data(), static_cast<unsigned>(buffer.size())) != NVML_SUCCESS)
      return {};
    buffer.back() = '\0';
    return buffer.data();
  }

private:
  void* library_;
};

FieldState state_of(nvmlReturn_t code) {
  switch (code) {
  case NVML_SUCCESS: return FieldState::value;
  case NVML_ERROR_NOT_SUPPORTED: return FieldState::unsupported;
  case NVML_ERROR_FUNCTION_NOT_FOUND: return FieldState::unasked;
  case NVML_ERROR_NO_PERMISSION: return FieldState::denied;
  default: return FieldState::error;
  }
}

template <class T> Known<T> known_of(nvmlReturn_t code, T value) {
  FieldState state = state_of(code);
  return {state, state == FieldState::value ? std::move(value) : T{}, tool};
}

Known<std::string> known_text_of(std::string text) {
  if (text.empty() || !is_valid_utf8(text)) return {FieldState::error, {}, tool};
  return Known<std::string>::of(std::move(text), tool);
}

Bytes as_bytes(unsigned long long count) {
  constexpr unsigned long long most = 1ULL << 50;
  return {static_cast<std::int64_t>(std::min(count, most))};
}

/// One GPU or instance, read through its handle.
class Reader {
public:
  Reader(const Nvml& nvml, nvmlDevice_t handle, Device& device)
      : nvml_(nvml), handle_(handle), device_(device) {}

  void identity() {
    std::string uuid = nvml_.text("nvmlDeviceGetUUID", handle_);
    if (!uuid.empty()) device_.uuid = known_text_of(std::move(uuid));
    device_.model = known_text_of(nvml_.text("nvmlDeviceGetName", handle_));
    pci();
    int major = 0;
    int minor = 0;
    auto code = note(nvml_.call("nvmlDeviceGetCudaComputeCapability", handle_, &major, &minor));
    device_.arch = known_of(code, std::to_string(major) + "." + std::to_string(minor));
    unsigned node = 0;
    code = nvml_.call("nvmlDeviceGetNumaNodeId", handle_, &node);
    if (code == NVML_SUCCESS) device_.numa_node = known_of<std::int64_t>(code, node);
  }

  /// v2 tells what the driver reserves; v1 counts it as used.
  void memory() {
    nvmlMemory_v2_t v2{};
    v2.version = nvml_memory_v2;
    auto code = nvml_.call("nvmlDeviceGetMemoryInfo_v2", handle_, &v2);
    if (code == NVML_SUCCESS) {
      device_.total = known_of(code, as_bytes(v2.total));
      device_.reserved = known_of(code, as_bytes(v2.reserved));
      device_.free = known_of(code, as_bytes(v2.free));
      device_.used = known_of(code, as_bytes(v2.used));
      return;
    }
    nvmlMemory_t v1{};
    auto old = note(nvml_.call("nvmlDeviceGetMemoryInfo", handle_, &v1));
    if (old == NVML_ERROR_FUNCTION_NOT_FOUND) old = note(code);
    device_.total = known_of(old, as_bytes(v1.total));
    device_.free = known_of(old, as_bytes(v1.free));
    device_.used = known_of(old, as_bytes(v1.used));
  }

  void sensors() {
    nvmlUtilization_t rates{};
    auto code = note(nvml_.call("nvmlDeviceGetUtilizationRates", handle_, &rates));
    device_.utilization = known_of<std::int64_t>(code, rates.gpu);
    unsigned celsius = 0;
    code = note(nvml_.call("nvmlDeviceGetTemperature", handle_, 0, &celsius));
    device_.temperature = known_of<std::int64_t>(code, celsius);
    unsigned milliwatts = 0;
    code = note(nvml_.call("nvmlDeviceGetPowerUsage", handle_, &milliwatts));
    device_.power = known_of(code, milliwatts / 1000.0);
  }

  void trouble() {
    nvmlFieldValue_t action{};
    action.fieldId = NVML_FI_DEV_GET_GPU_RECOVERY_ACTION;
    if (nvml_.call("nvmlDeviceGetFieldValues", handle_, 1, &action) == NVML_SUCCESS &&
        action.nvmlReturn == NVML_SUCCESS && action.value.uiVal != nvml_recovery_none)
      device_.diagnose(action.value.uiVal == nvml_recovery_drain_p2p ? GpuHealth::degraded
                                                                     : GpuHealth::reset_required,
                       "the driver asks for: " + recovery_word(action.value.uiVal), tool);
    unsigned correctable = 0;
    unsigned uncorrectable = 0;
    unsigned pending = 0;
    unsigned failed = 0;
    auto code = note(nvml_.call("nvmlDeviceGetRemappedRows", handle_, &correctable, &uncorrectable,
                                &pending, &failed));
    if (code != NVML_SUCCESS) return;
    if (failed != 0)
      device_.diagnose(GpuHealth::reset_required,
                       "memory rows could not be remapped: the card should be replaced", tool);
    if (pending != 0)
      device_.diagnose(GpuHealth::reset_required,
                       "a memory row is to be remapped: drain the GPU and reset it", tool);
  }

  void processes() {
    for (const char* kind : {"nvmlDeviceGetComputeRunningProcesses",  //
                             "nvmlDeviceGetGraphicsRunningProcesses"}) {
      std::array<nvmlProcessInfo_t, 256> infos{};
      auto count = static_cast<unsigned>(infos.size());
      auto code = nvml_.call((std::string(kind) + "_v3").c_str(), handle_, &count, infos.data());
      if (code == NVML_ERROR_FUNCTION_NOT_FOUND)
        code = nvml_.call((std::string(kind) + "_v2").c_str(), handle_, &count, infos.data());
      if (code != NVML_SUCCESS) continue;
      for (unsigned i = 0; i < std::min<std::size_t>(count, infos.size()); ++i)
        add_process(infos[i]);
    }
  }

  bool is_mig() {
    unsigned current = 0;
    unsigned pending = 0;
    auto code = note(nvml_.call("nvmlDeviceGetMigMode", handle_, &current, &pending));
    return code == NVML_SUCCESS && current == 1;
  }

  bool is_virtual() {
    unsigned mode = 0;
    return nvml_.call("nvmlDeviceGetVirtualizationMode", handle_, &mode) == NVML_SUCCESS &&
           mode == NVML_GPU_VIRTUALIZATION_MODE_VGPU;
  }

private:
  /// Any answer may be the one that tells of a loss.
  nvmlReturn_t note(nvmlReturn_t code) {
    if (code == NVML_ERROR_GPU_IS_LOST)
      device_.diagnose(GpuHealth::lost, "NVML says: GPU is lost", tool);
    if (code == NVML_ERROR_RESET_REQUIRED)
      device_.diagnose(GpuHealth::reset_required, "NVML says: GPU requires reset", tool);
    return code;
  }

  static std::string recovery_word(unsigned action) {
    switch (action) {
    case 1: return "reset of the GPU";
    case 2: return "reboot of the node";
    case 3: return "an end of peer-to-peer traffic";
    case 4: return "an end of all work, then a reset";
    default: return "recovery action " + std::to_string(action);
    }
  }

  void pci() {
    nvmlPciInfo_t info{};
    auto code = note(nvml_.call("nvmlDeviceGetPciInfo_v3", handle_, &info));
    if (code == NVML_ERROR_FUNCTION_NOT_FOUND)
      code = note(nvml_.call("nvmlDeviceGetPciInfo_v2", handle_, &info));
    std::string bus(info.busId, ::strnlen(info.busId, sizeof info.busId));
    unsigned id = info.pciDeviceId;
    if (code == NVML_ERROR_FUNCTION_NOT_FOUND) {
      nvmlPciInfo_v1_t old{};
      code = note(nvml_.call("nvmlDeviceGetPciInfo", handle_, &old));
      bus.assign(old.busId, ::strnlen(old.busId, sizeof old.busId));
      id = old.pciDeviceId;
    }
    bus = normal_bus_id(bus);
    if (code != NVML_SUCCESS || bus.empty()) return;
    device_.bus_id = Known<std::string>::of(bus, tool);
    constexpr std::string_view digits = "0123456789abcdef";
    if ((id & 0xffff) != 0x10de) return;
    std::string text = "10de:";
    for (unsigned shift = 28; shift >= 16; shift -= 4)
      text += digits[(id >> shift) & 0xf];
    device_.pci_id = Known<std::string>::of(text, tool);
  }

  void add_process(const nvmlProcessInfo_t& info) {
    auto same = std::find_if(device_.processes.begin(), device_.processes.end(),
                             [&](const GpuProcess& p) { return p.pid == info.pid; });
    if (same != device_.processes.end()) return;
    GpuProcess process{info.pid, {}, std::nullopt};
    if (info.usedGpuMemory != nvml_value_not_available) process.used = as_bytes(info.usedGpuMemory);
    device_.processes.push_back(std::move(process));
  }

  const Nvml& nvml_;
  nvmlDevice_t handle_;
  Device& device_;
};

void mark_code(Device& device, nvmlReturn_t code) {
  switch (code) {
  case NVML_ERROR_GPU_IS_LOST:
    return device.diagnose(GpuHealth::lost, "NVML says: GPU is lost", tool);
  case NVML_ERROR_RESET_REQUIRED:
    return device.diagnose(GpuHealth::reset_required, "NVML says: GPU requires reset", tool);
  case NVML_ERROR_NO_PERMISSION:
    return device.diagnose(GpuHealth::no_driver,
                           "NVML may not open it: check the permissions of /dev/nvidia*", tool);
  default: return device.diagnose(GpuHealth::lost, "NVML error " + std::to_string(code), tool);
  }
}

/// What concerns the machine, not a GPU.
struct Versions {
  std::string driver;
  std::string cuda;
};

Versions versions_of(const Nvml& nvml) {
  Versions versions;
  versions.driver = nvml.text("nvmlSystemGetDriverVersion");
  int cuda = 0;
  auto code = nvml.call("nvmlSystemGetCudaDriverVersion_v2", &cuda);
  if (code == NVML_ERROR_FUNCTION_NOT_FOUND)
    code = nvml.call("nvmlSystemGetCudaDriverVersion", &cuda);
  // 12040 is 12.4.
  if (code == NVML_SUCCESS && cuda > 0)
    versions.cuda = std::to_string(cuda / 1000) + "." + std::to_string(cuda % 1000 / 10);
  return versions;
}

class Probe {
public:
  explicit Probe(const Nvml& nvml) : nvml_(nvml), versions_(versions_of(nvml)) {}

  Report run() {
    unsigned count = 0;
    auto code = nvml_.call("nvmlDeviceGetCount_v2", &count);
    if (code == NVML_ERROR_FUNCTION_NOT_FOUND) code = nvml_.call("nvmlDeviceGetCount", &count);
    if (code != NVML_SUCCESS) count = 0;
    for (unsigned index = 0; index < std::min(count, most_gpus); ++index)
      read_gpu(index);
    find_islands();
    return std::move(report_);
  }

private:
  Device fresh(std::int64_t index) const {
    Device device;
    device.vendor = GpuVendor::nvidia;
    device.index = index;
    device.driver_seen = true;
    if (!versions_.driver.empty()) device.driver = Known<std::string>::of(versions_.driver, tool);
    if (!versions_.cuda.empty()) device.cuda = Known<std::string>::of(versions_.cuda, tool);
    return device;
  }

  void read_gpu(unsigned index) {
    Device device = fresh(index);
    nvmlDevice_t handle = nullptr;
    auto code = nvml_.call("nvmlDeviceGetHandleByIndex_v2", index, &handle);
    if (code == NVML_ERROR_FUNCTION_NOT_FOUND)
      code = nvml_.call("nvmlDeviceGetHandleByIndex", index, &handle);
    if (code != NVML_SUCCESS) {
      mark_code(device, code);
      report_.devices.push_back(std::move(device));
      return;
    }
    Reader reader(nvml_, handle, device);
    reader.identity();
    reader.memory();
    reader.sensors();
    reader.trouble();
    reader.processes();
    device.mig_enabled = reader.is_mig();
    settle_nvidia_memory(device, tool);
    // The code is NVML's own word, whatever the name.
    if (device.total.state == FieldState::unsupported && severity(device.health) == 0 &&
        !device.mig_enabled) {
      device.integrated = true;
      device.memory_kind = Known<MemoryKind>::of(MemoryKind::unified, tool);
    }
    if (reader.is_virtual()) device.memory_kind = Known<MemoryKind>::of(MemoryKind::slice, tool);
    report_.devices.push_back(device);
    handles_[device.bus_id.value] = {handle, report_.devices.size() - 1};
    if (device.mig_enabled) read_instances(handle, device);
  }

  /// Numbers of instances have holes: NOT_FOUND is one, the range goes on.
  void read_instances(nvmlDevice_t parent, const Device& whole) {
    unsigned most = most_instances;
    if (nvml_.call("nvmlDeviceGetMaxMigDeviceCount", parent, &most) != NVML_SUCCESS)
      most = most_instances;
    for (unsigned i = 0; i < std::min(most, most_instances); ++i) {
      nvmlDevice_t handle = nullptr;
      if (nvml_.call("nvmlDeviceGetMigDeviceHandleByIndex", parent, i, &handle) != NVML_SUCCESS)
        continue;
      Device device = fresh(whole.index.value_or(-1));
      device.mig_parent = whole.uuid ? whole.uuid.value : std::string("unknown");
      device.mig_parent_bus = whole.bus_id.value;
      device.mig_device = i;
      Reader reader(nvml_, handle, device);
      reader.identity();
      reader.memory();
      reader.processes();
      device.bus_id = {};
      device.pci_id = {};
      device.arch.fill(whole.arch);
      device.numa_node = whole.numa_node;
      settle_nvidia_memory(device, tool);
      device.diagnose(whole.health, whole.why, whole.health_source);
      report_.devices.push_back(std::move(device));
    }
  }

  /// GPUs joined by NVLink, directly or through NVSwitch (whose remote end is no GPU: all that
  /// reach one are one island).
  void find_islands() {
    std::map<std::size_t, std::size_t> joined;
    auto root = [&](std::size_t i) {
      while (joined.count(i) > 0 && joined[i] != i)
        i = joined[i];
      return i;
    };
    auto join_two = [&](std::size_t a, std::size_t b) {
      a = root(a);
      b = root(b);
      joined[std::max(a, b)] = std::min(a, b);
      joined.try_emplace(std::min(a, b), std::min(a, b));
    };
    std::optional<std::size_t> on_switch;
    for (const auto& [bus, entry] : handles_) {
      for (unsigned link = 0; link < NVML_NVLINK_MAX_LINKS; ++link) {
        unsigned active = 0;
        nvmlPciInfo_t remote{};
        if (nvml_.call("nvmlDeviceGetNvLinkState", entry.first, link, &active) != NVML_SUCCESS ||
            active == 0 ||
            nvml_.call("nvmlDeviceGetNvLinkRemotePciInfo_v2", entry.first, link, &remote) !=
                NVML_SUCCESS)
          continue;
        auto peer = handles_.find(
            normal_bus_id({remote.busId, ::strnlen(remote.busId, sizeof remote.busId)}));
        if (peer != handles_.end()) {
          join_two(entry.second, peer->second.second);
        } else {
          if (on_switch) join_two(entry.second, *on_switch);
          on_switch = entry.second;
        }
      }
    }
    std::map<std::size_t, std::size_t> sizes;
    for (const auto& entry : joined)
      ++sizes[root(entry.first)];
    for (const auto& entry : joined)
      if (sizes[root(entry.first)] > 1)
        report_.devices[entry.first].island = "nvlink-" + std::to_string(root(entry.first));
  }

  const Nvml& nvml_;
  Versions versions_;
  Report report_;
  std::map<std::string, std::pair<nvmlDevice_t, std::size_t>> handles_;  ///< by bus id
};

/// Words and exit statuses of nvidia-smi stand for the codes that it got from here.
tl::unexpected<Error> start_error(nvmlReturn_t code) {
  switch (code) {
  case NVML_ERROR_DRIVER_NOT_LOADED: return fail(ErrorCode::unavailable, "Driver Not Loaded");
  case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
    return fail(ErrorCode::unavailable, "Driver/library version mismatch");
  case NVML_ERROR_NO_PERMISSION: return fail(ErrorCode::refused, "Insufficient Permissions");
  default:
    return fail(ErrorCode::unavailable,
                "Failed to initialize NVML: " + (code == NVML_ERROR_UNKNOWN
                                                     ? std::string("Unknown Error")
                                                     : "error " + std::to_string(code)));
  }
}

}  // namespace

Result<Report> read_nvml(const std::string& library) {
  Library loaded(::dlopen(library.c_str(), load_mode));
  if (!loaded) return fail(ErrorCode::not_found, "there is no " + library);
  Nvml nvml(loaded.get());
  auto code = nvml.call("nvmlInit_v2");
  if (code == NVML_ERROR_FUNCTION_NOT_FOUND) code = nvml.call("nvmlInit");
  if (code != NVML_SUCCESS) return start_error(code);
  Report report = Probe(nvml).run();
  nvml.call("nvmlShutdown");
  return report;
}

}  // namespace zed::gpu
