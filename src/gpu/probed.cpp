#include "gpu/probed.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/log.hpp"
#include "gpu/merge.hpp"
#include "net/fd.hpp"
#include "net/tool.hpp"

namespace zed::gpu {
namespace {

// Two seconds are too few on a busy machine; after one that hung, the next is given longer.
constexpr Millis first_patience = seconds(10);
constexpr Millis later_patience = seconds(30);
constexpr std::int64_t rounding_mib = 64;

Report read_inventory(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  auto value = parse_json(text);
  auto report = value ? from_value<Report>(*value) : Result<Report>(fail(value.error()));
  return report ? std::move(*report) : Report{};
}

Status write_all(int file, std::string_view text) {
  while (!text.empty()) {
    ssize_t done = ::write(file, text.data(), text.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return fail(net::system_error(errno, "write the GPU inventory"));
    text.remove_prefix(static_cast<std::size_t>(done));
  }
  return {};
}

}  // namespace

Bytes strangers_of(const Device& device, const std::function<bool(std::int64_t pid)>& is_ours) {
  if (!device.used) return {};
  Bytes ours;
  bool unsaid = false;
  for (const GpuProcess& process : device.processes) {
    if (!is_ours || !is_ours(process.pid)) continue;
    if (process.used)
      ours += *process.used;
    else
      unsaid = true;
  }
  if (unsaid) return {};
  std::int64_t rest = std::max<std::int64_t>(0, device.used.value.value - ours.value);
  constexpr std::int64_t step = rounding_mib << 20;
  return {(rest + step / 2) / step * step};
}

ProbedGpus::ProbedGpus(ProbedOptions options)
    : options_(std::move(options)), last_(read_inventory(options_.inventory_file)),
      patience_(first_patience) {}

std::vector<Gpu> ProbedGpus::gpus_of(const Report& report) const {
  std::vector<Gpu> gpus = core_gpus(report, options_.nominal);
  for (Gpu& gpu : gpus)
    for (const Device& device : report.devices)
      if (identity_of(device) == gpu.uuid && gpu.memory_kind != MemoryKind::unified)
        gpu.vram_strangers = strangers_of(device, options_.is_ours);
  return gpus;
}

Result<Report> ProbedGpus::ask() {
  std::vector<std::string> command{options_.program, "probe",
                                   "--full",         "--wake-unknown",
                                   "--last",         options_.inventory_file.string(),
                                   "--timeout",      std::to_string(patience_.value / 1000)};
  // The helper asks several tools, each with that deadline; none after one that hung.
  ZED_TRY(net::ToolAnswer answer, net::run_tool(command, patience_ * 3 + seconds(10)));
  if (answer.status != 0)
    return fail(ErrorCode::io, "the GPU probe ended with status " + std::to_string(answer.status) +
                                   ": " + answer.err.substr(0, 200));
  ZED_TRY(Value value, parse_json(answer.out));
  return from_value<Report>(value);
}

Result<std::vector<Gpu>> ProbedGpus::probe() {
  auto asked = ask();
  if (!asked && asked.error().code != ErrorCode::timeout) return fail(std::move(asked).error());
  bool hung = !asked || std::any_of(asked->devices.begin(), asked->devices.end(),
                                    [](const Device& d) { return d.health == GpuHealth::stale; });
  patience_ = hung ? later_patience : first_patience;
  Report report;
  {
    std::scoped_lock lock(mutex_);
    report = asked ? std::move(*asked) : stale_report(last_, "the GPU probe does not answer");
    // What hangs keeps the facts of the last good answer.
    if (!hung) last_ = report;
  }
  if (!hung)
    if (auto written = write_inventory(report); !written) log_warning(written.error().describe());
  return gpus_of(report);
}

std::vector<Gpu> ProbedGpus::known() {
  std::scoped_lock lock(mutex_);
  return gpus_of(stale_report(last_, "not asked since the agent started"));
}

std::vector<GpuLoad> ProbedGpus::loads() {
  std::scoped_lock lock(mutex_);
  std::vector<GpuLoad> loads;
  WallTime now = wall_now();
  for (const Device& device : last_.devices) {
    if (device.only_logged || device.suspended) continue;
    GpuLoad load;
    load.uuid = identity_of(device);
    load.at = now;
    load.utilization = device.utilization.get();
    load.used = device.used.get();
    load.temperature = device.temperature.get();
    load.power = device.power.get();
    load.processes = std::ssize(device.processes);
    loads.push_back(std::move(load));
  }
  return loads;
}

std::string ProbedGpus::visible_name(const std::string& uuid) {
  std::scoped_lock lock(mutex_);
  for (const Device& device : last_.devices)
    if (identity_of(device) == uuid) return gpu::visible_name(device);
  return uuid;
}

Status ProbedGpus::write_inventory(const Report& report) const {
  const std::string text = to_json(to_value(report));
  std::filesystem::path fresh = options_.inventory_file;
  fresh += ".new";
  net::Fd file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file) return fail(net::system_error(errno, "write " + fresh.string()));
  ZED_CHECK(write_all(file.get(), text));
  std::error_code error;
  std::filesystem::rename(fresh, options_.inventory_file, error);
  if (error) return fail(ErrorCode::io, "replace the GPU inventory: " + error.message());
  return {};
}

}  // namespace zed::gpu
