// A job's checkpoints, its branches, and where the copies are.

#include <algorithm>
#include <limits>
#include <utility>

#include "controller/operations/handlers.hpp"
#include "controller/operations/rows.hpp"
#include "controller/timelines.hpp"

namespace zed::controller {
namespace {

std::string brief(const std::optional<Generation>& generation) {
  return generation ? generation->brief() : "";
}

api::CheckpointRow row_of(const DesiredJob& job, const Dataset& dataset, const Snapshot& snapshot) {
  api::CheckpointRow row;
  row.name = snapshot.name;
  row.id = snapshot.id;
  row.seq = snapshot.seq();
  row.timeline = brief(snapshot.timeline());
  auto generation = snapshot.properties.find(property::generation);
  if (generation != snapshot.properties.end())
    row.generation = brief(Generation::parse(generation->second));
  row.dataset = dataset.name.str();
  bool is_branch = dataset.uuid != job.dataset_uuid();
  row.current = !is_branch && (!snapshot.seq() || is_on_current_timeline(job, snapshot));
  auto closing = snapshot.properties.find(property::closing);
  if (closing != snapshot.properties.end()) row.closing = closing->second;
  row.created = snapshot.created;
  row.used = snapshot.used;
  row.metrics = metrics_of(snapshot);
  return row;
}

/// Among those of one moment, in which a store that tells seconds may have taken several.
std::uint64_t place_of(const api::CheckpointRow& row) {
  if (!row.closing.empty()) return std::numeric_limits<std::uint64_t>::max();
  return row.seq.value_or(0);
}

bool belongs_to(const DesiredJob& job, const Dataset& dataset) {
  return dataset.uuid == job.dataset_uuid() ||
         dataset.property(property::branch_of) == job.dataset_uuid().str();
}

}  // namespace

void handle(const Asked& asked, const api::ListCheckpoints& op) {
  const Machine& m = asked.m;
  DesiredJob* job = job_or_refuse(asked, op.job);
  if (job == nullptr) return;
  api::CheckpointsReply reply;
  reply.job = row_of(m, *job);
  for (const KnownFork& fork : job->forks)
    reply.forks.push_back(fork.fork);
  // One row a snapshot, whoever has it; the current dataset's word on it goes before a branch's.
  std::map<CheckpointId, api::CheckpointRow> rows;
  for (const auto& [node, datasets] : m.fleet.view().datasets)
    for (const auto& entry : datasets) {
      if (!belongs_to(*job, entry.second)) continue;
      for (const Snapshot& snapshot : entry.second.snapshots) {
        api::CheckpointRow fresh = row_of(*job, entry.second, snapshot);
        auto [row, is_new] = rows.try_emplace(snapshot.id, fresh);
        if (!is_new && fresh.current && !row->second.current) {
          fresh.nodes = row->second.nodes;
          row->second = fresh;
        }
        auto& nodes = row->second.nodes;
        if (std::find(nodes.begin(), nodes.end(), node.str()) == nodes.end())
          nodes.push_back(node.str());
      }
    }
  for (auto& entry : rows)
    reply.checkpoints.push_back(std::move(entry.second));
  std::stable_sort(reply.checkpoints.begin(), reply.checkpoints.end(),
                   [](const api::CheckpointRow& a, const api::CheckpointRow& b) {
                     return std::pair(a.created, place_of(a)) < std::pair(b.created, place_of(b));
                   });
  asked.reply(reply);
}

}  // namespace zed::controller
