// The agents of the small fleet: what they are told, they have done at once.

#include <algorithm>

#include <gtest/gtest.h>

#include "controller/testing.hpp"

namespace zed::controller::testing {

void World::hear(FakeAgent& agent, const ControllerMessage& message) {
  if (agent.silent) return;
  if (auto* welcome = std::get_if<Welcome>(&message)) {
    agent.term = std::max(agent.term, welcome->term);
  } else if (auto* order = std::get_if<StepOrder>(&message)) {
    agent.orders.push_back(order->step);
    carry_out(agent, order->step);
  } else if (auto* ack = std::get_if<AckExit>(&message)) {
    std::erase_if(agent.attempts, [&](const Attempt& attempt) {
      return attempt.job == ack->job && attempt.generation == ack->generation;
    });
  } else if (auto* records = std::get_if<JournalRecords>(&message)) {
    if (agent.swallows.contains(std::string(JournalRecords::tag))) return;
    if (records->reset) agent.copy.clear();
    for (const std::string& record : records->records)
      agent.copy.push_back(record);
    agent.copy_seq = records->first_seq + records->records.size() - 1;
    agent.copy_term = records->term;
    say(agent, JournalStored{records->term, agent.copy_seq});
  } else if (auto* asked = std::get_if<AskNode>(&message)) {
    auto reply = agent.answers ? agent.answers(asked->question)
                               : fail(ErrorCode::unsupported, "this agent answers nothing");
    NodeAnswer answer;
    answer.request = asked->request;
    if (reply)
      answer.reply = *reply;
    else
      answer.error = reply.error();
    say(agent, answer);
  } else if (auto* tail = std::get_if<HandOver>(&message)) {
    agent.tails.push_back(*tail);
  } else if (auto* read = std::get_if<ReadLog>(&message)) {
    LogPage page;
    page.request = read->request;
    page.lines = {{now_.wall, false, "epoch 1"}};
    page.end = 8;
    say(agent, page);
  }
}

void World::done(FakeAgent& agent, const PlanStep& step, std::optional<Error> error,
                 std::optional<CheckpointId> snapshot) {
  say(agent, StepResult{step.id, std::move(error), snapshot, Bytes{}});
}

void World::changed(FakeAgent& agent, const Dataset& dataset) {
  say(agent, DatasetChanged{dataset, false, {}});
}

Snapshot& World::add_snapshot(FakeAgent& agent, Dataset& dataset, const std::string& name,
                              Properties properties) {
  Snapshot snapshot;
  snapshot.name = name;
  snapshot.id = CheckpointId{ids_.next()};
  snapshot.guid = next_txg_;
  snapshot.createtxg = next_txg_++;
  snapshot.created = now_.wall;
  snapshot.referenced = mebibytes(100);
  snapshot.properties = std::move(properties);
  if (auto given = snapshot.properties.find(property::id); given != snapshot.properties.end())
    snapshot.id = CheckpointId::parse(given->second).value();
  snapshot.properties[property::id] = snapshot.id.str();
  dataset.snapshots.push_back(snapshot);
  dataset.used = mebibytes(100);
  changed(agent, dataset);
  return dataset.snapshots.back();
}

/// Code is known by its content: here by what `contents` says of its folder.
void World::pack(FakeAgent& agent, const PlanStep& step, Dataset made) {
  const std::string& path = std::get<ImportFiles>(step.action).path;
  CheckpointId content;
  content.bytes[0] = contents.contains(path) ? contents.at(path) : std::uint8_t{1};
  made.name = code_dataset(content);
  made.uuid = DatasetId{content.bytes};
  made.properties[property::uuid] = content.str();
  const bool is_new = !agent.datasets.contains(made.name);
  Dataset& kept = agent.datasets.emplace(made.name, made).first->second;
  if (is_new) add_snapshot(agent, kept, "v1", {{property::id, content.str()}});
  done(agent, step, std::nullopt, content);
}

void World::carry_out(FakeAgent& agent, const PlanStep& step) {
  const std::string tag(tag_of(step.action));
  if (agent.swallows.contains(tag)) return;
  if (agent.refuses.contains(tag))
    return done(agent, step, Error{ErrorCode::io, "the disk is on fire", {}, {}});
  std::visit([&](const auto& action) { carry_out(agent, step, action); }, step.action);
}

void World::carry_out(FakeAgent& agent, const PlanStep& step, const CreateDataset& action) {
  Dataset made;
  made.name = action.dataset;
  made.properties = action.properties;
  made.uuid = DatasetId::parse(action.properties.at(property::uuid)).value();
  agent.datasets.emplace(made.name, made);
  changed(agent, agent.datasets.at(made.name));
  done(agent, step);
}

void World::carry_out(FakeAgent& agent, const PlanStep& step, const ImportFiles& action) {
  Dataset made;
  made.name = action.dataset;
  made.properties = action.properties;
  made.uuid = DatasetId::parse(action.properties.at(property::uuid)).value();
  if (action.dataset.str() == code_root) return pack(agent, step, std::move(made));
  Dataset& kept = agent.datasets.emplace(made.name, made).first->second;
  add_snapshot(agent, kept, action.snapshot_name, {});
  done(agent, step);
}

void World::carry_out(FakeAgent& agent, const PlanStep& step, const AdoptDataset& action) {
  auto moved = agent.datasets.extract(action.dataset);
  if (moved.empty()) return done(agent, step, Error{ErrorCode::not_found, "not there", {}, {}});
  Dataset kept = std::move(moved.mapped());
  if (action.to != kept.name) say(agent, DatasetRemoved{kept.name});
  kept.name = action.to;
  for (const auto& [key, value] : action.properties)
    kept.properties[key] = value;
  kept.uuid = DatasetId::parse(action.properties.at(property::uuid)).value();
  Dataset& here = agent.datasets[kept.name] = std::move(kept);
  if (here.snapshots.empty() && !action.snapshot_name.empty())
    add_snapshot(agent, here, action.snapshot_name, {{property::id, action.snapshot.str()}});
  changed(agent, here);
  done(agent, step);
}

void World::carry_out(FakeAgent& agent, const PlanStep& step, const SetHome& action) {
  Dataset& here = agent.datasets.at(action.dataset);
  here.properties[property::home] = action.home.str();
  changed(agent, here);
  done(agent, step);
}

void World::carry_out(FakeAgent& agent, const PlanStep& step, const SetProperties& action) {
  Dataset& here = agent.datasets.at(action.dataset);
  for (const auto& [key, value] : action.changes)
    if (value)
      here.properties[key] = *value;
    else
      here.properties.erase(key);
  changed(agent, here);
  done(agent, step);
}

void World::carry_out(FakeAgent& agent, const PlanStep& step, const Destroy& action) {
  if (action.snapshots.empty()) {
    agent.datasets.erase(action.dataset);
    say(agent, DatasetRemoved{action.dataset});
    return done(agent, step);
  }
  Dataset& here = agent.datasets.at(action.dataset);
  const auto& doomed = action.snapshots;
  std::erase_if(here.snapshots, [&](const Snapshot& snapshot) {
    return std::find(doomed.begin(), doomed.end(), snapshot.id) != doomed.end();
  });
  changed(agent, here);
  done(agent, step);
}

// What changes nothing that a controller is told of.
void World::carry_out(FakeAgent& agent, const PlanStep& step, const SendSnapshot&) {
  done(agent, step);
}
void World::carry_out(FakeAgent& agent, const PlanStep& step, const SendToHost&) {
  done(agent, step);
}
void World::carry_out(FakeAgent& agent, const PlanStep& step, const AskCheckpoint&) {
  done(agent, step);
}

void World::carry_out(FakeAgent& agent, const PlanStep& step, const StartAttempt& action) {
  auto found = agent.datasets.find(action.job.dataset);
  bool fits = found != agent.datasets.end() && found->second.timeline() == action.timeline &&
              found->second.property(property::home) == agent.name.str() &&
              (!found->second.generation() || *found->second.generation() < action.generation);
  for (const Attempt& other : agent.attempts)
    for (const std::string& gpu : action.gpus)
      if (other.phase != AttemptPhase::ended &&
          std::find(other.gpus.begin(), other.gpus.end(), gpu) != other.gpus.end()) {
        ADD_FAILURE() << "GPU " << gpu << " given twice";
        fits = false;
      }
  if (!fits) return done(agent, step, Error{ErrorCode::stale, "not what was expected", {}, {}});
  found->second.properties[property::generation] = action.generation.str();
  changed(agent, found->second);
  Attempt attempt;
  attempt.job = action.job.id;
  attempt.generation = action.generation;
  attempt.timeline = action.timeline;
  attempt.number = action.number;
  attempt.dataset = action.job.dataset;
  attempt.gpus = action.gpus;
  attempt.phase = AttemptPhase::running;
  agent.attempts.push_back(attempt);
  say(agent, AttemptReport{attempt});
  done(agent, step);
}

void World::end_attempt(FakeAgent& agent, Attempt& attempt, ExitRecord exit) {
  Dataset& here = agent.datasets.at(attempt.dataset);
  Snapshot& closing = add_snapshot(agent, here, "closing-" + std::to_string(attempt.number),
                                   {{property::closing, std::string(to_string(exit.kind))},
                                    {property::timeline, attempt.timeline.str()},
                                    {property::generation, attempt.generation.str()}});
  attempt.phase = AttemptPhase::ended;
  attempt.exit = exit;
  attempt.closing_snapshot = closing.id;
  say(agent, AttemptReport{attempt});
}

void World::carry_out(FakeAgent& agent, const PlanStep& step, const StopAttempt& action) {
  for (Attempt& attempt : agent.attempts) {
    if (attempt.job != action.job || attempt.generation > action.generation ||
        attempt.phase == AttemptPhase::ended)
      continue;
    ExitRecord exit;
    exit.kind =
        action.mode == StopMode::cancel ? ExitRecord::Kind::cancelled : ExitRecord::Kind::stopped;
    exit.words = "stopped: " + action.reason;
    end_attempt(agent, attempt, exit);
  }
  done(agent, step);
}

void World::carry_out(FakeAgent& agent, const PlanStep& step, const ApplyFork& action) {
  Dataset& here = agent.datasets.at(action.dataset);
  if (here.timeline() == action.fork.timeline) return done(agent, step);
  if (here.timeline() > action.fork.timeline)
    return done(agent, step, Error{ErrorCode::stale, "on a newer timeline", {}, {}});
  if (here.timeline() != action.fork.left)
    return done(agent, step, Error{ErrorCode::stale, "on another timeline", {}, {}});
  auto from = std::find_if(here.snapshots.begin(), here.snapshots.end(), [&](const Snapshot& s) {
    return action.fork.from && s.id == *action.fork.from;
  });
  bool is_behind = action.fork.from && from == here.snapshots.end();
  if (is_behind && action.home == agent.name)
    return done(agent, step, Error{ErrorCode::not_found, "bring it here first", {}, {}});
  if (!is_behind) {
    auto beyond = from == here.snapshots.end() ? here.snapshots.begin() : from + 1;
    if (beyond != here.snapshots.end() && !action.fork.discard) {
      Dataset branch = here;
      branch.uuid = action.branch_uuid;
      branch.name = testing::dataset(here.name.parent() + "/" +
                                     branch_leaf(here.name.leaf(), action.fork.left));
      branch.properties[property::uuid] = branch.uuid.str();
      branch.properties[property::type] = "branch";
      branch.properties[property::branch_of] = here.uuid.str();
      branch.snapshots.assign(beyond, here.snapshots.end());
      changed(agent, agent.datasets.insert_or_assign(branch.name, branch).first->second);
    }
    here.snapshots.erase(beyond, here.snapshots.end());
  }
  here.properties[property::timeline] = action.fork.timeline.str();
  here.properties[property::home] = action.home.str();
  std::string& lineage = here.properties[property::lineage];
  lineage += (lineage.empty() ? "" : ",") + action.fork.timeline.str() + "@" +
             (action.fork.from ? action.fork.from->str() : "start");
  here.properties.erase(property::checkpoint);
  here.properties.erase(property::reverted);
  if (const Snapshot* newest = here.newest_checkpoint())
    here.properties[property::checkpoint] = "@" + newest->name;
  changed(agent, here);
  done(agent, step);
}

void World::carry_out(FakeAgent& agent, const PlanStep& step, const FollowHome& action) {
  Dataset& here = agent.datasets.at(action.dataset);
  auto common = std::find_if(here.snapshots.begin(), here.snapshots.end(),
                             [&](const Snapshot& s) { return s.id == action.common; });
  const bool nothing = action.common.is_nil();
  if (common == here.snapshots.end() && !nothing)
    return done(agent, step, Error{ErrorCode::conflict, "nothing in common", {}, {}});
  Dataset branch = here;
  branch.uuid = action.branch_uuid;
  branch.name =
      testing::dataset(here.name.parent() + "/" + branch_leaf(here.name.leaf(), *here.timeline()));
  branch.properties[property::type] = "branch";
  branch.properties[property::branch_of] = here.uuid.str();
  auto beyond = nothing ? here.snapshots.begin() : common + 1;
  branch.snapshots.assign(beyond, here.snapshots.end());
  here.snapshots.erase(beyond, here.snapshots.end());
  here.properties.erase(property::timeline);
  changed(agent, agent.datasets.insert_or_assign(branch.name, branch).first->second);
  changed(agent, here);
  done(agent, step);
}

void World::carry_out(FakeAgent& agent, const PlanStep& step, const ReceiveSnapshot& action) {
  FakeAgent& source = agents_.at(action.ticket.source);
  auto sent = source.datasets.find(action.ticket.dataset);
  const Snapshot* snapshot =
      sent == source.datasets.end() ? nullptr : sent->second.find(action.ticket.snapshot);
  if (source.silent || snapshot == nullptr)
    return done(agent, step, Error{ErrorCode::unavailable, "the source is away", {}, {}});
  Dataset& here = agent.datasets[action.ticket.target_dataset];
  bool stale = !here.name.empty() && here.timeline() && sent->second.timeline() &&
               *here.timeline() != action.ticket.timeline;
  stale = stale || (here.newest() != nullptr && action.ticket.base != here.newest()->id);
  if (stale) return done(agent, step, Error{ErrorCode::stale, "another timeline", {}, {}});
  if (here.property(property::home) == agent.name.str())
    return done(agent, step, Error{ErrorCode::refused, "this is its home", {}, {}});
  here.name = action.ticket.target_dataset;
  here.uuid = action.ticket.uuid;
  here.readonly = true;
  here.properties = sent->second.properties;
  for (const auto& [key, value] : action.dataset_properties)
    here.properties[key] = value;
  here.snapshots.push_back(*snapshot);
  here.used = sent->second.used;
  changed(agent, here);
  done(agent, step, {}, snapshot->id);
}

}  // namespace zed::controller::testing
