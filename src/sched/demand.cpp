#include "sched/demand.hpp"

#include <algorithm>

#include "base/number.hpp"
#include "base/text.hpp"
#include "sched/match.hpp"
#include "sched/nominal.hpp"

namespace zed::sched {
namespace {

std::optional<std::vector<std::int64_t>> version_of(std::string_view text) {
  std::vector<std::int64_t> numbers;
  for (const std::string& part : split(text, '.')) {
    const auto number = parse_number<std::int64_t>(part);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  while (!numbers.empty() && numbers.back() == 0)
    numbers.pop_back();  // "12" and "12.0" are equal
  return numbers;
}

Family family_of(const Requirement& requirement, const Preference& wishes) {
  if (!wants_gpu(requirement, wishes)) return Family::none;
  return is_shared(requirement) ? Family::shared : Family::whole;
}

std::optional<std::int64_t> count_of(const Requirement& r, Family family) {
  if (family == Family::none) return 0;
  if (r.gpus) return r.gpus;
  if (!r.vram_total) return 1;
  if (family == Family::shared)
    return std::max<std::int64_t>(
        1,
        (bounded(*r.vram_total).value - 1) / std::max<std::int64_t>(1, bounded(*r.vram).value) + 1);
  return std::nullopt;
}

Bytes ram_floor(const std::optional<MemorySize>& wanted) {
  if (!wanted) return {};
  bool nominal = wanted->kind == MemorySize::Kind::nominal_gb;
  return nominal ? Bytes{bounded(*wanted).value / 10 * 9} : bounded(*wanted);
}

Bytes counted(MemorySize::Kind size_kind, const GpuKind& kind) {
  bool nominal = size_kind == MemorySize::Kind::nominal_gb && kind.nominal_gb;
  return nominal ? gibibytes(*kind.nominal_gb) : kind.reported;
}

/// The kind of size in which leftovers are measured: that of the clause that asks for VRAM.
MemorySize::Kind size_kind(const Requirement& r) {
  if (r.vram_total) return r.vram_total->kind;
  return r.vram ? r.vram->kind : MemorySize::Kind::nominal_gb;
}

bool has_vram(const Demand& demand, const GpuKind& kind) {
  const auto& wanted = demand.requirement.vram;
  if (!wanted) return true;
  // A shared job reserves bytes, so bytes must be there: nominal size is never compared with free.
  if (demand.family == Family::shared)
    return kind.reported - kind.driver_reserved >= bounded(*wanted);
  return counted(wanted->kind, kind) >= bounded(*wanted);
}

bool has_ram_beside(const Demand& demand, const GpuKind& kind, Bytes unified_memory) {
  if (kind.memory_kind != MemoryKind::unified || !demand.requirement.memory) return true;
  Bytes vram = demand.requirement.vram ? bounded(*demand.requirement.vram) : Bytes{};
  return unified_memory >= demand.ram + vram;
}

bool is_of_versions(const Requirement& r, const GpuKind& kind) {
  if (r.driver && !version_at_least(kind.driver, *r.driver)) return false;
  if (r.cuda && !version_at_least(kind.cuda, *r.cuda)) return false;
  return r.arch.empty() || std::any_of(r.arch.begin(), r.arch.end(), [&](const std::string& arch) {
           return arch_satisfies(arch, kind.arch);
         });
}

}  // namespace

Bytes bounded(const MemorySize& size) {
  constexpr std::int64_t most_gib = std::int64_t{1} << 30;
  if (size.kind == MemorySize::Kind::nominal_gb) return gibibytes(std::min(size.amount, most_gib));
  return std::min(Bytes{size.amount}, gibibytes(most_gib));
}

bool version_at_least(std::string_view have, std::string_view wanted) {
  auto a = version_of(have);
  auto b = version_of(wanted);
  return a && b && *a >= *b;
}

bool arch_satisfies(std::string_view wanted, std::string_view have) {
  if (version_of(wanted)) return version_at_least(have, wanted);
  return lower(wanted) == lower(have);
}

Demand::Demand(const PlaceRequest& of) : request(of), requirement(of.job.requirement) {
  wishes = of.job.prefer;
  wishes.insert(wishes.end(), of.job.fallback.begin(), of.job.fallback.end());
  for (const Wish& wish : wishes)
    wish_names.push_back(wish.kind == Wish::Kind::gpu ? GpuName::parse(wish.value) : GpuName{});
  for (const Wish& wish : wishes) {
    auto node = wish.kind == Wish::Kind::node ? NodeName::parse(wish.value) : NodeName();
    wish_nodes.push_back(node ? *node : NodeName());
  }
  for (const std::string& name : requirement.gpu)
    gpu_names.push_back(GpuName::parse(name));
  family = family_of(requirement, wishes);
  count = count_of(requirement, family);
  if (requirement.vram_total && family == Family::whole) total = bounded(*requirement.vram_total);
  if (requirement.vram) each = bounded(*requirement.vram);
  ram = ram_floor(requirement.memory);
  if (!of.job.dataset.empty()) datasets.push_back(of.job.dataset);
  for (const InputData& input : of.inputs) {
    // A job that goes on has its own dataset among its inputs.
    if (std::find(datasets.begin(), datasets.end(), input.dataset) == datasets.end())
      datasets.push_back(input.dataset);
    input_size += input.size;
  }
}

Bytes Demand::data_cost(const NodeName& node) const {
  Bytes cost;
  for (const InputData& input : request.inputs) {
    auto part = input.missing.find(node);
    cost += part == input.missing.end() ? input.size : part->second;
  }
  return cost;
}

Bytes Demand::disk(Bytes cost) const {
  return requirement.disk ? std::max(bounded(*requirement.disk), cost) : cost;
}

bool Demand::likes(std::size_t wish, const NodeName& node, const NodeClass& node_class) const {
  if (wish == wishes.size()) return true;
  switch (wishes[wish].kind) {
  case Wish::Kind::gpu: return true;  // decided by the set of GPUs
  case Wish::Kind::node: return wish_nodes[wish] == node;
  case Wish::Kind::label: return node_class.has_label(wishes[wish].value);
  }
  return false;
}

GroupFit fit_group(const Demand& demand, const NodeClass& node_class, std::size_t group) {
  const GpuKind& kind = node_class.key.groups[group].kind;
  const GpuName& name = node_class.names[group];
  const auto& names = demand.gpu_names;
  bool named = names.empty() || std::any_of(names.begin(), names.end(), [&](const GpuName& wanted) {
                 return matches(wanted, name, kind.nominal_gb);
               });
  return {named && has_vram(demand, kind) && is_of_versions(demand.requirement, kind) &&
              has_ram_beside(demand, kind, node_class.key.unified_memory),
          counted(size_kind(demand.requirement), kind)};
}

ClassFit fit_class(const Demand& demand, const NodeClass& node_class) {
  const Requirement& r = demand.requirement;
  const ClassKey& key = node_class.key;
  std::size_t groups = key.groups.size();
  ClassFit fit;
  fit.possible =
      (r.os.empty() || std::find(r.os.begin(), r.os.end(), key.os) != r.os.end()) &&
      std::all_of(r.labels.begin(), r.labels.end(),
                  [&](const std::string& label) { return node_class.has_label(label); }) &&
      std::all_of(demand.datasets.begin(), demand.datasets.end(),
                  [&](const DatasetName& dataset) { return node_class.may_hold(dataset); });
  if (!fit.possible) return fit;
  fit.groups.resize(groups);
  fit.wishes.resize(groups * demand.wishes.size(), 1);
  for (std::size_t g = 0; g < groups; ++g) {
    fit.groups[g] = fit_group(demand, node_class, g);
    for (std::size_t w = 0; w < demand.wishes.size(); ++w)
      if (demand.wishes[w].kind == Wish::Kind::gpu)
        fit.wishes[w * groups + g] =
            matches(demand.wish_names[w], node_class.names[g], key.groups[g].kind.nominal_gb);
  }
  return fit;
}

}  // namespace zed::sched
