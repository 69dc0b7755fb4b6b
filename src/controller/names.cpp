#include "controller/names.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "base/text.hpp"
#include "sched/gpu_name.hpp"

namespace zed::controller {
namespace {

constexpr std::size_t longest_shown = 80;

std::string_view bare(std::string_view typed) {
  if (typed.starts_with(':') || typed.starts_with('@')) typed.remove_prefix(1);
  return typed;
}

/// "finetune" of "finetune_job": what a shell's variable names add.
std::optional<std::string_view> without_job(std::string_view typed) {
  std::string_view name = bare(typed);
  constexpr std::string_view endings[] = {"_job", "-job"};
  for (std::string_view ending : endings)
    if (name.ends_with(ending) && name.size() > ending.size())
      return name.substr(0, name.size() - ending.size());
  return std::nullopt;
}

std::string shown(std::string_view typed) {
  return percent_encode(typed.substr(0, longest_shown));
}

/// What the job's name means, for one way of reading what was typed.
std::optional<JobId> job_called(const DesiredState& state, std::string_view typed) {
  if (auto exact = state.by_name.find(JobName(std::string(bare(typed))));
      exact != state.by_name.end())
    return exact->second;
  for (const auto& [name, id] : state.by_name)
    if (same_typed_name(name.str(), typed)) return id;
  return std::nullopt;
}

/// The last submitted job whose dataset ends in that word.
std::optional<JobId> job_of_dataset(const DesiredState& state, std::string_view typed) {
  const DesiredJob* newest = nullptr;
  for (const auto& entry : state.jobs) {
    const DesiredJob& job = entry.second;
    bool named = same_typed_name(job.job.dataset.leaf(), typed) || job.job.dataset.str() == typed;
    if (named && (newest == nullptr || newest->submitted_seq < job.submitted_seq)) newest = &job;
  }
  return newest != nullptr ? std::optional(newest->job.id) : std::nullopt;
}

const Job* declared_called(const Cluster& cluster, std::string_view typed) {
  for (const Job& job : cluster.jobs)
    if (job.name.str() == bare(typed)) return &job;
  for (const Job& job : cluster.jobs)
    if (same_typed_name(job.name.str(), typed)) return &job;
  for (const Job& job : cluster.jobs)
    if (same_typed_name(job.dataset.leaf(), typed)) return &job;
  return nullptr;
}

}  // namespace

bool same_gpu(std::string_view declared, const Gpu& detected) {
  return sched::name_matches(declared, detected);
}

std::string hint_for(std::string_view typed, const std::vector<std::string>& names,
                     std::string_view noun) {
  if (auto nearest = nearest_word(bare(typed), names)) return "did you mean `" + *nearest + "`?";
  const std::string nouns = std::string(noun) + (noun.ends_with("ch") ? "es" : "s");
  if (names.empty()) return "there are no " + nouns + " yet";
  constexpr std::size_t most = 10;
  std::vector<std::string> some;  // each once: several nodes may have told of it
  std::set<std::string_view> told;
  for (const std::string& name : names)
    if (told.insert(name).second && told.size() <= most) some.push_back(name);
  return "known " + nouns + ": " + join(some, ", ") + (told.size() > most ? ", …" : "");
}

Result<JobId> find_job(const DesiredState& state, std::string_view typed) {
  if (auto id = job_called(state, typed)) return *id;
  if (auto id = job_of_dataset(state, typed)) return *id;
  if (auto id = JobId::parse(typed); id && state.find(*id) != nullptr) return *id;
  if (auto shorter = without_job(typed))
    if (auto id = job_called(state, *shorter)) return *id;
  std::vector<std::string> names;
  for (const auto& entry : state.by_name)
    names.push_back(entry.first.str());
  if (state.applied && declared_called(state.applied->cluster, typed) != nullptr)
    return fail(ErrorCode::not_found, "job " + shown(typed) + " was never dispatched",
                "zedctl dispatch " + shown(typed));
  return fail(ErrorCode::not_found, "there is no job " + shown(typed),
              hint_for(typed, names, "job"));
}

Result<const Job*> find_declared_job(const DesiredState& state, std::string_view typed) {
  if (!state.applied)
    return fail(ErrorCode::not_found,
                "there is no job " + shown(typed) + ": no cluster file was applied",
                "zedctl apply CLUSTER.exs");
  const Cluster& cluster = state.applied->cluster;
  if (const Job* job = declared_called(cluster, typed)) return job;
  if (auto shorter = without_job(typed))
    if (const Job* job = declared_called(cluster, *shorter)) return job;
  std::vector<std::string> names;
  for (const Job& job : cluster.jobs)
    names.push_back(job.name.str());
  return fail(ErrorCode::not_found, "the cluster file declares no job " + shown(typed),
              hint_for(typed, names, "job"));
}

Result<NodeName> find_node(const DesiredState& state, const FleetView& view,
                           std::string_view typed) {
  std::set<NodeName> known;
  for (const auto& entry : view.nodes)
    known.insert(entry.first);
  if (state.applied)
    for (const DeclaredNode& node : state.applied->cluster.nodes)
      known.insert(node.name);
  auto parsed = NodeName::parse(bare(typed));
  if (parsed && known.contains(*parsed)) return *parsed;
  std::vector<std::string> names;
  for (const NodeName& name : known) {
    if (parsed && same_typed_name(name.str(), parsed->str())) return name;
    names.push_back(name.str());
  }
  return fail(ErrorCode::not_found, "there is no node " + shown(typed),
              hint_for(typed, names, "node"));
}

Result<Preference> with_known_nodes(const DesiredState& state, const FleetView& view,
                                    Preference wishes) {
  for (Wish& wish : wishes) {
    if (wish.kind != Wish::Kind::node) continue;
    ZED_TRY(const NodeName node, find_node(state, view, wish.value));
    wish.value = node.str();
  }
  return wishes;
}

}  // namespace zed::controller
