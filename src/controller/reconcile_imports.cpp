// What the cluster file says should be imported.

#include "controller/imports.hpp"

namespace zed::controller {
namespace {

void want_import(Machine& m, const NodeName& node, const Import& import) {
  const std::string need = import_need(import.dataset);
  if (is_imported(m, import.dataset) || m.steps.is_live(need) || !m.fleet.is_ready(node)) return;
  auto step = step_of(m, node, import, "the cluster file declares it");
  if (step) m.steps.want(need, JobId{}, {*step}, m.fleet, m.now.monotonic, m.ids, m.out);
}

}  // namespace

bool is_anyone_awaited(const Machine& m) {
  for (const auto& [name, node] : m.fleet.view().nodes)
    if (!m.fleet.is_ready(name) && node.status != NodeStatus::lost) return true;
  return false;
}

std::string import_need(const DatasetName& dataset) {
  return "import:" + dataset.str();
}

bool is_imported(const Machine& m, const DatasetName& dataset) {
  auto uuid = m.fleet.uuid_of(dataset);
  if (!uuid) return false;
  for (const NodeName& holder : m.fleet.holders(*uuid))
    if (m.fleet.copy(holder, *uuid)->newest() != nullptr) return true;
  return false;
}

Result<PlanStep> step_of(Machine& m, const NodeName& node, const Import& import,
                         const std::string& why) {
  ImportFiles files;
  files.dataset = import.dataset;
  files.path = import.path;
  files.source = import.source;
  files.source_snapshot = import.source_snapshot;
  files.snapshot_name = "v" + (import.version.empty() ? "1" : import.version);
  if (!is_snapshot_word(files.snapshot_name))
    return fail(ErrorCode::invalid, "version \"" + import.version + "\" cannot name a snapshot",
                "letters, digits, '-', '_' and '.' can");
  files.snapshot = m.fresh<CheckpointId>();
  files.properties = import.properties;
  files.properties[property::type] = import.type;
  // What an import that was cut off left behind is begun anew by its agent, as the same dataset.
  auto cut_off = m.fleet.uuid_of(import.dataset);
  files.properties[property::uuid] = (cut_off ? *cut_off : m.fresh<DatasetId>()).str();
  files.properties[property::name] = import.name;
  files.properties[property::home] = node.str();
  files.properties["version"] = import.version.empty() ? "1" : import.version;
  if (!import.requirement.empty()) files.properties["requires"] = import.requirement.str();
  PlanStep step;
  step.node = node;
  step.action = std::move(files);
  step.expect = m.expect();
  step.why = why;
  return step;
}

void import_declared(Machine& m) {
  if (!m.desired.applied || !m.journal.is_durable(m.applied_seq) || is_anyone_awaited(m)) return;
  const AppliedFile& applied = *m.desired.applied;
  const NodeName node = m.files_node();
  for (const DeclaredModel& model : applied.cluster.models)
    if (model.file)
      want_import(m, node,
                  {model.dataset,
                   *model.file,
                   "model",
                   model.name.str(),
                   model.version,
                   model.requirement,
                   {}});
  for (const DeclaredData& data : applied.cluster.data)
    if (data.file)
      want_import(m, node,
                  {data.dataset, *data.file, "data", data.dataset.leaf(), data.version, {}, {}});
}

}  // namespace zed::controller
