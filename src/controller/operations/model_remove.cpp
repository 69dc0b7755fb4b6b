// A version of a model is destroyed on every machine, unless something depends on it.

#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "controller/operations/models.hpp"

namespace zed::controller {
namespace {

constexpr Millis remove_patience = minutes(10);

/// Why somebody would miss it. What it was made into stands by itself: only told, in `lineage`.
std::vector<std::string> dependents_of(const Machine& m, const api::ModelRow& row) {
  std::vector<std::string> dependents;
  for (const std::string& alias : aliases_of(row))
    dependents.push_back("alias " + alias + " stands for it");
  for (const auto& [id, job] : m.desired.jobs) {
    if (job.is_over() || !job.job.model) continue;
    auto dataset = dataset_of_model(m, *job.job.model);
    if (dataset && dataset->str() == row.dataset)
      dependents.push_back("job " + job.job.name.str() + " runs with it");
  }
  if (!m.desired.applied) return dependents;
  const Cluster& cluster = m.desired.applied->cluster;
  for (const DeclaredModel& declared : cluster.models)
    if (declared.dataset.str() == row.dataset)
      dependents.push_back("the cluster file declares it" +
                           std::string(declared.file ? " and would import it again" : ""));
  for (const Job& job : cluster.jobs) {
    if (!job.model) continue;
    auto dataset = dataset_of_model(m, *job.model);
    if (dataset && dataset->str() == row.dataset)
      dependents.push_back("the cluster file's job " + job.name.str() + " uses it");
  }
  return dependents;
}

void destroy_on_next(const Asked& asked, api::RemoveModelReply reply, const DatasetId& uuid,
                     std::size_t next) {
  Machine& m = asked.m;
  if (next == reply.nodes.size()) {
    reply.removed = true;
    return asked.reply(reply);
  }
  const NodeName node = *NodeName::parse(reply.nodes[next]);
  const Dataset* copy = m.fleet.copy(node, uuid);
  if (copy == nullptr) return destroy_on_next(asked, std::move(reply), uuid, next + 1);
  PlanStep step;
  step.node = node;
  step.action = Destroy{copy->name, uuid, {}};
  step.expect = m.expect(uuid);
  step.why = "model rm asked by " + asked.by();
  const std::string need = fmt::format("model-rm:{}:{}:{}", uuid.str(), node.str(), asked.request);
  if (!m.steps.want(need, JobId{}, {step}, m.fleet, m.now.monotonic, m.ids, m.out))
    return asked.refuse(ErrorCode::unavailable, "node " + node.str() + " went away",
                        "zedctl model rm goes on where it stopped");
  asked.continue_on_need(
      need, node, remove_patience, "destroy " + reply.dataset + " on " + node.str(),
      [reply, uuid, next](const Asked& again) { destroy_on_next(again, reply, uuid, next + 1); });
}

}  // namespace

void handle(const Asked& asked, const api::RemoveModel& op) {
  Machine& m = asked.m;
  auto row = find_model(m, op.model);
  if (!row) return asked.refuse(row.error());
  if (row->copies.empty())
    return asked.refuse(ErrorCode::not_found, versioned(*row) + " is on no node",
                        "zedctl model ls");
  const DatasetId uuid = uuid_of(m, *row);
  api::RemoveModelReply reply;
  reply.model = row->name;
  reply.version = row->version;
  reply.dataset = row->dataset;
  reply.dependents = dependents_of(m, *row);
  for (const NodeName& node : m.fleet.holders(uuid))
    (m.fleet.is_ready(node) ? reply.nodes : reply.away).push_back(node.str());
  if (op.dry_run) return asked.reply(reply);
  if (!reply.dependents.empty() && !op.force)
    return asked.refuse(ErrorCode::refused,
                        versioned(*row) + " is needed: " + join(reply.dependents, "; "),
                        "--force removes it all the same");
  if (reply.nodes.empty())
    return asked.refuse(ErrorCode::unavailable,
                        "no node that has " + versioned(*row) + " is connected", "zedctl nodes");
  asked.audit("model " + row->name, "remove version " + row->version + " everywhere");
  destroy_on_next(asked, std::move(reply), uuid, 0);
}

}  // namespace zed::controller
