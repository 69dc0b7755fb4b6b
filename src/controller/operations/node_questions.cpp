// Questions to a node and their answers.

#include <fmt/format.h>

#include "base/text.hpp"
#include "controller/names.hpp"
#include "controller/operations/checkpoint_name.hpp"
#include "controller/operations/daily.hpp"

namespace zed::controller {
namespace {

constexpr Millis node_patience = seconds(30);

std::string_view without_at(std::string_view checkpoint) {
  if (!checkpoint.empty() && checkpoint.front() == '@') checkpoint.remove_prefix(1);
  return checkpoint;
}

/// The live files are the home's; of a job whose home is away there are only checkpoints.
Result<FoundCopy> live_files(const Machine& m, const DesiredJob& job) {
  const std::string& name = job.job.name.str();
  if (job.attempts == 0)
    return fail(ErrorCode::not_found, "job " + name + " has not run yet: it has no files",
                "zedctl why " + name);
  const Dataset* copy =
      m.fleet.is_ready(job.home) ? m.fleet.copy(job.home, job.dataset_uuid()) : nullptr;
  if (copy == nullptr)
    return fail(ErrorCode::unavailable,
                fmt::format("the live files of job {} are on {}, which {}", name, job.home.str(),
                            m.fleet.absence(job.home)),
                "zedctl checkpoints " + name + " lists what others have; name it as " + name +
                    "@CHECKPOINT");
  return FoundCopy{job.home, copy->uuid, copy->name, nullptr, &job};
}

Result<FoundCopy> files_of_job(const Machine& m, const DesiredJob& job,
                               const std::string& checkpoint) {
  if (checkpoint.empty()) return live_files(m, job);
  ZED_TRY(FoundCheckpoint found, find_checkpoint(m, job, checkpoint));
  const Dataset* copy = m.fleet.copy(found.node, job.dataset_uuid());
  return FoundCopy{found.node, copy->uuid, copy->name, found.snapshot, &job};
}

Result<FoundCopy> files_of_dataset(const Machine& m, const DatasetName& dataset,
                                   std::string_view checkpoint) {
  const DatasetId uuid = *m.fleet.uuid_of(dataset);
  std::vector<std::string> known;
  for (const NodeName& node : m.fleet.ready_holders(uuid)) {
    const Dataset* copy = m.fleet.copy(node, uuid);
    const Snapshot* snapshot = checkpoint.empty() ? copy->newest() : copy->find(checkpoint);
    if (snapshot != nullptr) return FoundCopy{node, uuid, copy->name, snapshot, nullptr};
    for (const Snapshot& other : copy->snapshots)
      known.push_back(other.name);
  }
  if (known.empty())
    return fail(ErrorCode::unavailable, "no connected node has a snapshot of " + dataset.str(),
                "zedctl datasets");
  return fail(ErrorCode::not_found,
              fmt::format("{} has no snapshot @{}", dataset.str(),
                          percent_encode(checkpoint.substr(0, 80))),
              hint_for(checkpoint, known, "snapshot"));
}

/// Not the roots, nor what Zed keeps for itself.
bool is_for_people(const Dataset& dataset) {
  return dataset.name.str().find('/') != std::string::npos &&
         !dataset.name.str().starts_with("zed/") && dataset.property(property::branch_of).empty();
}

}  // namespace

api::Place FoundCopy::place() const {
  return {node.str(), dataset.str(), snapshot == nullptr ? "" : "@" + snapshot->name};
}

Result<DatasetName> find_dataset(const Machine& m, const std::string& typed) {
  std::vector<std::string> known;
  std::optional<DatasetName> by_leaf;
  for (const auto& held : m.fleet.view().datasets)
    for (const auto& entry : held.second) {
      if (entry.first.str() == typed) return entry.first;
      if (entry.first.leaf() == typed) by_leaf = entry.first;
      if (is_for_people(entry.second)) known.push_back(entry.first.str());
    }
  if (by_leaf) return *by_leaf;
  return fail(ErrorCode::not_found,
              "there is no job or dataset " + percent_encode(std::string_view(typed).substr(0, 80)),
              hint_for(typed, known, "dataset"));
}

Result<FoundCopy> find_files(const Machine& m, const std::string& typed,
                             const std::string& checkpoint) {
  if (auto id = find_job(m.desired, typed))
    return files_of_job(m, *m.desired.find(*id), checkpoint);
  ZED_TRY(DatasetName dataset, find_dataset(m, typed));
  return files_of_dataset(m, dataset, without_at(checkpoint));
}

void ask_node(const Asked& asked, const NodeName& node, NodeQuestion question, std::string what,
              std::function<void(const Asked&, const Result<NodeReply>&)> next) {
  Machine& m = asked.m;
  if (!m.fleet.is_connected(node))
    return asked.refuse(ErrorCode::unavailable, "node " + node.str() + " is not connected",
                        "zedctl nodes");
  WaitingRequest waiting;
  waiting.log_page = m.next_log_page++;
  waiting.link = m.fleet.link_of(node);
  waiting.deadline = m.now.monotonic + node_patience;
  waiting.what = std::move(what);
  waiting.on_reply = [who = asked.caller, next = std::move(next)](
                         Machine& machine, RequestId number, const Result<NodeReply>& reply) {
    next(Asked{machine, number, who}, reply);
  };
  m.say(node, AskNode{waiting.log_page, std::move(question)});
  m.waiting.emplace(asked.request, std::move(waiting));
}

void answer_node(Machine& m, const NodeAnswer& answer) {
  for (auto waiting = m.waiting.begin(); waiting != m.waiting.end(); ++waiting) {
    if (waiting->second.log_page != answer.request || !waiting->second.on_reply) continue;
    const RequestId request = waiting->first;
    auto on_reply = std::move(waiting->second.on_reply);
    m.waiting.erase(waiting);
    if (answer.error) return on_reply(m, request, fail(*answer.error));
    if (answer.reply) return on_reply(m, request, *answer.reply);
    return on_reply(m, request, fail(ErrorCode::internal, "the node's answer is empty"));
  }
}

}  // namespace zed::controller
