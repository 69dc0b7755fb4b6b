// Why a job is where it is, or runs nowhere; and who could hold a requirement.

#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "controller/names.hpp"
#include "controller/operations/handlers.hpp"
#include "controller/operations/reasons.hpp"
#include "controller/operations/rows.hpp"
#include "controller/place_request.hpp"
#include "controller/queueing.hpp"
#include "sched/match.hpp"
#include "sched/place.hpp"
#include "sched/queue.hpp"

namespace zed::controller {
namespace {

/// Free nodes by preference, each asked for by itself.
std::vector<Placement> ranked(const Machine& m, const sched::PlaceRequest& request) {
  std::vector<Placement> placements;
  sched::PlaceRequest left = request;
  for (std::size_t turn = 0; turn < m.fleet.view().nodes.size(); ++turn) {
    auto result = sched::place(m.fleet.view(), left);
    auto* placement = std::get_if<Placement>(&result);
    if (placement == nullptr) break;
    placements.push_back(*placement);
    left.exclusions.push_back({placement->node, "listed already", true});
  }
  return placements;
}

/// Free GPUs that are enough, but scattered: which jobs to move.
void explain_moves(const Machine& m, sched::PlaceRequest request, api::WhyReply& reply) {
  request.reservations.clear();            // of those that would move, among others
  constexpr std::size_t most_nodes = 500;  // each is asked with and without what runs there
  if (m.fleet.view().nodes.size() > most_nodes) return;
  std::map<JobId, Job> running;
  for (const auto& entry : m.placed_jobs)
    running.emplace(entry.first, m.desired.find(entry.first)->job);
  std::vector<std::string> commands;
  for (const sched::Move& move : sched::propose_moves(m.fleet.view(), request, running))
    commands.push_back(
        fmt::format("zedctl resume {} --on {}", running.at(move.job).name.str(), move.to.str()));
  if (!commands.empty())
    reply.reasons.push_back("it would fit if others moved: " + join(commands, "; "));
}

/// Where the job would go, or what keeps it from every node.
void explain_place(const Machine& m, const DesiredJob& job, api::WhyReply& reply) {
  auto request = place_request(m, job);
  request.reservations = promises_to_others(m, job.job.id);
  auto result = sched::place(m.fleet.view(), request);
  if (auto* rejection = std::get_if<Rejection>(&result)) {
    reply.rejection = *rejection;
    explain_moves(m, request, reply);
  } else {
    reply.placement = std::get<Placement>(result);
  }
}

/// A declared job that was never dispatched, perhaps because no node can hold it.
api::WhyReply why_declared(const Machine& m, const Job& declared) {
  DesiredJob job;
  job.job = declared;
  api::WhyReply reply;
  reply.job = row_of_declared(declared);
  reply.reasons.push_back(reply.job.reason);
  explain_place(m, job, reply);
  return reply;
}

}  // namespace

std::optional<Rejection> impossible(const Machine& m, const DesiredJob& job) {
  auto request = place_request(m, job);
  request.only.reset();
  if (sched::place(m.fleet.index(), request)) return std::nullopt;
  request.reservations = promises_to_others(m, job.job.id);
  Rejection rejection = sched::explain(m.fleet.view(), request);
  // A fleet without nodes is one that has not come up yet.
  if (rejection.nodes.empty() || !rejection.is_impossible()) return std::nullopt;
  return rejection;
}

void handle(const Asked& asked, const api::MatchNodes& op) {
  const Machine& m = asked.m;
  sched::PlaceRequest request;
  request.job.requirement = op.requirement;
  request.job.prefer = op.prefer;
  request.reservations = m.fleet.reservations();
  api::MatchReply reply;
  reply.matches = ranked(m, request);
  std::set<NodeName> matched;
  for (const Placement& placement : reply.matches)
    matched.insert(placement.node);
  for (const sched::NodeReport& report :
       sched::match_fleet(m.fleet.view(), op.requirement, op.prefer))
    if (!matched.contains(report.node)) reply.refusals.push_back({report.node, report.shortfalls});
  asked.reply(reply);
}

void handle(const Asked& asked, const api::WhyJob& op) {
  const Machine& m = asked.m;
  auto declared = find_declared_job(m.desired, op.job);
  if (declared && !find_job(m.desired, op.job)) return asked.reply(why_declared(m, **declared));
  DesiredJob* job = job_or_refuse(asked, op.job);
  if (job == nullptr) return;
  api::WhyReply reply;
  reply.job = row_of(m, *job);
  reply.reasons = reasons_of(m, *job);
  if (job->placed)
    reply.placement = Placement{job->placed->node, job->placed->gpus, 0, job->placed->why};
  if (!job->placed && !job->is_over() && !awaited(m, *job)) explain_place(m, *job, reply);
  asked.reply(reply);
}

}  // namespace zed::controller
