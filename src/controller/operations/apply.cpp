// Plan and apply: a cluster file becomes the declared fleet.

#include <fmt/format.h>

#include "base/text.hpp"
#include "controller/names.hpp"
#include "controller/operations/handlers.hpp"
#include "plan/diff.hpp"
#include "repl/transfers.hpp"
#include "spec/cluster_file.hpp"
#include "spec/filter.hpp"

namespace zed::controller {
namespace {

constexpr std::string_view file_name = "cluster.exs";

std::vector<std::string> rendered(const spec::Checked& checked, const std::string& text) {
  std::vector<std::string> lines;
  for (const spec::Diagnostic& diagnostic : checked.diagnostics)
    lines.push_back(spec::render({diagnostic}, file_name, text));
  return lines;
}

const Cluster* applied_cluster(const Machine& m) {
  return m.desired.applied ? &m.desired.applied->cluster : nullptr;
}

std::vector<PlanStep> replication_of(Machine& m, const Cluster& cluster) {
  std::vector<PlanStep> steps;
  for (const ReplicationPolicy& policy : cluster.policies) {
    auto filter = spec::Filter::parse(policy.filter);
    if (!filter) continue;  // validated; a filter that does not read selects nothing
    auto due = repl::due_transfers(
        m.fleet.view(), policy, [&](const Dataset& dataset) -> std::optional<std::string> {
          auto verdict = spec::evaluate(*filter, dataset.properties);
          return verdict.selects() ? std::nullopt : std::optional(verdict.reason);
        });
    for (const repl::Transfer& transfer : due.transfers)
      for (PlanStep& step : repl::plan_steps(m.fleet.view(), transfer, m.term, m.ids))
        steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace

void handle(const Asked& asked, const api::MakePlan& op) {
  Machine& m = asked.m;
  spec::Checked checked = spec::check(op.text);
  api::PlanReply reply;
  reply.diagnostics = rendered(checked, op.text);
  if (checked.cluster) {
    resolve_paths(*checked.cluster, op.folder);
    reply.plan = plan::make_plan(applied_cluster(m), *checked.cluster, m.fleet.view(),
                                 replication_of(m, *checked.cluster), same_gpu);
  }
  asked.reply(reply);
}

void handle(const Asked& asked, const api::Apply& op) {
  Machine& m = asked.m;
  if (op.expected_revision && *op.expected_revision != m.desired.revision)
    return asked.refuse(ErrorCode::stale,
                        fmt::format("the fleet is at revision {}, the plan was made at {}",
                                    m.desired.revision, *op.expected_revision),
                        "zedctl plan shows what it would change now");
  spec::Checked checked = spec::check(op.text);
  std::vector<std::string> diagnostics = rendered(checked, op.text);
  if (!checked.cluster)
    return asked.refuse(ErrorCode::invalid,
                        "the cluster file has errors:\n" + join(diagnostics, "\n"),
                        "zedctl check shows them");
  NodeName from_node = m.home_machine;
  if (!op.from_node.empty()) {
    auto node = find_node(m.desired, m.fleet.view(), op.from_node);
    if (!node) return asked.refuse(node.error());
    from_node = *node;
  }
  resolve_paths(*checked.cluster, op.folder);
  api::ApplyReply reply;
  reply.diagnostics = std::move(diagnostics);
  reply.changes = plan::diff(applied_cluster(m), *checked.cluster, m.fleet.view(), same_gpu);
  AppliedFile file;
  file.text = op.text;
  file.folder = op.folder;
  file.from_node = from_node;
  file.by = asked.by();
  file.at = m.now.wall;
  bool is_same = m.desired.applied && m.desired.applied->text == file.text &&
                 m.desired.applied->folder == file.folder &&
                 m.desired.applied->from_node == file.from_node;
  if (!is_same) {
    for (const Record& record : records_of(std::move(file)))
      m.applied_seq = m.record(record);
    m.applied_is_known = false;
    asked.audit("cluster " + m.desired.applied->cluster.name, "applied");
  }
  const auto is_safe = [](const Machine& machine) {
    return machine.journal.is_stored(machine.applied_seq);
  };
  asked.reply_when_safe(is_safe, [reply, is_safe](Machine& machine) -> Result<Value> {
    api::ApplyReply done = reply;
    done.revision = machine.desired.revision;
    done.safe = is_safe(machine);
    return api::encode_reply(done);
  });
}

}  // namespace zed::controller
