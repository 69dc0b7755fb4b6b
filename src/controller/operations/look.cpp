// GPUs and datasets, a row each.

#include <algorithm>
#include <set>

#include "controller/operations/daily.hpp"

namespace zed::controller {
namespace {

/// Names of the jobs that hold each GPU of a node.
std::map<std::string, std::vector<std::string>> holders_on(const Machine& m, const NodeName& node) {
  std::map<std::string, std::vector<std::string>> holders;
  auto attempts = m.fleet.view().attempts.find(node);
  if (attempts == m.fleet.view().attempts.end()) return holders;
  for (const Attempt& attempt : attempts->second) {
    if (!is_live(attempt)) continue;
    const DesiredJob* job = m.desired.find(attempt.job);
    for (const std::string& gpu : attempt.gpus)
      holders[gpu].push_back(job != nullptr ? job->job.name.str() : attempt.dataset.str());
  }
  return holders;
}

/// What a person rarely asks for.
bool is_inner(const Dataset& dataset) {
  const std::string type = dataset.property(property::type);
  return type == "branch" || type == "code" || type == "node" || dataset.name.is_under("zed") ||
         !dataset.property(property::branch_of).empty();
}

/// The copy that the others follow: the home's, else the one with most.
const Dataset* leading_copy(const Machine& m, const std::vector<NodeName>& holders,
                            const DatasetId& uuid) {
  const Dataset* leading = nullptr;
  for (const NodeName& node : holders) {
    const Dataset* copy = m.fleet.copy(node, uuid);
    if (copy->property(property::home) == node.str()) return copy;
    if (leading == nullptr || copy->snapshots.size() > leading->snapshots.size()) leading = copy;
  }
  return leading;
}

std::string newest_of(const Dataset& dataset) {
  return dataset.newest() == nullptr ? "" : "@" + dataset.newest()->name;
}

api::DatasetRow row_of(const Machine& m, const Dataset& any) {
  // A dataset without an identity is each node's own: its copies are not known to be one.
  std::vector<NodeName> holders = m.fleet.holders(any.uuid);
  const Dataset* leading = leading_copy(m, holders, any.uuid);
  const Dataset& shown = leading == nullptr ? any : *leading;
  api::DatasetRow row;
  row.dataset = shown.name.str();
  row.uuid = shown.uuid;
  row.type = shown.property(property::type);
  row.name = shown.property(property::name);
  row.home = shown.property(property::home);
  row.used = shown.used;
  row.snapshots = std::ssize(shown.snapshots);
  row.newest = newest_of(shown);
  for (const NodeName& node : holders) {
    const Dataset* copy = m.fleet.copy(node, any.uuid);
    const bool current = shown.newest() == nullptr || copy->find(shown.newest()->id) != nullptr;
    row.copies.push_back({node.str(), copy->used, std::ssize(copy->snapshots), newest_of(*copy),
                          current, m.fleet.is_connected(node)});
  }
  return row;
}

}  // namespace

void handle(const Asked& asked, const api::ListGpus&) {
  const Machine& m = asked.m;
  api::GpusReply reply;
  for (const auto& [name, node] : m.fleet.view().nodes) {
    auto holders = holders_on(m, name);
    for (const Gpu& gpu : node.gpus) {
      auto history = m.fleet.gpu_history().of(name, gpu.uuid);
      auto load = history.empty() ? std::nullopt : std::optional(history.back());
      reply.gpus.push_back(
          {name.str(), node.status, gpu, holders[gpu.uuid], std::move(load), std::move(history)});
    }
  }
  asked.reply(reply);
}

void handle(const Asked& asked, const api::ListDatasets& op) {
  const Machine& m = asked.m;
  std::map<std::string, const Dataset*> datasets;
  for (const auto& held : m.fleet.view().datasets)
    for (const auto& entry : held.second) {
      if (entry.second.uuid.is_nil() || (!op.all && is_inner(entry.second))) continue;
      if (op.under.empty() || entry.first.is_under(op.under))
        datasets.emplace(entry.first.str(), &entry.second);
    }
  if (datasets.empty() && !op.under.empty())
    return asked.refuse(ErrorCode::not_found, "there is no dataset at or below " + op.under,
                        "zedctl datasets --all");
  api::DatasetsReply reply;
  for (const auto& entry : datasets)
    reply.datasets.push_back(row_of(m, *entry.second));
  asked.reply(reply);
}

}  // namespace zed::controller
