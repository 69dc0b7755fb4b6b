// A checkpoint becomes a model; words stand for versions.

#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "controller/operations/checkpoint_name.hpp"
#include "controller/operations/models.hpp"
#include "controller/operations/rows.hpp"

namespace zed::controller {
namespace {

constexpr Millis alias_patience = minutes(1);
constexpr std::size_t longest_alias = 64;

Status check_alias(const std::string& alias) {
  const bool fits =
      !alias.empty() && alias.size() <= longest_alias && is_snapshot_word(alias) &&
      alias.find_first_not_of("0123456789") != std::string::npos &&
      !(alias.front() == 'v' && alias.find_first_not_of("0123456789", 1) == std::string::npos);
  if (fits) return {};
  return fail(ErrorCode::invalid, "\"" + percent_encode(alias.substr(0, 80)) + "\" is no alias",
              "a word of letters, digits, '-', '_' and '.', that is no version");
}

/// What a person would want to know later: where it is from, what it learnt from, how far it got.
std::map<std::string, std::string> origin_of(const Machine& m, const DesiredJob& job,
                                             const Snapshot& checkpoint) {
  std::map<std::string, std::string> origin;
  const auto put = [&origin](const char* key, std::string value) {
    if (!value.empty()) origin[key] = std::move(value);
  };
  std::vector<std::string> data;
  for (const DatasetName& dataset : job.job.data)
    data.push_back(dataset.str());
  put("source", job.job.dataset.str() + "@" + checkpoint.name);
  put("lineage", checkpoint.id.str());
  put("job", job.job.name.str());
  put("trained_on", join(data, ","));
  if (job.job.model) {
    auto dataset = dataset_of_model(m, *job.job.model);
    auto base = dataset ? find_model(m, dataset->str()) : find_model(m, job.job.model->str());
    put("base_model", base ? versioned(*base) : job.job.model->str());
  }
  for (const auto& [key, value] : metrics_of(checkpoint))
    put(key == "epoch" ? "epochs" : key == "step" ? "steps" : key.c_str(), value);
  return origin;
}

/// A metric must not take the place of what Zed itself keeps there.
bool is_reserved(const std::string& name) {
  constexpr std::array<std::string_view, 12> own{"type",      "uuid",      "name",     "home",
                                                 "version",   "aliases",   "requires", "geometry",
                                                 "importing", "branch_of", "intent",   "sha256"};
  return std::find(own.begin(), own.end(), name) != own.end();
}

Result<FoundCheckpoint> checkpoint_of(const Machine& m, const DesiredJob& job,
                                      const std::string& typed) {
  if (!typed.empty()) return find_checkpoint(m, job, typed);
  if (auto newest = newest_reachable(m, job)) return *newest;
  return fail(ErrorCode::not_found,
              "job " + job.job.name.str() + " has no checkpoint that can be reached",
              "zedctl checkpoints " + job.job.name.str());
}

/// The same properties on every machine that has the model and is there.
std::vector<PlanStep> set_everywhere(const Machine& m, const DatasetId& uuid,
                                     const PropertyChanges& changes, const std::string& why) {
  std::vector<PlanStep> steps;
  for (const NodeName& node : m.fleet.ready_holders(uuid)) {
    PlanStep step;
    step.node = node;
    step.action = SetProperties{m.fleet.copy(node, uuid)->name, uuid, changes};
    step.expect = m.expect(uuid);
    step.why = why;
    steps.push_back(std::move(step));
  }
  return steps;
}

PropertyChanges without(const api::ModelRow& row, const std::string& alias) {
  std::vector<std::string> left = aliases_of(row);
  left.erase(std::remove(left.begin(), left.end(), alias), left.end());
  return {{"aliases", left.empty() ? std::optional<std::string>() : join(left, ",")}};
}

}  // namespace

void handle(const Asked& asked, const api::RegisterModel& op) {
  Machine& m = asked.m;
  DesiredJob* job = job_or_refuse(asked, op.job);
  if (job == nullptr) return;
  if (!op.alias.empty())
    if (auto fits = check_alias(op.alias); !fits) return asked.refuse(fits.error());
  auto found = checkpoint_of(m, *job, op.checkpoint);
  if (!found) return asked.refuse(found.error());
  auto place = new_model(m, op.name, op.version, true);
  if (!place) return asked.refuse(place.error());
  Import import;
  import.dataset = place->dataset;
  import.path = op.path;
  import.type = "model";
  import.name = op.name;
  import.version = place->version;
  import.requirement = op.requirement;
  for (const auto& [key, value] : origin_of(m, *job, *found->snapshot))
    if (!is_reserved(key)) import.properties[key] = value;
  for (const auto& [key, value] : op.properties)
    import.properties[key] = value;
  if (!op.alias.empty()) {
    for (const api::ModelRow& row : models_reply(m).models) {
      const std::vector<std::string> aliases = aliases_of(row);
      if (row.name == op.name &&
          std::find(aliases.begin(), aliases.end(), op.alias) != aliases.end())
        return asked.refuse(ErrorCode::exists,
                            op.alias + " stands for " + versioned(row) + " already",
                            "register it, then zedctl model alias " + op.name + "@" +
                                place->version + " " + op.alias);
    }
    import.properties["aliases"] = op.alias;
  }
  import.source = m.fleet.copy(found->node, job->dataset_uuid())->name;
  import.source_snapshot = found->snapshot->id;
  import_model(asked, found->node, import, job->job.name.str() + "@" + found->snapshot->name);
}

void handle(const Asked& asked, const api::AliasModel& op) {
  Machine& m = asked.m;
  if (auto fits = check_alias(op.alias); !fits) return asked.refuse(fits.error());
  auto row = find_model(m, op.model);
  if (!row) return asked.refuse(row.error());
  if (row->copies.empty())
    return asked.refuse(ErrorCode::not_found, versioned(*row) + " is on no node yet",
                        "zedctl model ls");
  api::AliasReply reply{row->name, row->version, op.alias, ""};
  std::vector<PlanStep> steps;
  for (const api::ModelRow& other : models_reply(m).models) {
    const std::vector<std::string> aliases = aliases_of(other);
    if (other.name != row->name ||
        std::find(aliases.begin(), aliases.end(), op.alias) == aliases.end())
      continue;
    reply.was = other.version;
    if (!op.remove && other.dataset == row->dataset) return asked.reply(reply);
    for (PlanStep& step :
         set_everywhere(m, uuid_of(m, other), without(other, op.alias), "alias moves on"))
      steps.push_back(std::move(step));
  }
  if (op.remove && reply.was.empty())
    return asked.refuse(ErrorCode::not_found, op.alias + " stands for no version of " + row->name,
                        "zedctl model show " + row->name);
  if (!op.remove) {
    std::vector<std::string> aliases = aliases_of(*row);
    aliases.push_back(op.alias);
    for (PlanStep& step :
         set_everywhere(m, uuid_of(m, *row), {{"aliases", join(aliases, ",")}}, "alias"))
      steps.push_back(std::move(step));
  }
  if (steps.empty())
    return asked.refuse(ErrorCode::unavailable,
                        "no node that has " + versioned(*row) + " is connected", "zedctl nodes");
  const NodeName node = steps.back().node;
  const std::string need = fmt::format("alias:{}:{}", row->name, asked.request);
  if (!m.steps.want(need, JobId{}, steps, m.fleet, m.now.monotonic, m.ids, m.out))
    return asked.refuse(ErrorCode::unavailable, "a node went away", "try again");
  asked.audit("model " + row->name,
              (op.remove ? "no alias " : "alias ") + op.alias + " of version " + row->version);
  asked.reply_on_need(
      need, node, alias_patience, "set the alias " + op.alias,
      [reply](Machine&, const NeedOutcome&) -> Result<Value> { return api::encode_reply(reply); });
}

}  // namespace zed::controller
