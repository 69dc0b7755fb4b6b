#include "bin/probe_command.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <CLI/CLI.hpp>

#include "base/json.hpp"
#include "bin/machine_facts.hpp"
#include "gpu/inventory.hpp"
#include "gpu/nvml.hpp"
#include "gpu/probe.hpp"
#include "net/system.hpp"
#include "sched/nominal.hpp"

namespace zed::bin {
namespace {

constexpr int no_library = 3;  // what gpu/probe.cpp takes for "there is no NVML here"

std::optional<std::int64_t> nominal(Bytes reported, std::string_view model) {
  return sched::nominal_size_gb(reported, model);
}

int print_nvml() {
  auto report = gpu::read_nvml();
  if (report) {
    std::fputs(to_json(to_value(*report)).c_str(), stdout);
    return 0;
  }
  std::fputs(report.error().message.c_str(), stderr);
  return report.error().code == ErrorCode::not_found ? no_library : 1;
}

std::optional<gpu::Report> read_last(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  auto value = parse_json(text);
  if (!value) return std::nullopt;
  auto report = from_value<gpu::Report>(*value);
  return report ? std::optional(std::move(*report)) : std::nullopt;
}

}  // namespace

void ProbeCommand::add_to(CLI::App& app) {
  app.add_flag("--json", json, "print a JSON document (docs/hardware.md)");
  app.add_option("--root", root, "read /sys, /proc and the device tree below this folder")
      ->check(CLI::ExistingDirectory);
  app.add_option("--last", last, "the last known inventory, for what cannot be asked now");
  app.add_option("--timeout", timeout_s, "seconds that each tool may take")
      ->check(CLI::Range(1, 300));
  app.add_flag("--wake", wake, "ask the driver though that powers on a GPU that sleeps");
  app.add_flag("--wake-unknown", wake_unknown, "the same for a GPU that --last does not know");
  app.add_flag("--full", full, "print everything, as JSON for --last");
  app.add_flag("--facts", facts, "print what else this machine is, as JSON");
  app.add_flag("--nvml", nvml, "print what NVML alone says (used by this command itself)");
}

int ProbeCommand::run() const {
  if (nvml) return print_nvml();
  if (facts) {
    std::fputs(to_json_pretty(to_value(machine_facts(root))).c_str(), stdout);
    return 0;
  }
  gpu::ProbeOptions options;
  options.root = root;
  options.tool_deadline = seconds(timeout_s);
  options.self = net::own_program().value_or(std::filesystem::path());
  options.wake = wake;
  options.wake_unknown = wake_unknown;
  if (!last.empty()) options.last = read_last(last);
  gpu::Report report = gpu::probe_machine(options);
  std::string text = full   ? to_json(to_value(report)) + "\n"
                     : json ? to_json_pretty(gpu::probe_document(report, nominal))
                            : gpu::probe_text(report, nominal);
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace zed::bin
