// From a placement to a started attempt: the home's copy, the inputs, the start.

#include <algorithm>

#include <fmt/format.h>

#include "controller/imports.hpp"
#include "controller/machine.hpp"
#include "controller/timelines.hpp"

namespace zed::controller {
namespace {

void waits(Machine& m, const DesiredJob& job, std::string why) {
  m.waits_for[job.job.id] = std::move(why);
}

void create_dataset(Machine& m, const DesiredJob& job) {
  PlanStep step;
  step.node = job.home;
  CreateDataset create;
  create.dataset = job.job.dataset;
  create.properties = {{property::type, "job"},
                       {property::uuid, job.dataset_uuid().str()},
                       {property::name, job.job.name.str()},
                       {property::home, job.home.str()},
                       {property::status, std::string(to_string(JobState::preparing))},
                       {property::timeline, job.timeline.str()}};
  if (job.job.model) create.properties["model"] = job.job.model->str();
  step.action = create;
  step.expect = m.expect();
  step.why = "job " + job.job.name.str() + " runs on " + job.home.str();
  std::string need = "create:" + job.job.id.str() + ":" + job.home.str();
  m.steps.want(need, job.job.id, {step}, m.fleet, m.now.monotonic, m.ids, m.out);
  waits(m, job, "its dataset is being made on " + job.home.str());
}

/// A reachable copy of the current timeline that the home lacks something of; the one with most.
std::optional<NodeName> source_for_home(const Machine& m, const DesiredJob& job) {
  std::optional<NodeName> best;
  std::size_t most = 0;
  for (const NodeName& node : m.fleet.ready_holders(job.dataset_uuid())) {
    const Dataset& copy = *m.fleet.copy(node, job.dataset_uuid());
    if (node == job.home || copy.timeline() != job.timeline || copy.snapshots.empty() ||
        !has_beginning(job, copy))
      continue;
    if (best && copy.snapshots.size() <= most) continue;
    best = node;
    most = copy.snapshots.size();
  }
  return best;
}

bool fetch_home(Machine& m, DesiredJob& job) {
  auto source = source_for_home(m, job);
  if (source) {
    waits(m, job, "its files are on their way from " + source->str() + " to " + job.home.str());
    bring_home(m, job, *source);
    return false;
  }
  for (const NodeName& node : m.fleet.ready_holders(job.dataset_uuid()))
    if (node != job.home && m.fleet.copy(node, job.dataset_uuid())->timeline() != job.timeline) {
      waits(m, job, "the copy on " + node.str() + " is being brought onto the current timeline");
      return false;
    }
  if (job.had_checkpoint) {
    waits(m, job, "it has checkpoints, and no reachable node has a copy of them");
    return false;
  }
  return true;  // nothing was ever there
}

}  // namespace

bool prepare_home(Machine& m, DesiredJob& job) {
  if (!m.fleet.is_ready(job.home)) {
    waits(m, job, fmt::format("node {} {}", job.home.str(), m.fleet.absence(job.home)));
    return false;
  }
  const Dataset* copy = m.fleet.copy(job.home, job.dataset_uuid());
  if (copy == nullptr) {
    if (fetch_home(m, job) && !job.timeline.is_none()) create_dataset(m, job);
    return false;
  }
  if (copy->timeline() != job.timeline) {
    waits(m, job, "its new timeline is being begun on " + job.home.str());
    return false;
  }
  // One snapshot a transfer: it becomes the home (set_homes) after the last of them.
  if (!has_beginning(job, *copy)) {
    fetch_home(m, job);
    return false;
  }
  if (copy->property(property::home) != job.home.str()) {
    waits(m, job, job.home.str() + " is becoming its home");
    return false;
  }
  return true;
}

namespace {

/// One input on the node, up to date; nothing while it is on its way.
std::optional<Input> ready_input(Machine& m, const DesiredJob& job, const DatasetName& dataset,
                                 const NodeName& node) {
  auto uuid = m.fleet.uuid_of(dataset);
  auto source = uuid ? best_holder(m, *uuid) : std::nullopt;
  if (!source) {
    waits(m, job, dataset.str() + " is on no reachable node");
    return std::nullopt;
  }
  if (*source != node &&
      !bring(m, *uuid, *source, node, job.job.id, "job " + job.job.name.str() + " needs it")) {
    waits(m, job, dataset.str() + " is on its way from " + source->str() + " to " + node.str());
    return std::nullopt;
  }
  const Dataset* copy = m.fleet.copy(node, *uuid);
  if (copy == nullptr || copy->newest() == nullptr) return std::nullopt;
  return Input{copy->name, copy->newest()->id};
}

/// The submitted code, for the very first attempt: later ones have it in the job's dataset.
bool gather_code(Machine& m, const DesiredJob& job, StartAttempt& start) {
  const Dataset* copy = m.fleet.copy(job.placed->node, job.dataset_uuid());
  if (!job.job.code || (copy != nullptr && !copy->snapshots.empty())) return true;
  const auto& content = job.job.content;
  if (!content || !is_imported(m, code_dataset(*content))) {
    repack_code(m, job);
    auto error = m.steps.last_error(code_need(job.job.id));
    waits(m, job,
          error ? "its code cannot be packed: " + error->describe()
                : "its code is to be packed from " + *job.job.code);
    return false;
  }
  start.code = pinned_input(m, job, {code_dataset(*content), *content}, job.placed->node);
  return start.code.has_value();
}

/// The checkpoint of another job that this one begins with, on its node.
std::optional<Input> beginning_of(Machine& m, const DesiredJob& job) {
  const Beginning& begins = *job.begins;
  const DatasetId uuid{begins.job.bytes};
  const NodeName& node = job.placed->node;
  const std::string what = "@" + begins.name + " of job " + begins.job_name;
  if (const Dataset* copy = m.fleet.copy(node, uuid); copy && copy->find(begins.checkpoint))
    return Input{copy->name, begins.checkpoint};
  std::optional<NodeName> source;
  for (const NodeName& holder : m.fleet.ready_holders(uuid)) {
    const Dataset& copy = *m.fleet.copy(holder, uuid);
    if (copy.find(begins.checkpoint) == nullptr) continue;
    if (!source || copy.property(property::home) == holder.str()) source = holder;
  }
  if (!source) {
    waits(m, job, what + ", which it begins with, is on no reachable node");
    return std::nullopt;
  }
  bring(m, uuid, *source, node, job.job.id, "job " + job.job.name.str() + " begins with it");
  waits(m, job, what + " is on its way from " + source->str() + " to " + node.str());
  return std::nullopt;
}

/// What the very first attempt finds in its folder: another job's checkpoint, or the submitted
/// code.
bool gather_files(Machine& m, const DesiredJob& job, StartAttempt& start) {
  if (!job.begins) return gather_code(m, job, start);
  const Dataset* copy = m.fleet.copy(job.placed->node, job.dataset_uuid());
  if (copy != nullptr && !copy->snapshots.empty()) return true;
  start.code = beginning_of(m, job);
  return start.code.has_value();
}

/// All inputs, or nothing while one is missing. All missing ones are ordered at once.
bool gather_inputs(Machine& m, const DesiredJob& job, StartAttempt& start) {
  const NodeName& node = job.placed->node;
  bool complete = true;
  if (job.job.model) {
    auto dataset = dataset_of_model(m, *job.job.model);
    if (!dataset) waits(m, job, "model " + job.job.model->str() + " is on no reachable node");
    start.model = dataset ? ready_input(m, job, *dataset, node) : std::nullopt;
    complete = start.model.has_value();
  }
  for (const DatasetName& dataset : job.job.data) {
    const Input* pinned = find_pin(job.job, dataset);
    if (pinned == nullptr) waits(m, job, dataset.str() + " has no snapshot on any reachable node");
    auto input = pinned != nullptr ? pinned_input(m, job, *pinned, node) : std::nullopt;
    if (input)
      start.data.push_back(*input);
    else
      complete = false;
  }
  return gather_files(m, job, start) && complete;
}

/// What is left of the job's time-out; failed right away if nothing is.
bool has_time_left(Machine& m, DesiredJob& job, StartAttempt& start) {
  if (!job.job.timeout) return true;
  Millis left = *job.job.timeout - job.ran;
  start.time_left = left;
  if (left > Millis{0}) return true;
  ExitRecord exit;
  exit.kind = ExitRecord::Kind::timed_out;
  exit.words = "it has run for " + std::to_string(job.ran.value / 1000) + " s in all";
  exit.ended = m.now.wall;
  end_placed(m, job, exit);
  return false;
}

/// The journal that this controller began with may lack the last attempts of the one before: their
/// generation is on the dataset. The placed one is over, however it ended.
bool was_overtaken(Machine& m, DesiredJob& job) {
  const Dataset* copy = m.fleet.copy(job.placed->node, job.dataset_uuid());
  auto there = copy != nullptr ? copy->generation() : std::nullopt;
  if (!there || *there <= job.placed->generation) return false;
  ExitRecord exit;
  exit.kind = ExitRecord::Kind::supervisor_lost;
  exit.words = "a later attempt was on " + job.placed->node.str() + " that the journal lacks";
  exit.ended = m.now.wall;
  end_placed(m, job, exit);
  return true;
}

}  // namespace

void start_placed(Machine& m, DesiredJob& job) {
  if (!prepare_home(m, job) || was_overtaken(m, job)) return;
  StartAttempt start;
  if (!gather_inputs(m, job, start) || !has_time_left(m, job, start)) return;
  start.job = job.job;
  if (job.begins) {  // until it has a checkpoint of its own
    start.job.env["ZED_CHECKPOINT"] = job.begins->name;
    start.job.env["ZED_CHECKPOINT_EPOCH"] = job.begins->epoch;
    start.job.env["ZED_CHECKPOINT_STEP"] = job.begins->step;
  }
  start.generation = job.placed->generation;
  start.timeline = job.timeline;
  start.number = job.placed->number;
  start.gpus = job.placed->gpus;
  if (job.job.requirement.share && job.job.requirement.vram)
    start.vram = job.job.requirement.vram->bytes();
  if (job.job.exclusive) {
    start.lease = m.lease;
    m.granted[job.job.id] = m.now.monotonic;
  }
  if (m.desired.applied)
    if (const DeclaredNode* declared = m.desired.applied->cluster.find_node(job.placed->node))
      start.run_as = declared->run_as;
  PlanStep step;
  step.node = job.placed->node;
  step.action = start;
  step.expect = m.expect(job.dataset_uuid(), job.timeline);
  step.why = job.placed->why;
  std::string need = "start:" + job.job.id.str() + ":" + job.placed->generation.str();
  m.steps.want(need, job.job.id, {step}, m.fleet, m.now.monotonic, m.ids, m.out);
  waits(m, job, "attempt " + std::to_string(start.number) + " is starting on " + step.node.str());
}

void grant_leases(Machine& m) {
  for (const auto& [id, node] : m.placed_jobs) {
    const DesiredJob* job = m.desired.find(id);
    if (!job->job.exclusive || visible_attempt(m, *job) == nullptr || !m.fleet.is_connected(node))
      continue;
    auto last = m.granted.find(id);
    if (last != m.granted.end() && m.now.monotonic - last->second < Millis{m.lease.value / 3})
      continue;
    m.granted[id] = m.now.monotonic;
    m.say(node, GrantLease{id, job->placed->generation, m.lease});
  }
}

}  // namespace zed::controller
