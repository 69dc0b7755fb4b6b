// Importing a file or a folder as a model.

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/text.hpp"
#include "controller/copies.hpp"
#include "controller/imports.hpp"
#include "controller/names.hpp"
#include "controller/operations/models.hpp"

namespace zed::controller {
namespace {

constexpr Millis import_patience = minutes(120);

Result<DatasetName> dataset_for(const Machine& m, const std::string& name) {
  if (m.desired.applied)
    if (const DeclaredModel* declared =
            m.desired.applied->cluster.find_model(ModelName(std::string(name))))
      return declared->dataset;
  auto dataset = DatasetName::parse("models/" + name);
  if (dataset && name.find('/') == std::string::npos) return *dataset;
  return fail(ErrorCode::invalid,
              "\"" + percent_encode(name.substr(0, 80)) + "\" is no name of a model",
              "one word of letters, digits, '_', '-', '.' and ':', not beginning with '-' or '.'");
}

/// What a person says of the files, part of the name of a later version's dataset.
Status check_version(const std::string& version) {
  if (version.empty() ||
      (version.find('/') == std::string::npos && DatasetName::parse("models/m.v" + version)))
    return {};
  return fail(ErrorCode::invalid,
              "\"" + percent_encode(version.substr(0, 80)) + "\" is no version of a model",
              "one word of letters, digits, '_', '-', '.' and ':': --version 2, --version 1.0-rc1");
}

Result<NodeName> node_for(const Machine& m, const std::string& typed) {
  NodeName node = m.home_machine;
  if (!typed.empty()) {
    ZED_TRY(node, find_node(m.desired, m.fleet.view(), typed));
  }
  if (node.empty())
    return fail(ErrorCode::invalid, "the controller's machine runs no agent",
                "--node NODE says whose disk has the file");
  ZED_CHECK(check_ready(m, node));
  return node;
}

}  // namespace

Result<NewModel> new_model(const Machine& m, const std::string& name, const std::string& version,
                           bool may_be_next) {
  ZED_TRY(DatasetName dataset, dataset_for(m, name));
  ZED_CHECK(check_version(version));
  std::int64_t next = 1;
  bool is_new = true;
  for (const api::ModelRow& row : models_reply(m).models) {
    auto there = DatasetName::parse(row.dataset);
    // What an import that was cut off left behind is begun anew.
    if (row.name != name || !there || !is_imported(m, *there)) continue;
    is_new = false;
    if (!version.empty() && row.version == version)
      return fail(ErrorCode::exists, "there is a version " + version + " of " + name + " already",
                  "zedctl model ls");
    std::int64_t number = 0;
    auto [end, error] =
        std::from_chars(row.version.data(), row.version.data() + row.version.size(), number);
    if (error == std::errc{} && number < INT64_MAX) next = std::max(next, number + 1);
  }
  if (is_new && !is_imported(m, dataset))
    return NewModel{dataset, version.empty() ? std::to_string(next) : version};
  if (version.empty() && !may_be_next)
    return fail(ErrorCode::exists, "there is a " + dataset.str() + " already",
                "--version " + std::to_string(next) + " adds a version; or choose another name");
  const std::string given = version.empty() ? std::to_string(next) : version;
  ZED_TRY(auto versioned_dataset, DatasetName::parse("models/" + name + ".v" + given));
  if (is_imported(m, versioned_dataset))
    return fail(ErrorCode::exists, "there is a " + versioned_dataset.str() + " already",
                "choose another version");
  return NewModel{versioned_dataset, given};
}

void import_model(const Asked& asked, const NodeName& node, const Import& wanted,
                  const std::string& from) {
  Machine& m = asked.m;
  auto step = step_of(m, node, wanted, "model of " + asked.by());
  if (!step) return asked.refuse(step.error());
  const auto import = std::get<ImportFiles>(step->action);
  const std::string need = import_need(import.dataset);
  if (m.steps.is_live(need))
    return asked.refuse(ErrorCode::busy, import.dataset.str() + " is being imported already",
                        "zedctl events");
  m.steps.cancel(need, m.out);
  m.steps.forgive(need);
  if (!m.steps.want(need, JobId{}, {*step}, m.fleet, m.now.monotonic, m.ids, m.out))
    return asked.refuse(ErrorCode::unavailable, "node " + node.str() + " went away", "try again");
  asked.audit("model " + wanted.name, "import of " + from + " on " + node.str());
  asked.reply_on_need(
      need, node, import_patience,
      fmt::format("import {} as {} on {}", from, import.dataset.str(), node.str()),
      [import, node, name = wanted.name](Machine& machine, const NeedOutcome&) -> Result<Value> {
        api::AddModelReply reply;
        reply.name = name;
        reply.dataset = import.dataset.str();
        reply.node = node.str();
        reply.snapshot = "@" + import.snapshot_name;
        DatasetId uuid = DatasetId::parse(import.properties.at(property::uuid)).value();
        const Dataset* copy = machine.fleet.copy(node, uuid);
        if (copy == nullptr) return api::encode_reply(reply);
        reply.properties = copy->properties;
        if (copy->newest() != nullptr) reply.size = copy->newest()->referenced;
        for (const auto& [target, policy] : policy_targets(machine, node, *copy))
          reply.goes_to[target.str()] = policy;
        return api::encode_reply(reply);
      });
}

void handle(const Asked& asked, const api::AddModel& op) {
  Machine& m = asked.m;
  if (op.path.empty() || op.path.front() != '/' || op.path.find('\0') != std::string::npos)
    return asked.refuse(ErrorCode::invalid,
                        "the path " + percent_encode(op.path) + " is not absolute");
  auto node = node_for(m, op.node);
  if (!node) return asked.refuse(node.error());
  auto place = new_model(m, op.name, op.version, false);
  if (!place) return asked.refuse(place.error());
  Import import;
  import.dataset = place->dataset;
  import.path = op.path;
  import.type = "model";
  import.name = op.name;
  import.version = place->version;
  import.requirement = op.requirement;
  import.properties = op.properties;
  import_model(asked, *node, import, op.path);
}

}  // namespace zed::controller
