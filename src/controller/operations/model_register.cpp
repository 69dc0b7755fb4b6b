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
  constexpr std::array<std::string_view, 13> own{
      "type",     "uuid",      "name",      "home",   "version", "aliases",    "requires",
      "geometry", "importing", "branch_of", "intent", "sha256",  "alias_times"};
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

/// A word comes or goes on every copy of a version that is there.
void change_alias(const Machine& m, const api::ModelRow& row, const std::string& word,
                  const AliasChange& change, std::vector<PlanStep>& steps) {
  const DatasetId uuid = uuid_of(m, row);
  for (const NodeName& node : m.fleet.ready_holders(uuid)) {
    const Dataset* copy = m.fleet.copy(node, uuid);
    PlanStep step;
    step.node = node;
    step.action = SetProperties{copy->name, uuid, with_alias(copy->properties, word, change)};
    step.expect = m.expect(uuid);
    step.why = change.stands ? "alias" : "alias moves on";
    steps.push_back(std::move(step));
  }
}

/// Later than every change of the word before, whatever clocks say.
AliasChange next_change(const Machine& m, const api::ModelsReply& all, const std::string& model,
                        const std::string& word, bool stands) {
  const auto last = last_change(m, all, model, word);
  return {WallTime{std::max(m.now.wall.ms, last ? last->at.ms + 1 : 0)}, stands};
}

/// The version that a word stands for; null if for none.
const api::ModelRow* version_of_alias(const api::ModelsReply& all, const std::string& model,
                                      const std::string& word) {
  for (const api::ModelRow& row : all.models) {
    const std::vector<std::string> aliases = aliases_of(row);
    if (row.name == model && std::find(aliases.begin(), aliases.end(), word) != aliases.end())
      return &row;
  }
  return nullptr;
}

/// What of a word would be removed. `typed`: the model as a person wrote it, perhaps of a version.
Result<api::ModelRow> row_to_remove_from(const api::ModelRow* now, const api::ModelRow& asked_for,
                                         const api::AliasModel& op) {
  if (now == nullptr)
    return fail(ErrorCode::not_found, op.alias + " stands for no version of " + asked_for.name,
                "zedctl model show " + asked_for.name);
  if (op.model.find('@') != std::string::npos && now->dataset != asked_for.dataset)
    return fail(ErrorCode::not_found,
                op.alias + " stands for " + versioned(*now) + ", not for " + versioned(asked_for),
                "zedctl model alias " + versioned(*now) + " " + op.alias + " --remove");
  return *now;
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
    const api::ModelsReply all = models_reply(m);
    if (const api::ModelRow* row = version_of_alias(all, op.name, op.alias))
      return asked.refuse(ErrorCode::exists,
                          op.alias + " stands for " + versioned(*row) + " already",
                          "register it, then zedctl model alias " + op.name + "@" + place->version +
                              " " + op.alias);
    for (auto& [key, value] :
         with_alias({}, op.alias, next_change(m, all, op.name, op.alias, true)))
      import.properties[key] = value.value_or("");
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
  const api::ModelsReply all = models_reply(m);
  const api::ModelRow* now = version_of_alias(all, row->name, op.alias);
  if (op.remove) row = row_to_remove_from(now, *row, op);
  if (!row) return asked.refuse(row.error());
  if (row->copies.empty())
    return asked.refuse(ErrorCode::not_found, versioned(*row) + " is on no node yet",
                        "zedctl model ls");
  // Of a word that stands for nothing any more, no version is said.
  const api::AliasReply reply{row->name, op.remove ? "" : row->version, op.alias,
                              now == nullptr ? "" : now->version};
  if (!op.remove && now != nullptr && now->dataset == row->dataset) return asked.reply(reply);
  const AliasChange change = next_change(m, all, row->name, op.alias, !op.remove);
  std::vector<PlanStep> steps;
  if (now != nullptr && now->dataset != row->dataset)
    change_alias(m, *now, op.alias, {change.at, false}, steps);
  const std::size_t others = steps.size();
  change_alias(m, *row, op.alias, change, steps);
  if (steps.size() == others)
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
