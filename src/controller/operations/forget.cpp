// A machine that does not come back: its name is free again.

#include <fmt/format.h>

#include "base/text.hpp"
#include "controller/names.hpp"
#include "controller/operations/handlers.hpp"

namespace zed::controller {
namespace {

/// Jobs that would go on from that node's copy if it came back.
std::vector<std::string> jobs_at(const Machine& m, const NodeName& node) {
  std::vector<std::string> names;
  for (const auto& [id, job] : m.desired.jobs)
    if (job.home == node && !job.is_over()) names.push_back(job.job.name.str());
  return names;
}

}  // namespace

void handle(const Asked& asked, const api::ForgetNode& op) {
  Machine& m = asked.m;
  auto node = find_node(m.desired, m.fleet.view(), op.node);
  if (!node) return asked.refuse(node.error());
  if (!m.desired.members.contains(*node))
    return asked.refuse(ErrorCode::not_found, "node " + node->str() + " never joined",
                        "take it out of the cluster file");
  if (m.fleet.is_connected(*node))
    return asked.refuse(ErrorCode::refused, "node " + node->str() + " is connected",
                        "stop its agent first, or it would join again at once");
  auto jobs = jobs_at(m, *node);
  if (!jobs.empty() && !op.force)
    return asked.refuse(
        ErrorCode::refused,
        fmt::format("node {} is the home of {} ({}{})", node->str(), plural(jobs.size(), "job"),
                    jobs.front(), jobs.size() > 1 ? ", ..." : ""),
        "--force lets them go on from the copies that others have; what only it had is given up");
  m.record(Forgotten{*node, asked.by()});
  m.fleet.forget(*node);
  m.rates.forget(*node);
  m.troubles.erase(*node);
  asked.audit("node " + node->str(), "forgotten");
  for (const auto& [id, job] : m.desired.jobs)
    if (job.home == *node && !job.is_terminal()) reindex_job(m, id);
  m.place_due = m.policies_due = true;
  asked.reply_when_durable(
      [](Machine& machine) -> Result<Value> { return api::encode_reply(nodes_reply(machine)); });
}

}  // namespace zed::controller
