#include "controller/operations/checkpoint_name.hpp"

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "controller/names.hpp"
#include "controller/timelines.hpp"

namespace zed::controller {
namespace {

/// Whether a person may begin at it: of the current timeline, or without one (taken by hand).
bool may_begin_at(const DesiredJob& job, const Snapshot& snapshot) {
  if (snapshot.seq()) return is_on_current_timeline(job, snapshot);
  auto timeline = snapshot.timeline();
  return !timeline || *timeline == job.timeline;
}

std::string abandoned_hint(const Machine& m, const DesiredJob& job, std::string_view name) {
  for (const auto& held : m.fleet.view().datasets)
    for (const auto& entry : held.second)
      if (entry.second.property(property::branch_of) == job.dataset_uuid().str() &&
          entry.second.find(name) != nullptr)
        return "branch " + entry.first.str() + " has one of that name, on an abandoned timeline";
  return "";
}

/// What nodes have been told to destroy of it: it may be gone by now.
std::set<CheckpointId> being_destroyed(const Machine& m, const DatasetId& dataset) {
  std::set<CheckpointId> found;
  for (const auto& [id, live] : m.steps.all())
    if (const auto* destroy = std::get_if<Destroy>(&live.step.action);
        destroy != nullptr && destroy->uuid == dataset)
      found.insert(destroy->snapshots.begin(), destroy->snapshots.end());
  return found;
}

}  // namespace

Result<FoundCheckpoint> find_checkpoint(const Machine& m, const DesiredJob& job,
                                        std::string_view typed) {
  std::string_view name = typed;
  if (std::size_t at = name.find('@'); at != std::string_view::npos) name.remove_prefix(at + 1);
  std::vector<NodeName> holders = m.fleet.ready_holders(job.dataset_uuid());
  if (holders.empty() && job.attempts == 0)
    return fail(ErrorCode::not_found,
                "job " + job.job.name.str() + " has not run yet: it has no checkpoints",
                "zedctl why " + job.job.name.str());
  if (holders.empty())
    return fail(ErrorCode::unavailable,
                "no node that has a copy of job " + job.job.name.str() + " is connected",
                "zedctl nodes");
  auto home = std::find(holders.begin(), holders.end(), job.home);
  if (home != holders.end()) std::rotate(holders.begin(), home, home + 1);
  std::vector<std::string> known;
  const std::set<CheckpointId> going = being_destroyed(m, job.dataset_uuid());
  for (const NodeName& node : holders)
    for (const Snapshot& snapshot : m.fleet.copy(node, job.dataset_uuid())->snapshots) {
      if (!may_begin_at(job, snapshot)) continue;
      const bool goes = going.contains(snapshot.id);
      if (snapshot.name == name && goes)
        return fail(ErrorCode::not_found,
                    "checkpoint @" + snapshot.name + " of job " + job.job.name.str() +
                        " is being destroyed: its `keep`, or a prune, had it removed",
                    "zedctl checkpoints " + job.job.name.str() + " shows what stays");
      if (snapshot.name == name) return FoundCheckpoint{node, &snapshot};
      if (!goes) known.push_back(snapshot.name);
    }
  std::reverse(known.begin(), known.end());  // the newest are those that people mean
  std::string hint = abandoned_hint(m, job, name);
  return fail(ErrorCode::not_found,
              "job " + job.job.name.str() + " has no checkpoint @" +
                  percent_encode(name.substr(0, 80)) + " on its current timeline",
              hint.empty() ? hint_for(name, known, "checkpoint") : hint);
}

std::uint64_t seq_at(const DesiredJob& job, const Dataset& copy, const Snapshot& snapshot) {
  if (auto seq = snapshot.seq()) return *seq;
  std::uint64_t newest = 0;
  for (const Snapshot& other : copy.snapshots)
    if (other.createtxg <= snapshot.createtxg && is_on_current_timeline(job, other))
      newest = std::max(newest, *other.seq());
  return newest;
}

std::vector<std::string> left_behind(const Dataset& copy, const Snapshot& from) {
  std::vector<std::string> names;
  bool beyond = false;
  for (const Snapshot& snapshot : copy.snapshots) {
    if (beyond && !snapshot.properties.contains(property::closing))
      names.push_back("@" + snapshot.name);
    beyond = beyond || snapshot.id == from.id;
  }
  return names;
}

}  // namespace zed::controller
