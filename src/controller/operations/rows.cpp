#include "controller/operations/rows.hpp"

#include <set>

#include <fmt/format.h>

#include "base/json.hpp"
#include "base/text.hpp"
#include "controller/imports.hpp"
#include "controller/operations/reasons.hpp"
#include "controller/timelines.hpp"

namespace zed::controller {
namespace {

std::string text_of(const Value& value) {
  if (auto* text = value.as_text()) return *text;
  if (auto* number = value.as_double()) return fmt::format("{}", *number);
  return to_json(value);
}

std::vector<std::string> gpu_models(const Machine& m, const DesiredJob& job) {
  std::vector<std::string> models;
  const Node* node = job.placed ? m.fleet.node(job.placed->node) : nullptr;
  if (node == nullptr) return models;
  for (const std::string& uuid : job.placed->gpus)
    for (const Gpu& gpu : node->gpus)
      if (gpu.uuid == uuid) models.push_back(gpu.model);
  return models;
}

/// The newest checkpoint of the current timeline anywhere, lost nodes included.
const Snapshot* newest_known(const Machine& m, const DesiredJob& job) {
  const Snapshot* newest = nullptr;
  for (const NodeName& node : m.fleet.holders(job.dataset_uuid())) {
    const Dataset* copy = m.fleet.copy(node, job.dataset_uuid());
    const Snapshot* found = newest_current_checkpoint(job, *copy);
    if (found != nullptr && (newest == nullptr || *newest->seq() < *found->seq())) newest = found;
  }
  return newest;
}

}  // namespace

bool is_safe(const Machine& m, const DesiredJob& job) {
  return m.journal.is_stored(job.changed_seq) && is_code_safe(m, job);
}

std::map<std::string, std::string> metrics_of(const Snapshot& snapshot) {
  std::map<std::string, std::string> metrics;
  auto all = snapshot.properties.find(property::metrics);
  if (all != snapshot.properties.end())
    if (auto parsed = parse_json(all->second); parsed && parsed->as_map() != nullptr)
      for (const auto& member : *parsed->as_map())
        metrics[member.key] = text_of(member.value);
  // `request` is the job's number of its request (docs/agent.md).
  static const std::set<std::string> own = {
      property::type,    property::uuid,       property::name,     property::home,
      property::status,  property::generation, property::timeline, property::lineage,
      property::parent,  property::id,         property::job,      property::seq,
      property::metrics, property::closing,    property::intent,   property::branch_of,
      property::code,    property::data,       "request"};
  for (const auto& [key, value] : snapshot.properties)
    if (!own.contains(key)) metrics.emplace(key, value);
  return metrics;
}

std::vector<std::string> nodes_with(const Machine& m, const DatasetId& uuid,
                                    const CheckpointId& snapshot) {
  std::vector<std::string> nodes;
  for (const NodeName& node : m.fleet.holders(uuid))
    if (m.fleet.copy(node, uuid)->find(snapshot) != nullptr) nodes.push_back(node.str());
  return nodes;
}

api::JobRow row_of(const Machine& m, const DesiredJob& job) {
  api::JobRow row;
  row.id = job.job.id;
  row.name = job.job.name.str();
  row.state = state_of(m, job);
  row.reason = reason_of(m, job);
  row.node = job.placed ? job.placed->node.str() : job.home.str();
  row.gpus = gpu_models(m, job);
  row.attempt = job.attempts;
  row.generation = job.last_generation.is_none() ? "" : job.last_generation.brief();
  row.timeline = job.timeline.is_none() ? "" : job.timeline.brief();
  row.submitted = job.submitted;
  if (job.placed || job.outcome) row.started = job.placed ? job.placed->at : job.placed_at;
  if (job.outcome) row.ended = job.outcome->at;
  row.safe = is_safe(m, job);
  row.priority = job.job.priority;
  row.by = job.by;
  if (const Snapshot* newest = newest_known(m, job)) {
    row.checkpoint = "@" + newest->name;
    row.metrics = metrics_of(*newest);
    auto nodes = nodes_with(m, job.dataset_uuid(), newest->id);
    row.checkpoint_copies = nodes.size() == 1 ? "only on " + nodes.front() : join(nodes, ", ");
  }
  return row;
}

api::JobRow row_of_declared(const Job& job) {
  api::JobRow row;
  row.name = job.name.str();
  row.declared_only = true;
  row.priority = job.priority;
  row.reason = "declared, never dispatched";
  return row;
}

/// Time left by the present rate.
void estimate_time_left(api::TransferRow& row) {
  if (row.rate.value > 0 && row.total >= row.done)
    row.time_left = Millis{(row.total - row.done).value * 1000 / row.rate.value};
}

/// Why something travels and how far it is.
api::TransferRow row_of(const LiveStep& live) {
  api::TransferRow row;
  row.why = live.step.why;
  row.done = live.progress.done;
  row.total = live.progress.total;
  row.rate = live.progress.rate;
  return row;
}

/// Files of a node's own disk that become a dataset.
api::TransferRow row_of(const LiveStep& live, const ImportFiles& import) {
  api::TransferRow row = row_of(live);
  row.dataset = import.dataset.str();
  row.snapshot = import.snapshot_name;
  row.source = import.path;
  row.target = live.step.node.str();
  estimate_time_left(row);
  return row;
}

/// A snapshot on its way by ssh to a machine without an agent.
api::TransferRow row_of(const LiveStep& live, const SendToHost& send) {
  api::TransferRow row = row_of(live);
  row.dataset = send.dataset.str();
  row.snapshot = send.snapshot_name;
  row.source = live.step.node.str();
  row.target = send.destination;
  estimate_time_left(row);
  return row;
}

api::TransferRow row_of(const Machine& m, const LiveStep& live) {
  const auto& receive = std::get<ReceiveSnapshot>(live.step.action);
  api::TransferRow row = row_of(live);
  row.dataset = receive.ticket.target_dataset.str();
  row.snapshot = receive.ticket.snapshot_name;
  row.source = receive.ticket.source.str();
  row.target = receive.ticket.target.str();
  // A node that passes it on does not have it yet.
  for (const NodeName& holder : m.fleet.holders(receive.ticket.uuid)) {
    const Snapshot* snapshot =
        m.fleet.copy(holder, receive.ticket.uuid)->find(receive.ticket.snapshot);
    if (row.total == Bytes{} && snapshot != nullptr) row.total = snapshot->referenced;
  }
  estimate_time_left(row);
  return row;
}

std::vector<api::TransferRow> transfer_rows(const Machine& m) {
  std::vector<api::TransferRow> rows;
  for (const auto& entry : m.steps.all())
    if (std::holds_alternative<ReceiveSnapshot>(entry.second.step.action))
      rows.push_back(row_of(m, entry.second));
    else if (const auto* import = std::get_if<ImportFiles>(&entry.second.step.action))
      rows.push_back(row_of(entry.second, *import));
    else if (const auto* send = std::get_if<SendToHost>(&entry.second.step.action))
      rows.push_back(row_of(entry.second, *send));
  return rows;
}

}  // namespace zed::controller
