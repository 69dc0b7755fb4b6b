#include "sched/testing.hpp"

#include <cstdlib>
#include <functional>

#include "base/enum.hpp"
#include "base/text.hpp"
#include "sched/match.hpp"
#include "sched/nominal.hpp"

namespace zed::sched::testing {
namespace {

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (const std::string& word : split(text, ' '))
    if (!word.empty()) words.push_back(word);
  return words;
}

std::string spaced(std::string text) {
  for (char& c : text)
    if (c == '_') c = ' ';
  return text;
}

std::int64_t number_after(std::string_view text, char mark, std::int64_t fallback) {
  std::size_t at = text.find(mark);
  return at == std::string_view::npos ? fallback
                                      : std::atoll(std::string(text.substr(at + 1)).c_str());
}

DatasetName dataset_of(std::string_view name) {
  auto parsed = DatasetName::parse(name);
  ZED_ASSERT(parsed.has_value());
  return *parsed;
}

Gpu gpu_of(std::string_view model, std::string_view traits) {
  Gpu gpu;
  gpu.model = spaced(std::string(model));
  bool unified = traits.find('u') != std::string_view::npos;
  bool amd = model.starts_with("MI") || model.starts_with("RX");
  gpu.vendor = unified ? GpuVendor::apple : amd ? GpuVendor::amd : GpuVendor::nvidia;
  gpu.memory_kind = unified ? MemoryKind::unified : MemoryKind::dedicated;
  gpu.vram_reported = gibibytes(std::atoll(std::string(traits).c_str()));
  gpu.vram_nominal_gb = nominal_size_gb(gpu);
  gpu.numa_node = number_after(traits, '@', -1);
  if (auto island = number_after(traits, '%', -1); island >= 0)
    gpu.island = "nvlink-" + std::to_string(island);
  gpu.vram_strangers = gibibytes(number_after(traits, '+', 0));
  if (traits.find('~') != std::string_view::npos) gpu.health = GpuHealth::lost;
  return gpu;
}

void add_gpus(std::string word, Node& node, std::vector<Attempt>& attempts) {
  std::size_t slash = word.find('/');
  std::int64_t count = 1;
  std::size_t times = word.find('x');
  if (times != std::string::npos && times > 0 && word.find_first_not_of("0123456789") == times) {
    count = std::atoll(word.c_str());
    word.erase(0, times + 1);
    slash -= times + 1;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    Gpu gpu = gpu_of(word.substr(0, slash), word.substr(slash + 1));
    gpu.uuid = node.name.str() + "/gpu" + std::to_string(node.gpus.size());
    if (word.ends_with('!')) {
      Attempt attempt;
      attempt.job = job_id(1000000 + std::hash<std::string>{}(gpu.uuid) % 1000000);
      attempt.dataset = dataset_of("jobs/other");
      attempt.gpus = {gpu.uuid};
      attempt.phase = AttemptPhase::running;
      attempts.push_back(attempt);
    }
    node.gpus.push_back(std::move(gpu));
  }
}

void add_dataset(FleetView& fleet, const Node& node, const std::string& name) {
  Dataset dataset;
  dataset.name = dataset_of(name);
  dataset.used = gibibytes(100);
  fleet.datasets[node.name].emplace(dataset.name, dataset);
}

void add_word(FleetView& fleet, Node& node, const std::string& key, const std::string& value) {
  if (key == "has") return add_dataset(fleet, node, value);
  if (key == "label") return node.facts.labels.push_back(value);
  if (key == "os") return void(node.facts.os = value);
  if (key == "ram") return void(node.facts.memory = gibibytes(std::atoll(value.c_str())));
  if (key == "free") return void(node.pool_free = gibibytes(std::atoll(value.c_str())));
  ZED_ASSERT(key == "root");
  if (!node.declared) node.declared.emplace();
  node.declared->name = node.name;
  node.declared->dataset_roots.push_back(dataset_of(value));
}

void add_node(FleetView& fleet, std::string_view text) {
  std::size_t colon = text.find(':');
  Node node;
  node.name = testing::node(trim(text.substr(0, colon)));
  node.facts.os = "linux";
  node.facts.memory = gibibytes(256);
  node.pool_free = gibibytes(1000);
  std::vector<Attempt>& attempts = fleet.attempts[node.name];
  auto words = words_of(colon == std::string_view::npos ? "" : text.substr(colon + 1));
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].find('/') != std::string::npos)
      add_gpus(words[i], node, attempts);
    else if (auto status = enum_of<NodeStatus>(words[i]))
      node.status = *status;
    else if (words[i] == "norun")
      node.facts.may_run_jobs = false;
    else if (i + 1 < words.size())
      add_word(fleet, node, words[i], words[i + 1]), ++i;
    else
      ZED_ASSERT(!"a word without its value");
  }
  fleet.nodes.emplace(node.name, node);
}

Preference wishes_of(std::string_view text) {
  Preference wishes;
  for (const std::string& part : split(text, ',')) {
    std::size_t colon = part.find(':');
    auto kind = enum_of<Wish::Kind>(part.substr(0, colon));
    ZED_ASSERT(kind.has_value());
    wishes.push_back({*kind, spaced(part.substr(colon + 1))});
  }
  return wishes;
}

InputData input_of(const std::string& name, const FleetView& fleet) {
  InputData input{dataset_of(name), gibibytes(100), {}};
  for (const auto& [holder, datasets] : fleet.datasets)
    if (datasets.contains(input.dataset)) input.missing[holder] = Bytes{};
  return input;
}

}  // namespace

JobId job_id(std::uint64_t number) {
  JobId id;
  for (std::size_t i = 0; i < 8; ++i)
    id.bytes[15 - i] = static_cast<std::uint8_t>(number >> (8 * i));
  return id;
}

NodeName node(std::string_view name) {
  auto parsed = NodeName::parse(name);
  ZED_ASSERT(parsed.has_value());
  return *parsed;
}

FleetView fleet_of(std::string_view text) {
  FleetView fleet;
  for (const std::string& part : split(text, ';'))
    if (!trim(part).empty()) add_node(fleet, part);
  return fleet;
}

PlaceRequest job(std::string_view text, const FleetView& fleet) {
  PlaceRequest request;
  request.job.id = job_id(std::hash<std::string_view>{}(text));
  request.job.dataset = dataset_of("jobs/test");
  std::vector<std::string> clauses;
  for (const std::string& word : words_of(text)) {
    std::size_t equals = word.find('=');
    std::string key = word.substr(0, equals);
    std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (equals == std::string::npos)
      request.inputs.push_back(input_of(word, fleet));
    else if (key == "prefer")
      request.job.prefer = wishes_of(value);
    else if (key == "fallback")
      request.job.fallback = wishes_of(value);
    else if (key == "only")
      request.only = node(value);
    else if (key == "id")
      request.job.id = job_id(static_cast<std::uint64_t>(std::atoll(value.c_str())));
    else
      clauses.push_back(key + ":" + spaced(value));
  }
  auto requirement = Requirement::parse(join(clauses, ","));
  ZED_ASSERT(requirement.has_value());
  request.job.requirement = *requirement;
  return request;
}

Attempt attempt_of(const PlaceRequest& request, const Placement& placement) {
  Attempt attempt;
  attempt.job = request.job.id;
  attempt.dataset = request.job.dataset;
  attempt.gpus = placement.gpus;
  attempt.share = is_shared(request.job.requirement);
  if (attempt.share) attempt.vram = request.job.requirement.vram->bytes();
  attempt.phase = AttemptPhase::running;
  return attempt;
}

Placement run(FleetView& fleet, const PlaceRequest& request) {
  PlacementResult result = place(fleet, request);
  auto* placement = std::get_if<Placement>(&result);
  ZED_ASSERT(placement != nullptr);
  fleet.attempts[placement->node].push_back(attempt_of(request, *placement));
  return *placement;
}

std::string show(const std::optional<Placement>& placement) {
  if (!placement) return "nowhere";
  std::string text = placement->node.str();
  char separator = '/';
  for (const std::string& uuid : placement->gpus) {
    text += separator + uuid.substr(uuid.find('/') + 1);
    separator = '+';
  }
  return text;
}

std::string show(const PlacementResult& result) {
  if (auto* placement = std::get_if<Placement>(&result)) return show(std::optional(*placement));
  return show(std::optional<Placement>());
}

}  // namespace zed::sched::testing
