// Output of GPU tools: every parser takes every text, and what they found becomes one document.
#include <cstdlib>

#include "base/json.hpp"
#include "gpu/amd_tools.hpp"
#include "gpu/inventory.hpp"
#include "gpu/merge.hpp"
#include "gpu/nvidia_csv.hpp"
#include "gpu/nvidia_list.hpp"
#include "gpu/nvidia_names.hpp"
#include "gpu/nvidia_xml.hpp"
#include "gpu/other_tools.hpp"
#include "gpu/sysfs.hpp"

namespace {

using namespace zed;
using namespace zed::gpu;

void require(bool condition) {
  if (!condition) std::abort();
}

void take(Report& report, Result<Report> found) {
  if (found) merge(report, std::move(found->devices));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  Report report;
  explain_nvidia_failure(text, 15, report);
  merge(report, read_gpu_csv(text, gpu_columns()).devices);
  take(report, read_nvidia_xml(text));
  merge(report, read_nvidia_list(text));
  take(report, read_amd_smi(text));
  take(report, read_rocm_smi(text));
  take(report, read_xpu_smi(text));
  take(report, read_system_profiler(text));
  settle_apple_memory(report, read_apple_sysctl(text));
  merge(report, read_lspci(text));
  merge(report, read_kernel_log(text));
  (void)read_apps_csv(text);
  (void)read_topology(text);
  settle(report, HostMemory{gibibytes(64).value, std::nullopt});
  for (const Device& device : report.devices) {
    require(!identity_of(device).empty() && !device.model.value.empty());
    auto memory = reported_memory(device);
    require(!memory || *memory >= Bytes{});
  }
  // What one process writes, the other reads.
  auto back = parse_json(to_json(to_value(report)));
  require(back.has_value());
  auto read = from_value<Report>(*back);
  require(read && read->devices.size() == report.devices.size());
  require(core_gpus(report, {}).size() <= report.devices.size());
  return 0;
}
