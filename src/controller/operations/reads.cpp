// Operations that only look.

#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "controller/names.hpp"
#include "controller/operations/handlers.hpp"
#include "controller/operations/rows.hpp"
#include "plan/hardware.hpp"

namespace zed::controller {
namespace {

constexpr Millis log_patience = seconds(10);

void count_gpus(const Machine& m, api::StatusReply& reply) {
  for (const auto& [name, node] : m.fleet.view().nodes) {
    ++reply.nodes[std::string(to_string(node.status))];
    reply.gpus += std::ssize(node.gpus);
    std::set<std::string> busy;
    auto attempts = m.fleet.view().attempts.find(name);
    if (attempts == m.fleet.view().attempts.end()) continue;
    for (const Attempt& attempt : attempts->second)
      if (is_live(attempt)) busy.insert(attempt.gpus.begin(), attempt.gpus.end());
    reply.gpus_busy += std::ssize(busy);
  }
}

void warn(const Machine& m, api::StatusReply& reply) {
  if (m.journal.broken())
    reply.warnings.push_back("the journal cannot be written: " + m.journal.broken()->describe());
  if (m.desired.second.empty())
    reply.warnings.push_back("the journal is on one machine only: no second node");
  else if (!m.journal.has_second())
    reply.warnings.push_back("the second node " + m.desired.second.str() + " is away");
  if (m.desired.applied && !m.desired.applied->fault.empty())
    reply.warnings.push_back("this version cannot read the applied cluster file: " +
                             m.desired.applied->fault + " (zedctl check, then apply)");
  for (const Proposal& proposal : m.desired.proposals) {
    const DesiredJob* job = m.desired.find(proposal.fork.fork.job);
    if (job == nullptr || job->is_terminal()) continue;
    const std::string& from = proposal.fork.from_name;
    reply.warnings.push_back(fmt::format(
        "a controller that was cut off had decided a {0} of job {1} to {2}: zedctl resume {1} "
        "--from {2} does it",
        to_string(proposal.fork.fork.why), job->job.name.str(),
        from.empty() ? "start" : "@" + from));
  }
  constexpr std::size_t most = 20;
  for (const auto& [id, job] : m.desired.jobs) {
    if (reply.warnings.size() >= most) break;
    if (job.is_terminal()) continue;
    api::JobRow row = row_of(m, job);
    if (row.checkpoint_copies.starts_with("only on ") && job.job.copies > 0)
      reply.warnings.push_back("checkpoint " + row.checkpoint + " of " + row.name + " is " +
                               row.checkpoint_copies);
    if (row.state == JobState::waiting)
      reply.warnings.push_back("job " + row.name + " waits: " + row.reason);
  }
}

}  // namespace

void handle(const Asked& asked, const api::GetStatus&) {
  const Machine& m = asked.m;
  api::StatusReply reply;
  reply.at = m.now.wall;
  if (m.desired.applied) reply.cluster = m.desired.applied->cluster.name;
  reply.controller = m.home_machine.str();
  reply.term = m.term.str();
  reply.revision = m.desired.revision;
  reply.journal_second = m.journal.has_second() ? m.desired.second.str() : "";
  reply.safe = m.journal.is_stored(m.journal.last_seq());
  count_gpus(m, reply);
  for (const auto& [id, job] : m.desired.jobs)
    ++reply.jobs[std::string(to_string(state_of(m, job)))];
  reply.transfers = transfer_rows(m);
  warn(m, reply);
  asked.reply(reply);
}

api::NodesReply nodes_reply(const Machine& m) {
  api::NodesReply reply;
  for (const auto& [name, node] : m.fleet.view().nodes) {
    api::NodeRow row;
    row.node = node;
    if (auto duty = m.desired.duties.find(name); duty != m.desired.duties.end())
      row.why = duty->second.why.empty() ? "by " + duty->second.by : duty->second.why;
    auto attempts = m.fleet.view().attempts.find(name);
    if (attempts != m.fleet.view().attempts.end())
      for (const Attempt& attempt : attempts->second) {
        const DesiredJob* job = m.desired.find(attempt.job);
        if (!is_live(attempt)) continue;
        for (const std::string& gpu : attempt.gpus)
          row.gpu_jobs[gpu] = job != nullptr ? job->job.name.str() : attempt.dataset.str();
      }
    if (node.declared)
      for (const Change& note : plan::hardware_notes(*node.declared, node, same_gpu))
        row.differences.push_back(note.detail);
    for (const auto& [to, link] : m.rates.from(name))
      row.links.push_back({to.str(), link.rate, {link.recent.begin(), link.recent.end()}, link.at});
    row.listed = m.fleet.is_ready(name);
    reply.nodes.push_back(std::move(row));
  }
  if (!m.desired.applied) return reply;
  for (const DeclaredNode& declared : m.desired.applied->cluster.nodes) {
    if (m.fleet.node(declared.name) != nullptr) continue;
    api::NodeRow row;
    row.node.name = declared.name;
    row.node.status = NodeStatus::lost;
    row.node.declared = declared;
    row.joined = row.listed = false;
    reply.nodes.push_back(std::move(row));
  }
  return reply;
}

void handle(const Asked& asked, const api::ListNodes&) {
  asked.reply(nodes_reply(asked.m));
}

void handle(const Asked& asked, const api::ListJobs& op) {
  const Machine& m = asked.m;
  std::vector<const DesiredJob*> jobs;
  for (const auto& entry : m.desired.jobs)
    if (op.all || !entry.second.is_terminal()) jobs.push_back(&entry.second);
  std::sort(jobs.begin(), jobs.end(), [](const DesiredJob* a, const DesiredJob* b) {
    return a->submitted_seq < b->submitted_seq;
  });
  api::JobsReply reply;
  for (const DesiredJob* job : jobs)
    reply.jobs.push_back(row_of(m, *job));
  if (op.all && m.desired.applied)
    for (const Job& declared : m.desired.applied->cluster.jobs)
      if (!m.desired.by_name.contains(declared.name))
        reply.jobs.push_back(row_of_declared(declared));
  asked.reply(reply);
}

void handle(const Asked& asked, const api::ListEvents& op) {
  if (op.limit < 1 || op.limit > 1000)
    return asked.refuse(ErrorCode::invalid,
                        fmt::format("limit {} is not from 1 to 1000", op.limit));
  asked.reply(api::EventsReply{asked.m.events.since(op.after, op.limit)});
}

void handle(const Asked& asked, const api::ListTransfers&) {
  asked.reply(api::TransfersReply{transfer_rows(asked.m)});
}

void handle(const Asked& asked, const api::ReadJobLog& op) {
  Machine& m = asked.m;
  DesiredJob* job = job_or_refuse(asked, op.job);
  if (job == nullptr) return;
  // The home writes the log; a replica has it up to its newest snapshot.
  std::vector<NodeName> holders = m.fleet.ready_holders(job->dataset_uuid());
  if (holders.empty()) {
    if (job->attempts == 0)
      return asked.refuse(ErrorCode::not_found,
                          "job " + job->job.name.str() + " has not run yet: it has no log",
                          "zedctl why " + job->job.name.str());
    return asked.refuse(ErrorCode::unavailable,
                        "no node that has the log of " + job->job.name.str() + " is connected",
                        "zedctl nodes");
  }
  bool at_home = std::find(holders.begin(), holders.end(), job->home) != holders.end();
  NodeName node = at_home ? job->home : holders.front();
  bool live = at_home && job->placed.has_value();
  WaitingRequest waiting;
  waiting.log_page = m.next_log_page++;
  waiting.link = m.fleet.link_of(node);
  waiting.deadline = m.now.monotonic + log_patience;
  waiting.what =
      "read the log of " + job->job.name.str() + " on " + node.str() + (live ? " (live)" : "");
  // Its folder may be there while its first process is still to come.
  waiting.no_log = "job " + job->job.name.str() + " has written nothing yet";
  if (auto why = m.waits_for.find(job->job.id); why != m.waits_for.end())
    waiting.no_log += ": " + why->second;
  m.say(node, ReadLog{waiting.log_page, m.fleet.copy(node, job->dataset_uuid())->name, op.offset});
  m.waiting.emplace(asked.request, std::move(waiting));
}

}  // namespace zed::controller
