#include "gpu/probe.hpp"

#include <algorithm>
#include <fstream>

#include "base/json.hpp"
#include "base/text.hpp"
#include "gpu/amd_tools.hpp"
#include "gpu/merge.hpp"
#include "gpu/metal.hpp"
#include "gpu/nvidia_csv.hpp"
#include "gpu/nvidia_list.hpp"
#include "gpu/nvidia_names.hpp"
#include "gpu/nvidia_xml.hpp"
#include "gpu/other_tools.hpp"
#include "gpu/pci_names.hpp"
#include "gpu/sysfs.hpp"
#include "net/tool.hpp"

namespace zed::gpu {
namespace {

/// pci.ids is over a megabyte: read only when a name is wanted.
std::string name_from_file(const std::filesystem::path& root, std::string_view pci_id) {
  constexpr std::size_t longest = std::size_t{8} << 20;
  for (const char* path : {"usr/share/misc/pci.ids", "usr/share/hwdata/pci.ids"}) {
    std::ifstream file(root / path, std::ios::binary);
    std::string text(longest, '\0');
    file.read(text.data(), static_cast<std::streamsize>(longest));
    text.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount())));
    if (std::string name = name_in_pci_ids(text, pci_id); !name.empty()) return name;
  }
  return {};
}

class Prober {
public:
  explicit Prober(const ProbeOptions& options) : options_(options), tree_(options.root) {}

  Report run() {
    report_.boot = tree_.text("/proc/sys/kernel/random/boot_id").value_or("");
    sysfs_ = read_sysfs(tree_);
    nvidia();
    merge(report_, seen_by_kernel());
    if (auto board = read_device_tree(tree_)) merge(report_, {std::move(*board)});
    amd();
    intel();
    apple();
    if (sysfs_.empty()) lspci();
    kernel_log();
    mark_unanswered();
    settle(report_, host_memory(tree_),
           [this](std::string_view id) { return name_from_file(options_.root, id); });
    if (options_.last) remember(report_, *options_.last);
    explain_missing_drivers();
    return std::move(report_);
  }

private:
  Result<net::ToolAnswer> run_it(const std::vector<std::string>& command) {
    return net::run_tool(command, options_.tool_deadline);
  }
  static bool is_there(const char* tool) { return !net::find_tool(tool).empty(); }

  /// Whether asking NVIDIA's driver would power on a GPU that sleeps, for nothing new.
  bool would_wake() const {
    if (options_.wake) return false;
    return std::any_of(sysfs_.begin(), sysfs_.end(), [this](const Device& device) {
      bool sleeps = device.vendor == GpuVendor::nvidia && device.suspended;
      return sleeps && !(options_.wake_unknown && !is_known(device));
    });
  }

  bool is_known(const Device& device) const {
    if (!options_.last) return false;
    const auto& known = options_.last->devices;
    return std::any_of(known.begin(), known.end(), [&](const Device& was) {
      return was.bus_id.value == device.bus_id.value && was.total;
    });
  }

  /// Where the driver's GPUs have no bus ids, nothing pairs them with the bus's.
  std::vector<Device> seen_by_kernel() const {
    bool unpaired =
        std::any_of(report_.devices.begin(), report_.devices.end(), [](const Device& device) {
          return device.vendor == GpuVendor::nvidia && !device.bus_id && !device.integrated &&
                 device.mig_parent.empty() && severity(device.health) == 0;
        });
    std::vector<Device> seen = sysfs_;
    if (unpaired)
      std::erase_if(seen, [](const Device& d) { return d.vendor == GpuVendor::nvidia; });
    return seen;
  }

  void nvidia() {
    asleep_ = would_wake();
    if (asleep_) return;
    bool answered = nvml();
    if (answered || hangs_ || driver_down_) return;
    if (is_there("nvidia-smi")) nvidia_smi();
  }

  /// In a process of its own, which is given up if it hangs with the driver.
  bool nvml() {
    if (options_.self.empty()) return false;
    auto answer = run_it({options_.self, "probe", "--nvml"});
    if (!answer) return note_failure(answer.error()), false;
    auto value = parse_json(answer->out);
    if (answer->status != 0 || !value) {
      // Words of NVML; 3 is "no such library", which is no failure.
      if (answer->status == 3) return false;
      explain_nvidia_failure(answer->err, answer->status, report_);
      driver_down_ = is_driver_down(answer->err, answer->status);
      failed_ = true;
      return false;
    }
    auto found = from_value<Report>(*value);
    if (!found) {
      report_.problem("NVML's reader ended with " + found.error().describe(), "report this");
      return false;
    }
    asked_ = true;
    merge(report_, std::move(found->devices));
    return true;
  }

  void note_failure(const Error& error) {
    if (error.code != ErrorCode::timeout) return;
    hangs_ = true;
    report_.problem(error.message, error.hint);
  }

  void nvidia_smi() {
    ask_csv();
    if (!hangs_ && !driver_down_) ask_otherwise();
    if (asked_) return;
    for (Problem& problem : csv_failure_.problems)
      report_.problem(std::move(problem.what), std::move(problem.act));
    merge(report_, std::move(csv_failure_.devices));
  }

  /// What the CSV does not tell, or all of it where there is none.
  void ask_otherwise() {
    ask_xml();
    bool mig = std::any_of(report_.devices.begin(), report_.devices.end(),
                           [](const Device& d) { return d.mig_enabled || !d.mig_parent.empty(); });
    bool nothing = report_.devices.empty();
    bool denied = std::any_of(report_.devices.begin(), report_.devices.end(),
                              [](const Device& d) { return d.total.state == FieldState::denied; });
    if (!hangs_ && (mig || nothing || denied || doubtful_)) ask_list();
    if (!hangs_ && asked_) ask_processes();
    if (!hangs_ && asked_ && report_.devices.size() > 1) ask_topology();
  }

  /// One column that an old driver does not know spoils the whole question: ask without it.
  void ask_csv() {
    auto columns = gpu_columns();
    while (!columns.empty()) {
      auto answer = run_it(
          {"nvidia-smi", "--query-gpu=" + join(columns, ","), "--format=csv,noheader,nounits"});
      if (!answer) return note_failure(answer.error());
      const std::string all = answer->out + answer->err;
      if (answer->status == 0) return take_csv(answer->out, columns);
      auto unknown = std::find(columns.begin(), columns.end(), unknown_column(all));
      if (unknown == columns.end()) {
        explain_nvidia_failure(all, answer->status, csv_failure_);
        driver_down_ = is_driver_down(all, answer->status);
        failed_ = answer->status != 6;
        return;
      }
      columns.erase(unknown);
    }
  }

  void take_csv(const std::string& text, const std::vector<std::string>& columns) {
    CsvAnswer found = read_gpu_csv(text, columns);
    doubtful_ = found.doubtful || found.rejected > 0;
    asked_ = asked_ || !found.devices.empty();
    merge(report_, std::move(found.devices));
  }

  void ask_xml() {
    auto answer = run_it({"nvidia-smi", "-q", "-x"});
    if (!answer) return note_failure(answer.error());
    auto found = read_nvidia_xml(answer->out);
    if (!found) return;
    asked_ = true;
    failed_ = false;
    merge(report_, std::move(found->devices));
  }

  void ask_list() {
    auto answer = run_it({"nvidia-smi", "-L"});
    if (!answer) return note_failure(answer.error());
    auto found = read_nvidia_list(answer->out);
    if (found.empty()) return;
    asked_ = true;
    failed_ = false;
    merge(report_, std::move(found));
  }

  void ask_processes() {
    auto answer =
        run_it({"nvidia-smi", "--query-compute-apps=gpu_uuid,pid,process_name,used_memory",
                "--format=csv,noheader,nounits"});
    if (!answer) return note_failure(answer.error());
    for (GpuOfProcess& found : read_apps_csv(answer->out))
      for (Device& device : report_.devices) {
        if (device.uuid.value != found.gpu_uuid) continue;
        auto same = std::find_if(
            device.processes.begin(), device.processes.end(),
            [&](const GpuProcess& process) { return process.pid == found.process.pid; });
        if (same == device.processes.end()) device.processes.push_back(found.process);
      }
  }

  void ask_topology() {
    auto answer = run_it({"nvidia-smi", "topo", "-m"});
    if (!answer) return note_failure(answer.error());
    Topology topology = read_topology(answer->out);
    for (Device& device : report_.devices) {
      if (device.vendor != GpuVendor::nvidia || !device.index) continue;
      if (auto node = topology.numa.find(*device.index); node != topology.numa.end())
        device.numa_node.fill(Known<std::int64_t>::of(node->second, "nvidia-smi topo"));
      if (auto island = topology.islands.find(*device.index); island != topology.islands.end())
        device.island = island->second;
    }
  }

  bool has_sleeper(GpuVendor vendor) const {
    return std::any_of(sysfs_.begin(), sysfs_.end(), [&](const Device& device) {
      return device.vendor == vendor && device.suspended;
    });
  }

  /// sysfs has the figures; the tools have names. They wake a GPU that sleeps.
  void amd() {
    if (has_sleeper(GpuVendor::amd)) return;
    bool complete = !sysfs_.empty();
    for (const Device& device : sysfs_)
      complete = complete &&
                 (device.vendor != GpuVendor::amd ||
                  (device.total && (device.model || !name_of_pci_id(device.pci_id.value).empty())));
    bool any = std::any_of(sysfs_.begin(), sysfs_.end(),
                           [](const Device& d) { return d.vendor == GpuVendor::amd; });
    if (complete && any) return read_rocm_version();
    if (is_there("amd-smi"))
      take_tool({"amd-smi", "static", "--json", "--asic", "--vram", "--bus", "--driver"},
                read_amd_smi);
    if (is_there("rocm-smi"))
      take_tool({"rocm-smi", "--showproductname", "--showmeminfo", "vram", "gtt", "--showbus",
                 "--showuniqueid", "--showuse", "--showdriverversion", "--json"},
                read_rocm_smi);
    read_rocm_version();
  }

  void read_rocm_version() {
    for (const char* path : {"/opt/rocm/.info/version", "/opt/rocm/.info/version-utils"})
      if (auto text = tree_.text(path); text && text->size() < 40) {
        report_.rocm = *text;
        return;
      }
  }

  template <class Read> void take_tool(const std::vector<std::string>& command, Read&& read) {
    auto answer = run_it(command);
    if (!answer) {
      if (answer.error().code == ErrorCode::timeout)
        report_.problem(answer.error().message, answer.error().hint);
      return;
    }
    auto found = read(answer->out);
    if (!found && !answer->err.empty()) found = read(answer->err);
    if (found) merge(report_, std::move(found->devices));
  }

  void intel() {
    if (has_sleeper(GpuVendor::intel) || !is_there("xpu-smi")) return;
    auto answer = run_it({"xpu-smi", "discovery", "-j"});
    if (!answer) return;
    auto found = read_xpu_smi(answer->out);
    if (!found) return;
    // The list has no sizes; each device has.
    for (const Device& device : std::vector<Device>(found->devices)) {
      if (device.total || !device.index) continue;
      auto one = run_it({"xpu-smi", "discovery", "-d", std::to_string(*device.index), "-j"});
      if (!one) continue;
      if (auto more = read_xpu_smi(one->out)) merge(*found, std::move(more->devices));
    }
    merge(report_, std::move(found->devices));
  }

  /// system_profiler takes seconds, and the GPU of an Apple chip never changes: one that is known
  /// is not asked for again.
  void apple() {
    Report found;
    if (options_.last)
      for (const Device& known : options_.last->devices)
        if (known.vendor == GpuVendor::apple) found.devices.push_back(known);
    if (found.devices.empty() && is_there("system_profiler")) {
      auto answer = run_it({"system_profiler", "SPDisplaysDataType", "-json"});
      if (answer)
        if (auto read = read_system_profiler(answer->out)) found = std::move(*read);
    }
    if (is_there("sysctl")) {
      auto answer =
          run_it({"sysctl", "hw.memsize", "machdep.cpu.brand_string", "iogpu.wired_limit_mb"});
      if (answer) {
        AppleFacts facts = read_apple_sysctl(answer->out);
        // It speaks of this machine, whatever the tools are told to say of another one.
        if (options_.root == "/") facts.working_set = metal_working_set();
        settle_apple_memory(found, facts);
      }
    }
    merge(report_, std::move(found.devices));
  }

  void lspci() {
    if (!is_there("lspci")) return;
    auto answer = run_it({"lspci", "-Dmmnn"});
    if (answer) merge(report_, read_lspci(answer->out));
  }

  void kernel_log() {
    if (!is_there("dmesg")) return;
    auto answer = run_it({"dmesg"});
    if (answer && answer->status == 0) merge(report_, read_kernel_log(answer->out));
  }

  /// What an NVIDIA GPU is worth of which only the bus or the kernel's messages tell.
  void mark_unanswered(Device& device) const {
    if (driver_down_)
      device.diagnose(GpuHealth::no_driver, "its driver does not work", "nvidia-smi");
    else if (hangs_)
      device.diagnose(GpuHealth::stale, "its driver does not answer", "nvidia-smi");
    else if (failed_ && severity(device.health) == 0)
      device.diagnose(GpuHealth::stale, "its driver tells nothing of it now", "nvidia-smi");
    else if (asked_ && severity(device.health) == 0)
      device.diagnose(GpuHealth::no_driver,
                      "its driver does not list it: not given to this container, or broken",
                      "nvidia-smi");
    else if (!asked_ && !asleep_ && device.driver_seen && !device.only_logged &&
             severity(device.health) == 0)
      device.diagnose(GpuHealth::no_driver,
                      "its driver is loaded, and neither NVML nor nvidia-smi is here: install the "
                      "driver's libraries, or give this container its GPUs",
                      "sysfs");
  }

  void mark_unanswered() {
    for (Device& device : report_.devices) {
      bool told = device.index || device.total || device.integrated || device.passed_through;
      if (device.vendor == GpuVendor::nvidia && !told) mark_unanswered(device);
    }
    if (!hangs_ || !options_.last) return;
    // A hang hides all of NVIDIA's: the last known ones stand, stale.
    Report old = stale_report(*options_.last, "its driver does not answer");
    std::erase_if(old.devices, [](const Device& d) { return d.vendor != GpuVendor::nvidia; });
    merge(report_, std::move(old.devices));
  }

  void explain_missing_drivers() {
    for (const Device& device : report_.devices) {
      const std::string what =
          device.model.value + (device.bus_id ? " at " + device.bus_id.value
                                              : " " + std::to_string(device.index.value_or(0)));
      if (device.passed_through)
        report_.problem(what + " is lent to virtual machines",
                        "bind it to its own driver if it is to take jobs here");
      else if (device.health == GpuHealth::no_driver && !driver_down_)
        report_.problem(what + " has no driver that could use it", driver_advice(device.vendor));
      else if (device.health == GpuHealth::reset_required)
        report_.problem(what + " needs a reset: " + device.why,
                        "end what uses it, then nvidia-smi --gpu-reset, or reboot");
      else if (device.health == GpuHealth::lost)
        report_.problem(what + " is lost: " + device.why,
                        "reboot; if it comes back lost, check power and seating");
    }
  }

  static std::string driver_advice(GpuVendor vendor) {
    switch (vendor) {
    case GpuVendor::nvidia: return "install NVIDIA's driver, then modprobe nvidia";
    case GpuVendor::amd: return "modprobe amdgpu; look at dmesg if it refuses the device";
    case GpuVendor::intel: return "modprobe xe (or i915); look at dmesg if it refuses the device";
    default: return "install its driver";
    }
  }

  const ProbeOptions& options_;
  Tree tree_;
  Report report_;
  std::vector<Device> sysfs_;
  Report csv_failure_;        ///< why nvidia-smi --query-gpu failed; told if nothing else answers
  bool asleep_ = false;       ///< NVIDIA's driver was not asked: that would wake a GPU
  bool asked_ = false;        ///< NVIDIA's driver answered
  bool hangs_ = false;        ///< or it does not
  bool driver_down_ = false;  ///< or nothing can use it
  bool failed_ = false;       ///< or it told of a failure only
  bool doubtful_ = false;     ///< rows of the CSV made no sense
};

}  // namespace

Report probe_machine(const ProbeOptions& options) {
  return Prober(options).run();
}

}  // namespace zed::gpu
