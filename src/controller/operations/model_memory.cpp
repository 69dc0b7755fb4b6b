// The memory that a model takes, and where in the fleet there is so much.

#include <algorithm>

#include "api/model_memory.hpp"
#include "base/text.hpp"
#include "controller/operations/models.hpp"
#include "model/fit.hpp"
#include "model/properties.hpp"

namespace zed::controller {
namespace {

constexpr const char* no_geometry =
    "its files do not tell how much memory it takes: they are no GGUF and no safetensors, or were "
    "imported by an older version";

/// What a GPU has for a model when Zed's own jobs are gone.
Bytes usable(const Gpu& gpu) {
  return std::max(Bytes{}, gpu.vram_reported - gpu.vram_reserved - gpu.vram_strangers);
}

std::set<std::string> busy_gpus(const Machine& m, const NodeName& node) {
  std::set<std::string> busy;
  auto attempts = m.fleet.view().attempts.find(node);
  if (attempts == m.fleet.view().attempts.end()) return busy;
  for (const Attempt& attempt : attempts->second)
    if (is_live(attempt)) busy.insert(attempt.gpus.begin(), attempt.gpus.end());
  return busy;
}

/// What keeps a machine from it, or is to know besides: nothing of this changes the figures.
std::string remarks(const Machine& m, const Node& node, const std::vector<const Gpu*>& used) {
  std::vector<std::string> parts;
  if (node.status != NodeStatus::up) parts.emplace_back(to_string(node.status));
  if (!node.facts.may_run_jobs) parts.emplace_back("its agent may not run jobs");
  if (node.gpus.empty()) parts.emplace_back("no GPU");
  for (const Gpu& gpu : node.gpus)
    if (!is_schedulable(gpu.health))
      parts.push_back(gpu.model + " is " + std::string(to_string(gpu.health)));
  const std::set<std::string> busy = busy_gpus(m, node.name);
  const auto held = std::count_if(used.begin(), used.end(),
                                  [&](const Gpu* gpu) { return busy.contains(gpu->uuid); });
  if (held > 0) parts.push_back(plural(static_cast<std::size_t>(held), "GPU") + " busy at present");
  return join(parts, "; ");
}

/// GPUs that can share a model, most memory first.
std::map<GpuVendor, std::vector<const Gpu*>> by_vendor(const Node& node) {
  std::map<GpuVendor, std::vector<const Gpu*>> groups;
  for (const Gpu& gpu : node.gpus)
    if (is_schedulable(gpu.health)) groups[gpu.vendor].push_back(&gpu);
  for (auto& entry : groups)
    std::stable_sort(entry.second.begin(), entry.second.end(),
                     [](const Gpu* a, const Gpu* b) { return usable(*b) < usable(*a); });
  return groups;
}

api::FitRow row_for(const Machine& m, const Node& node, const model::Geometry& geometry,
                    const model::Workload& workload) {
  api::FitRow best;
  std::vector<const Gpu*> used;
  std::int64_t best_gpus = 0;
  bool first = true;
  for (const auto& entry : by_vendor(node)) {
    std::vector<Bytes> sizes;
    for (const Gpu* gpu : entry.second)
      sizes.push_back(usable(*gpu));
    const model::Fit fit = model::fit(geometry, workload, sizes);
    const bool better = fit.context > best.context ||
                        (fit.context == best.context && fit.gpus < best_gpus) ||
                        (fit.context == 0 && best.context == 0 && fit.have > best.have);
    if (!first && !better) continue;
    first = false;
    best_gpus = fit.gpus;
    best.context = fit.context;
    best.need = fit.need;
    best.have = fit.have;
    const std::size_t count =
        fit.gpus > 0 ? static_cast<std::size_t>(fit.gpus) : entry.second.size();
    used.assign(entry.second.begin(), entry.second.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                                 count, entry.second.size())));
  }
  best.node = node.name.str();
  best.whole = best.context > 0 && best.context == model::context_of(geometry, workload);
  for (const Gpu* gpu : used)
    best.gpus.push_back(gpu->model);
  best.why = remarks(m, node, used);
  return best;
}

}  // namespace

void handle(const Asked& asked, const api::ShowModel& op) {
  auto row = find_model(asked.m, op.model);
  if (!row) return asked.refuse(row.error());
  auto workload = api::workload_of(op.use, op.gpus);
  if (!workload) return asked.refuse(workload.error());
  api::ShowModelReply reply;
  reply.model = std::move(*row);
  reply.use = op.use;
  if (auto geometry = model::geometry_of(reply.model.properties))
    reply.memory = api::memory_of(*geometry, *workload);
  else if (reply.model.declared_only)
    reply.notes.emplace_back("it is declared and on no node yet");
  else
    reply.notes.emplace_back(no_geometry);
  asked.reply(reply);
}

void handle(const Asked& asked, const api::FitModel& op) {
  const Machine& m = asked.m;
  auto row = find_model(m, op.model);
  if (!row) return asked.refuse(row.error());
  auto workload = api::workload_of(op.use, 1);
  if (!workload) return asked.refuse(workload.error());
  const auto geometry = model::geometry_of(row->properties);
  if (!geometry)
    return asked.refuse(ErrorCode::unsupported,
                        "where " + row->name + " fits is not known: " + no_geometry,
                        "zedctl match --requires vram=… looks for a size");
  // Whole means with all the context that it was trained for.
  if (workload->context == 0 && geometry->context <= model::longest_context)
    workload->context = geometry->context;
  api::FitReply reply;
  reply.model = row->name;
  reply.memory = api::memory_of(*geometry, *workload);
  for (const auto& entry : m.fleet.view().nodes)
    reply.nodes.push_back(row_for(m, entry.second, *geometry, *workload));
  std::stable_sort(reply.nodes.begin(), reply.nodes.end(),
                   [](const api::FitRow& a, const api::FitRow& b) {
                     if (a.context != b.context) return a.context > b.context;
                     return a.context > 0 ? a.gpus.size() < b.gpus.size() : a.have > b.have;
                   });
  asked.reply(reply);
}

}  // namespace zed::controller
