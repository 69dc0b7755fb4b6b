// Importing a file or a folder as a model.

#include <fmt/format.h>

#include "base/text.hpp"
#include "controller/imports.hpp"
#include "controller/names.hpp"
#include "controller/operations/handlers.hpp"

namespace zed::controller {
namespace {

constexpr Millis import_patience = minutes(120);

Result<DatasetName> dataset_for(const Machine& m, const std::string& name) {
  if (m.desired.applied)
    if (const DeclaredModel* declared =
            m.desired.applied->cluster.find_model(ModelName(std::string(name))))
      return declared->dataset;
  ZED_TRY(auto dataset, DatasetName::parse("models/" + name));
  if (name.find('/') != std::string::npos)
    return fail(ErrorCode::invalid, "the model name " + percent_encode(name) + " has a '/'",
                "a model's name is one word");
  return dataset;
}

Result<NodeName> node_for(const Machine& m, const std::string& typed) {
  NodeName node = m.home_machine;
  if (!typed.empty()) {
    ZED_TRY(node, find_node(m.desired, m.fleet.view(), typed));
  }
  if (node.empty())
    return fail(ErrorCode::invalid, "the controller's machine runs no agent",
                "--node NODE says whose disk has the file");
  if (!m.fleet.is_ready(node))
    return fail(ErrorCode::unavailable, "node " + node.str() + " is not connected", "zedctl nodes");
  return node;
}

Result<PlanStep> import_step(Machine& m, const api::AddModel& op) {
  if (op.path.empty() || op.path.front() != '/' || op.path.find('\0') != std::string::npos)
    return fail(ErrorCode::invalid, "the path " + percent_encode(op.path) + " is not absolute");
  ZED_TRY(auto node, node_for(m, op.node));
  ZED_TRY(auto dataset, dataset_for(m, op.name));
  if (m.fleet.uuid_of(dataset))
    return fail(ErrorCode::exists, "there is a " + dataset.str() + " already",
                "choose another name");
  Import import;
  import.dataset = dataset;
  import.path = op.path;
  import.type = "model";
  import.name = op.name;
  import.version = op.version;
  import.requirement = op.requirement;
  import.properties = op.properties;
  return step_of(m, node, import, "model add");
}

}  // namespace

void handle(const Asked& asked, const api::AddModel& op) {
  Machine& m = asked.m;
  auto step = import_step(m, op);
  if (!step) return asked.refuse(step.error());
  const auto import = std::get<ImportFiles>(step->action);
  const NodeName node = step->node;
  const std::string need = import_need(import.dataset);
  if (m.steps.is_live(need))
    return asked.refuse(ErrorCode::busy, import.dataset.str() + " is being imported already",
                        "zedctl events");
  m.steps.cancel(need, m.out);
  m.steps.forgive(need);
  if (!m.steps.want(need, JobId{}, {*step}, m.fleet, m.now.monotonic, m.ids, m.out))
    return asked.refuse(ErrorCode::unavailable, "node " + node.str() + " went away", "try again");
  asked.audit("model " + op.name, "import of " + op.path + " on " + node.str());
  asked.reply_on_need(
      need, node, import_patience,
      fmt::format("import {} as {} on {}", op.path, import.dataset.str(), node.str()),
      [import, node, name = op.name](Machine& machine, const NeedOutcome&) -> Result<Value> {
        api::AddModelReply reply{name, import.dataset.str(), node.str(), "@" + import.snapshot_name,
                                 Bytes{}};
        DatasetId uuid = DatasetId::parse(import.properties.at(property::uuid)).value();
        const Dataset* copy = machine.fleet.copy(node, uuid);
        if (copy != nullptr && copy->newest() != nullptr) reply.size = copy->newest()->referenced;
        return api::encode_reply(reply);
      });
}

}  // namespace zed::controller
