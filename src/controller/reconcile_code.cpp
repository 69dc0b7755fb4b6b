// What a job is made of beside its model: submitted code, known by its content and shared by all
// jobs that have the same, and data sets, as they were at submit.

#include <algorithm>

#include <fmt/format.h>

#include "controller/copies.hpp"
#include "controller/imports.hpp"
#include "repl/targets.hpp"

namespace zed::controller {
namespace {

/// A submit may be about to name what nobody names now.
constexpr Millis code_grace = minutes(5);
constexpr Millis look_at_code_every = seconds(20);

std::optional<PlanStep> packing(Machine& m, const std::string& folder, const NodeName& node) {
  const Import import{*DatasetName::parse(code_root), folder, "code", "code", "1", {}, {}};
  auto step = step_of(m, node, import, "a job was submitted with it");
  return step ? std::optional(std::move(*step)) : std::nullopt;
}

bool is_packing(const PlanStep& step) {
  const auto* import = std::get_if<ImportFiles>(&step.action);
  return import != nullptr && import->dataset.str() == code_root;
}

/// Whether its first attempt still takes its files from the stored code.
bool awaits_code(const Machine& m, const DesiredJob& job) {
  if (!job.job.code || !job.job.content || job.begins || job.is_over()) return false;
  const Dataset* files = job.home.empty() ? nullptr : m.fleet.copy(job.home, job.dataset_uuid());
  return files == nullptr || files->snapshots.empty();
}

/// Nodes that have it and are not lost.
std::vector<NodeName> code_holders(const Machine& m, const CheckpointId& content) {
  std::vector<NodeName> found;
  const DatasetId uuid{content.bytes};
  for (const NodeName& node : m.fleet.holders(uuid))
    if (!m.fleet.is_lost(node) && m.fleet.copy(node, uuid)->find(content) != nullptr)
      found.push_back(node);
  return found;
}

bool is_code_under_way(const Machine& m, const DatasetId& uuid) {
  return std::any_of(m.steps.all().begin(), m.steps.all().end(), [&uuid](const auto& entry) {
    const auto* receive = std::get_if<ReceiveSnapshot>(&entry.second.step.action);
    return receive != nullptr && receive->ticket.uuid == uuid;
  });
}

std::set<DatasetId> named_code(const Machine& m) {
  std::set<DatasetId> named;
  for (const auto& [id, job] : m.desired.jobs)
    if (job.job.content && !(job.is_terminal() && m.journal.is_durable(job.changed_seq)))
      named.insert(DatasetId{job.job.content->bytes});
  return named;
}

void drop_code(Machine& m, const NodeName& node, const Dataset& copy) {
  PlanStep step;
  step.node = node;
  step.action = Destroy{copy.name, copy.uuid, {}};
  step.expect = m.expect(copy.uuid);
  step.why = "no job needs this code any more";
  m.steps.want("drop-code:" + copy.uuid.str() + ":" + node.str(), JobId{}, {step}, m.fleet,
               m.now.monotonic, m.ids, m.out);
}

}  // namespace

std::string code_need(const JobId& job) {
  return "code:" + job.str();
}

void repack_code(Machine& m, const DesiredJob& job) {
  const auto& content = job.job.content;
  if (!job.job.code || (content && is_imported(m, code_dataset(*content)))) return;
  const NodeName node = m.files_node();
  const std::string need = code_need(job.job.id);
  if (m.steps.is_live(need) || !m.fleet.is_ready(node) || is_anyone_awaited(m)) return;
  if (auto step = packing(m, *job.job.code, node))
    m.steps.want(need, job.job.id, {*step}, m.fleet, m.now.monotonic, m.ids, m.out);
}

Status pack_code(Machine& m, const JobId& job, const std::string& folder, const NodeName& node) {
  const std::string need = code_need(job);
  m.steps.forgive(need);
  if (m.steps.is_live(need)) return {};
  auto step = m.fleet.is_ready(node) ? packing(m, folder, node) : std::nullopt;
  if (step && m.steps.want(need, JobId{}, {*step}, m.fleet, m.now.monotonic, m.ids, m.out))
    return {};
  const std::string where = node.empty()
                                ? "a machine without an agent"
                                : fmt::format("{}, which {}", node.str(), m.fleet.absence(node));
  return fail(ErrorCode::unavailable, "the code in " + folder + " lies on " + where,
              "zedctl nodes");
}

void note_packed(Machine& m, const NeedOutcome& outcome) {
  if (outcome.error || !outcome.snapshot || !is_packing(outcome.step)) return;
  const DesiredJob* job = m.desired.find(outcome.owner);
  if (job == nullptr || !job->job.code) return;
  if (!job->job.content)
    m.record(InputsPinned{job->job.id, *outcome.snapshot, {}});
  else if (*job->job.content != *outcome.snapshot)
    m.tell_once("other code " + job->job.id.str(), "job", "job " + job->job.name.str(),
                "the code that it was submitted with is on no node any more, and " +
                    *job->job.code + " has changed since");
}

bool is_code_safe(const Machine& m, const DesiredJob& job) {
  return !awaits_code(m, job) || code_holders(m, *job.job.content).size() > 1;
}

void keep_code(Machine& m, const DesiredJob& job) {
  if (!awaits_code(m, job)) return;
  const auto holders = code_holders(m, *job.job.content);
  // Of none it is packed anew; where the job is placed it goes anyway.
  if (holders.size() != 1 || (job.placed && job.placed->node != holders.front())) return;
  const DatasetId uuid{job.job.content->bytes};
  if (is_code_under_way(m, uuid)) return;
  const Dataset& copy = *m.fleet.copy(holders.front(), uuid);
  repl::CopyRequest request;
  request.dataset = copy.name;
  request.uuid = uuid;
  request.home = holders.front();
  request.size = copy.used;
  const auto targets = repl::choose_copy_targets(m.fleet.view(), request).nodes;
  if (!targets.empty())
    bring(m, uuid, holders.front(), targets.front(), job.job.id,
          "the code of job " + job.job.name.str() + " is to be on two machines");
}

const Input* find_pin(const Job& job, const DatasetName& data) {
  const auto found = std::find_if(job.inputs.begin(), job.inputs.end(),
                                  [&](const Input& input) { return input.dataset == data; });
  return found == job.inputs.end() ? nullptr : &*found;
}

std::vector<Input> inputs_to_pin(const Machine& m, const Job& job) {
  std::vector<Input> found;
  for (const DatasetName& dataset : job.data) {
    auto uuid = find_pin(job, dataset) != nullptr ? std::nullopt : m.fleet.uuid_of(dataset);
    auto holder = uuid ? best_holder(m, *uuid) : std::nullopt;
    const Dataset* copy = holder ? m.fleet.copy(*holder, *uuid) : nullptr;
    if (copy != nullptr && copy->newest() != nullptr)
      found.push_back({dataset, copy->newest()->id});
  }
  return found;
}

void pin_inputs(Machine& m, DesiredJob& job) {
  auto inputs = inputs_to_pin(m, job.job);
  if (!inputs.empty()) m.record(InputsPinned{job.job.id, std::nullopt, std::move(inputs)});
  if (job.home.empty()) repack_code(m, job);
}

std::optional<Input> pinned_input(Machine& m, const DesiredJob& job, const Input& input,
                                  const NodeName& node) {
  auto uuid = m.fleet.uuid_of(input.dataset);
  const Dataset* here = uuid ? m.fleet.copy(node, *uuid) : nullptr;
  if (here != nullptr && here->find(input.snapshot) != nullptr)
    return Input{here->name, input.snapshot};
  std::optional<NodeName> source;
  for (const NodeName& holder : uuid ? m.fleet.ready_holders(*uuid) : std::vector<NodeName>{}) {
    const Dataset& copy = *m.fleet.copy(holder, *uuid);
    if (copy.find(input.snapshot) == nullptr) continue;
    if (!source || copy.property(property::home) == holder.str()) source = holder;
  }
  std::string& why = m.waits_for[job.job.id];
  if (!source) {
    why = fmt::format("snapshot {} of {}, which it was submitted with, is on no reachable node",
                      input.snapshot.str().substr(0, 12), input.dataset.str());
    return std::nullopt;
  }
  why =
      fmt::format("{} is on its way from {} to {}", input.dataset.str(), source->str(), node.str());
  if (bring(m, *uuid, *source, node, job.job.id, "job " + job.job.name.str() + " needs it"))
    why = fmt::format("the copy of {} on {} no longer has the snapshot that it was submitted with",
                      input.dataset.str(), node.str());
  return std::nullopt;
}

std::string shown_input(const Machine& m, const Input& input) {
  std::string snapshot = input.snapshot.str().substr(0, 12);
  if (auto uuid = m.fleet.uuid_of(input.dataset))
    for (const NodeName& holder : m.fleet.holders(*uuid))
      if (const Snapshot* found = m.fleet.copy(holder, *uuid)->find(input.snapshot))
        snapshot = found->name;
  return input.dataset.str() + "@" + snapshot;
}

void collect_code(Machine& m) {
  if (m.now.monotonic < m.next_look_at_code) return;
  m.next_look_at_code = m.now.monotonic + look_at_code_every;
  for (const auto& [id, job] : m.desired.jobs)
    keep_code(m, job);  // a node that had it may be gone
  for (const auto& [id, live] : m.steps.all())
    if (is_packing(live.step)) return;
  const auto named = named_code(m);
  std::map<DatasetId, Instant> unneeded;
  for (const auto& [node, datasets] : m.fleet.view().datasets)
    for (const auto& [name, copy] : datasets) {
      if (copy.property(property::type) != "code" || !name.is_under(code_root) ||
          copy.newest() == nullptr || named.contains(copy.uuid))
        continue;
      auto seen = m.unneeded_code.find(copy.uuid);
      const Instant since = seen == m.unneeded_code.end() ? m.now.monotonic : seen->second;
      unneeded[copy.uuid] = since;
      if (m.now.monotonic - since >= code_grace && m.fleet.is_ready(node)) drop_code(m, node, copy);
    }
  m.unneeded_code = std::move(unneeded);
}

}  // namespace zed::controller
