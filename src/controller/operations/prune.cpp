// Checkpoints that need not be kept, destroyed because a person says so.

#include <set>

#include <fmt/format.h>

#include "base/text.hpp"
#include "controller/copies.hpp"
#include "controller/operations/daily.hpp"
#include "repl/retention.hpp"

namespace zed::controller {
namespace {

constexpr Millis prune_patience = minutes(10);

std::string words_of(const Retention& keep) {
  std::string words;
  auto add = [&words](const std::string& part) { words += (words.empty() ? "" : ", ") + part; };
  if (keep.last) add(fmt::format("last {}", *keep.last));
  if (keep.best)
    add(fmt::format("best {} by {} ({})", *keep.best, keep.metric, to_string(keep.mode)));
  if (keep.every) add(fmt::format("every {}", *keep.every));
  return words;
}

Status check(const Retention& keep) {
  for (const auto& count : {keep.last, keep.best, keep.every})
    if (count && (*count < 1 || *count > 1'000'000))
      return fail(ErrorCode::invalid, fmt::format("keep {} is not from 1 to 1000000", *count));
  return {};
}

/// One copy's share of the work.
struct Share {
  NodeName node;
  DatasetName dataset;
  DatasetId uuid;
  std::vector<CheckpointId> snapshots;
};

struct Pruning {
  api::PruneReply reply;
  std::vector<Share> shares;
};

/// What goes of one copy.
void add_share(const Machine& m, const NodeName& node, const Dataset& copy, const Retention& keep,
               bool counts_kept, Pruning& pruning) {
  Share share{node, copy.name, copy.uuid, {}};
  for (const repl::Doomed& doomed : repl::to_destroy(copy, keep, pinned_snapshots(m, copy))) {
    share.snapshots.push_back(doomed.id);
    pruning.reply.pruned.push_back({node.str(), copy.name.str(), "@" + doomed.name, doomed.frees});
    pruning.reply.frees = pruning.reply.frees + doomed.frees;
  }
  if (counts_kept) pruning.reply.kept += std::ssize(copy.snapshots) - std::ssize(share.snapshots);
  if (!share.snapshots.empty()) pruning.shares.push_back(std::move(share));
}

Pruning prepare(const Machine& m, const DesiredJob& job, const Retention& keep, bool branches) {
  Pruning pruning;
  pruning.reply.job = job.job.name.str();
  pruning.reply.keep = words_of(keep);
  if (!branches)
    for (const NodeName& node : m.fleet.ready_holders(job.dataset_uuid()))
      add_share(m, node, *m.fleet.copy(node, job.dataset_uuid()), keep, node == job.home, pruning);
  std::set<DatasetId> counted;
  for (const auto& [node, datasets] : m.fleet.view().datasets)
    if (branches && m.fleet.is_ready(node))
      for (const auto& [name, copy] : datasets)
        if (copy.property(property::branch_of) == job.dataset_uuid().str())
          add_share(m, node, copy, keep, counted.insert(copy.uuid).second, pruning);
  return pruning;
}

/// One copy after the other; what could not be destroyed stops the rest and is said.
void go_on(const Asked& asked, const Pruning& pruning, std::size_t next) {
  Machine& m = asked.m;
  if (next == pruning.shares.size()) return asked.reply(pruning.reply);
  const Share& share = pruning.shares[next];
  const Dataset* copy = m.fleet.copy(share.node, share.uuid);
  if (copy == nullptr) return go_on(asked, pruning, next + 1);
  PlanStep step;
  step.node = share.node;
  step.action = Destroy{share.dataset, share.uuid, share.snapshots};
  step.expect = m.expect(share.uuid, copy->timeline());
  step.why = "prune asked by " + asked.by();
  const std::string need =
      fmt::format("prune-now:{}:{}:{}", share.uuid.str(), share.node.str(), asked.request);
  if (!m.steps.want(need, JobId{}, {step}, m.fleet, m.now.monotonic, m.ids, m.out))
    return asked.refuse(ErrorCode::unavailable, "node " + share.node.str() + " went away",
                        "zedctl prune goes on where it stopped");
  asked.continue_on_need(need, share.node, prune_patience,
                         "destroy checkpoints of " + pruning.reply.job + " on " + share.node.str(),
                         [pruning, next](const Asked& again) { go_on(again, pruning, next + 1); });
}

}  // namespace

void handle(const Asked& asked, const api::Prune& op) {
  Machine& m = asked.m;
  DesiredJob* job = job_or_refuse(asked, op.job);
  if (job == nullptr) return;
  const Retention& keep = op.keep ? *op.keep : job->job.retention;
  if (keep.keeps_all())
    return asked.refuse(
        ErrorCode::refused, "job " + job->job.name.str() + " keeps all of its checkpoints",
        "zedctl prune " + job->job.name.str() + " --keep last=5, or `keep` in the cluster file");
  if (Status fits = check(keep); !fits) return asked.refuse(fits.error());
  Pruning pruning = prepare(m, *job, keep, op.branches);
  pruning.reply.dry_run = op.dry_run;
  if (op.dry_run || pruning.shares.empty()) return asked.reply(pruning.reply);
  for (const Share& share : pruning.shares)
    if (m.steps.transfers_on(share.node) > 0)
      return asked.refuse(ErrorCode::busy,
                          "a transfer runs on " + share.node.str() + " that may need them",
                          "zedctl transfers; try again when it is done");
  std::set<std::string> names;  // a row is a copy on one node
  for (const api::PruneRow& row : pruning.reply.pruned)
    names.insert(row.dataset + row.snapshot);
  asked.audit(
      "job " + job->job.name.str(),
      fmt::format("prune {}, keeping {}", plural(names.size(), "snapshot"), pruning.reply.keep));
  go_on(asked, pruning, 0);
}

}  // namespace zed::controller
