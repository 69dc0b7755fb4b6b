// A dataset that a person made with plain `zfs` becomes one of the fleet's. What that does is said
// first (dry_run), and nothing in its files changes.

#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "controller/names.hpp"
#include "controller/operations/daily.hpp"
#include "controller/operations/models.hpp"
#include "core/roots.hpp"

namespace zed::controller {
namespace {

constexpr Millis adopt_patience = minutes(10);
/// Of a job's dataset that was adopted and not dispatched yet; dispatch takes it over.
constexpr char adopted_property[] = "adopted";

std::string quoted(std::string_view text) {
  return "\"" + percent_encode(text.substr(0, 200)) + "\"";
}

/// The copy that was named: "tank/stuff/llama", or "stuff/llama" where one node has it.
struct Named {
  NodeName node;
  const Dataset* dataset = nullptr;
};

/// `typed` within that node's pool; none if it names another pool.
std::optional<std::string> within_pool(const Node& node, const std::string& typed) {
  if (!typed.starts_with(node.facts.pool + "/")) return std::nullopt;
  return typed.substr(node.facts.pool.size() + 1);
}

const Dataset* dataset_on(const Machine& m, const NodeName& node, const std::string& name) {
  auto held = m.fleet.view().datasets.find(node);
  if (held == m.fleet.view().datasets.end()) return nullptr;
  auto parsed = DatasetName::parse(name);
  auto found = parsed ? held->second.find(*parsed) : held->second.end();
  return found == held->second.end() ? nullptr : &found->second;
}

tl::unexpected<Error> not_there(const Machine& m, const api::Adopt& op) {
  std::vector<std::string> pools;
  for (const auto& entry : m.fleet.view().nodes)
    pools.push_back(entry.second.facts.pool + " (" + entry.first.str() + ")");
  return fail(
      ErrorCode::not_found,
      fmt::format("no node that is connected has a file system {} in its pool", quoted(op.dataset)),
      fmt::format("the pools are {}; rename what lies elsewhere into one of them (`zfs "
                  "rename`, or `zfs send | zfs receive` from another pool), and a name with "
                  "a space to one without",
                  pools.empty() ? "none" : join(pools, ", ")));
}

Result<Named> find_named(const Machine& m, const api::Adopt& op) {
  std::optional<NodeName> only;
  if (!op.node.empty()) {
    ZED_TRY(only, find_node(m.desired, m.fleet.view(), op.node));
  }
  std::vector<Named> found;
  for (const auto& [name, node] : m.fleet.view().nodes) {
    if ((only && *only != name) || !m.fleet.is_ready(name)) continue;
    auto inside = within_pool(node, op.dataset);
    const Dataset* dataset = inside ? dataset_on(m, name, *inside) : nullptr;
    if (dataset == nullptr) dataset = dataset_on(m, name, op.dataset);
    if (dataset != nullptr) found.push_back({name, dataset});
  }
  if (found.empty()) return not_there(m, op);
  if (found.size() == 1) return found.front();
  std::vector<std::string> names;
  for (const Named& one : found)
    names.push_back(one.node.str());
  return fail(
      ErrorCode::refused,
      fmt::format("{} is on {}: which of them is not said", quoted(op.dataset), join(names, ", ")),
      "--node NODE says it");
}

/// Whether two datasets have a snapshot in common: one history, however it came there.
bool shares_history(const Dataset& a, const Dataset& b) {
  return std::any_of(a.snapshots.begin(), a.snapshots.end(),
                     [&b](const Snapshot& snapshot) { return b.find(snapshot.id) != nullptr; });
}

/// The identity that a copy of the same history has on another node. A person sent it there.
struct Kin {
  NodeName node;
  const Dataset* dataset = nullptr;
};
std::optional<Kin> kin_of(const Machine& m, const Named& named) {
  for (const auto& [node, held] : m.fleet.view().datasets)
    for (const auto& [name, dataset] : held)
      if (node != named.node && !dataset.uuid.is_nil() &&
          dataset.property(property::branch_of).empty() && shares_history(*named.dataset, dataset))
        return Kin{node, &dataset};
  return std::nullopt;
}

struct Adoption {
  NodeName node;
  AdoptDataset action;
  std::string kind;
  bool needs_facts = false;  ///< a model whose headers are to be read first
  api::AdoptReply reply;

  const DatasetName& name() const { return action.to; }
  bool renames() const { return action.to != action.dataset; }
  void set(const std::string& key, const std::string& value) { action.properties[key] = value; }
};

Status check_kind(const Machine& m, const api::Adopt& op, const Dataset& dataset,
                  Adoption& adoption) {
  const std::string own = dataset.property(property::type);
  adoption.kind = !op.as.empty() ? op.as : own.empty() ? "data" : own;
  if (adoption.kind != "model" && adoption.kind != "job" && adoption.kind != "data")
    return fail(ErrorCode::invalid, quoted(adoption.kind) + " is nothing to adopt it as",
                "--as model, --as job or --as data");
  if (dataset.name.is_under("zed"))
    return fail(ErrorCode::refused, dataset.name.str() + " is Zed's own", "zedctl datasets --all");
  if (dataset.receiving)
    return fail(ErrorCode::busy, dataset.name.str() + " is being received",
                "wait for it, or end it: zfs receive -A");
  if (!dataset.uuid.is_nil() && m.desired.find(JobId{dataset.uuid.bytes}) != nullptr)
    return fail(ErrorCode::refused, dataset.name.str() + " is a job's already", "zedctl jobs");
  return {};
}

/// What a model's dataset says of itself.
Status describe_model(const Machine& m, const api::Adopt& op, const Dataset& dataset,
                      Adoption& adoption) {
  std::string name = op.name;
  if (name.empty()) name = dataset.property(property::name);
  if (name.empty()) name = adoption.name().leaf();
  if (!is_snapshot_word(name))
    return fail(ErrorCode::invalid, quoted(name) + " is no name of a model", "--as model NAME");
  std::string version = op.version;
  if (version.empty()) version = dataset.property("version");
  if (version.empty()) version = "1";
  for (const api::ModelRow& row : models_reply(m).models)
    if (row.name == name && row.version == version && row.dataset != dataset.name.str() &&
        !row.declared_only)
      return fail(
          ErrorCode::exists,
          fmt::format("there is a version {} of {} already: {}", version, name, row.dataset),
          "--version says which one this is");
  adoption.set(property::name, name);
  adoption.set("version", version);
  adoption.needs_facts = true;
  if (dataset.snapshots.empty()) adoption.action.snapshot_name = "v" + version;
  return {};
}

/// A job's dataset waits for `dispatch`, which goes on with it as it is.
Status describe_job(const Machine& m, const api::Adopt& op, const Dataset& dataset,
                    Adoption& adoption) {
  std::string name = op.name.empty() ? adoption.name().leaf() : op.name;
  auto declared = find_declared_job(m.desired, name);
  if (declared && (*declared)->dataset != adoption.name())
    return fail(ErrorCode::invalid,
                fmt::format("job {} is declared on {}, not on {}", (*declared)->name.str(),
                            (*declared)->dataset.str(), adoption.name().str()),
                "--to " + (*declared)->dataset.str() + " renames it");
  if (declared) name = (*declared)->name.str();
  if (!declared)
    adoption.reply.warnings.push_back(
        fmt::format("no job {} is declared: add `job :{} do dataset \"{}\" … end` to the cluster "
                    "file and apply it",
                    name, name, adoption.name().str()));
  // It ran before there was a controller: older than anything that one of them decides.
  const Timeline before{ControllerTerm{}, 1};
  adoption.set(property::name, name);
  adoption.set(property::home, adoption.node.str());
  adoption.set(property::timeline, before.str());
  adoption.set(property::generation, before.str());
  adoption.set(adopted_property, "by hand");
  if (dataset.snapshots.empty()) adoption.action.snapshot_name = "adopted";
  return {};
}

void say_where_copies_go(const Machine& m, Adoption& adoption) {
  const DatasetName& name = adoption.name();
  std::vector<DatasetName> declared;
  if (m.desired.applied) declared = declared_roots(m.desired.applied->cluster);
  if (may_be_made(name, declared)) return;
  adoption.reply.warnings.push_back(fmt::format(
      "no other node takes a copy of {} before a cluster file declares it{}", name.str(),
      adoption.kind == "model"
          ? "; or adopt it with --to models/" + adoption.action.properties["name"]
          : ""));
}

Result<Adoption> prepare(const Machine& m, const api::Adopt& op, DatasetId fresh) {
  ZED_TRY(Named named, find_named(m, op));
  const Dataset& dataset = *named.dataset;
  Adoption adoption;
  adoption.node = named.node;
  adoption.action.dataset = dataset.name;
  adoption.action.to = dataset.name;  // a message has no empty name: its own says that it stays
  ZED_CHECK(check_kind(m, op, dataset, adoption));
  if (!op.to.empty()) {
    const Node& node = *m.fleet.node(named.node);
    ZED_TRY(adoption.action.to, DatasetName::parse(within_pool(node, op.to).value_or(op.to)));
    if (adoption.renames() && dataset_on(m, named.node, adoption.action.to.str()) != nullptr)
      return fail(ErrorCode::exists, adoption.action.to.str() + " is there already",
                  "--to another name");
  }
  adoption.reply.node = named.node.str();
  adoption.reply.dataset = adoption.name().str();
  auto kin = dataset.uuid.is_nil() ? kin_of(m, named) : std::nullopt;
  if (kin && kin->dataset->name != adoption.name())
    return fail(ErrorCode::conflict,
                fmt::format("it has snapshots in common with {} on {}: a copy keeps the name of "
                            "what it is a copy of",
                            kin->dataset->name.str(), kin->node.str()),
                "--to " + kin->dataset->name.str());
  const DatasetId uuid = kin ? kin->dataset->uuid : dataset.uuid.is_nil() ? fresh : dataset.uuid;
  adoption.set(property::uuid, uuid.str());
  if (kin) {
    adoption.reply.uuid = uuid.str();
    adoption.reply.steps.push_back(
        fmt::format("it becomes a copy of {} on {}", kin->dataset->name.str(), kin->node.str()));
    return adoption;
  }
  adoption.set(property::type, adoption.kind);
  if (adoption.kind == "model") ZED_CHECK(describe_model(m, op, dataset, adoption));
  if (adoption.kind == "job") ZED_CHECK(describe_job(m, op, dataset, adoption));
  if (!dataset.uuid.is_nil() || !op.dry_run) adoption.reply.uuid = uuid.str();
  say_where_copies_go(m, adoption);
  return adoption;
}

/// What will be different afterwards, in words; what is so already is left out.
void say_steps(const Machine& m, Adoption& adoption, bool dry_run) {
  const Dataset* there = dataset_on(m, adoption.node, adoption.action.dataset.str());
  auto& steps = adoption.reply.steps;
  auto& properties = adoption.action.properties;
  if (there != nullptr)
    std::erase_if(properties, [there](const auto& item) {
      return item.first != property::uuid && there->property(item.first) == item.second;
    });
  const bool same_uuid = there != nullptr && there->uuid.str() == properties.at(property::uuid);
  for (const auto& [key, value] : properties)
    if (key != property::uuid || !same_uuid) {
      const bool is_new = key == property::uuid && dry_run && adoption.reply.uuid.empty();
      steps.push_back(fmt::format("set com.zed:{}={}", key, is_new ? "(a new one)" : value));
      if (!is_new) adoption.reply.properties[key] = value;
    }
  if (adoption.renames())
    steps.push_back(fmt::format("rename {} to {}, and with it where it is mounted, unless its "
                                "mountpoint was set by hand",
                                adoption.action.dataset.str(), adoption.action.to.str()));
  if (!adoption.action.snapshot_name.empty())
    steps.push_back("take a first snapshot, @" + adoption.action.snapshot_name);
}

void carry_out(const Asked& asked, Adoption adoption, bool dry_run) {
  Machine& m = asked.m;
  say_steps(m, adoption, dry_run);
  adoption.reply.dry_run = dry_run;
  if (dry_run || adoption.reply.steps.empty()) return asked.reply(adoption.reply);
  if (!adoption.action.snapshot_name.empty()) adoption.action.snapshot = m.fresh<CheckpointId>();
  PlanStep step;
  step.node = adoption.node;
  step.action = adoption.action;
  step.expect = m.expect();
  step.why = "adopted by " + asked.by();
  const std::string need = "adopt:" + adoption.node.str() + ":" + adoption.action.dataset.str();
  if (m.steps.is_live(need))
    return asked.refuse(ErrorCode::busy, adoption.action.dataset.str() + " is being adopted",
                        "zedctl datasets");
  m.steps.forgive(need);
  if (!m.steps.want(need, JobId{}, {step}, m.fleet, m.now.monotonic, m.ids, m.out))
    return asked.refuse(ErrorCode::unavailable, "node " + adoption.node.str() + " went away",
                        "try again");
  asked.audit(adoption.name().str(), "adopt on " + adoption.node.str() + " as " + adoption.kind);
  asked.reply_on_need(
      need, adoption.node, adopt_patience,
      "adopt " + adoption.action.dataset.str() + " on " + adoption.node.str(),
      [reply = adoption.reply](Machine&, const NeedOutcome&) { return api::encode_reply(reply); });
}

/// What a person set by hand stays; what the files tell comes below it.
void take_facts(const Machine& m, Adoption& adoption, const Result<NodeReply>& answer) {
  const auto* facts = answer ? std::get_if<ModelFacts>(&*answer) : nullptr;
  if (facts == nullptr || !facts->unread.empty()) {
    const std::string why = facts != nullptr ? facts->unread
                            : answer         ? "the node's answer is of another kind"
                                             : answer.error().describe();
    adoption.reply.warnings.push_back("its size and format are not known: " + why);
    return;
  }
  const Dataset* there = dataset_on(m, adoption.node, adoption.action.dataset.str());
  for (const auto& [key, value] : facts->properties)
    if (there == nullptr || there->property(key).empty())
      adoption.action.properties.emplace(key, value);
}

}  // namespace

std::optional<JobId> adopted_for(const Machine& m, const DatasetName& dataset) {
  auto uuid = m.fleet.uuid_of(dataset);
  if (!uuid || m.desired.find(JobId{uuid->bytes}) != nullptr) return std::nullopt;
  for (const NodeName& node : m.fleet.ready_holders(*uuid)) {
    const Dataset* copy = m.fleet.copy(node, *uuid);
    if (copy->property(property::type) == "job" && !copy->property(adopted_property).empty() &&
        copy->property(property::home) == node.str())
      return JobId{uuid->bytes};
  }
  return std::nullopt;
}

void handle(const Asked& asked, const api::Adopt& op) {
  auto adoption = prepare(asked.m, op, asked.m.fresh<DatasetId>());
  if (!adoption) return asked.refuse(adoption.error());
  if (!adoption->needs_facts) return carry_out(asked, std::move(*adoption), op.dry_run);
  ask_node(asked, adoption->node, ExamineModel{adoption->action.dataset},
           "look at " + adoption->action.dataset.str(),
           [op, adoption = *adoption](const Asked& again, const Result<NodeReply>& answer) {
             if (!op.dry_run && !again.may_change()) return;
             Adoption now = adoption;
             take_facts(again.m, now, answer);
             carry_out(again, std::move(now), op.dry_run);
           });
}

}  // namespace zed::controller
