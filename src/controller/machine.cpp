#include "controller/machine.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace zed::controller {
namespace {

/// The job that a record is about; nil for the others.
struct Subject {
  JobId operator()(const Submitted& r) const { return r.job.id; }
  JobId operator()(const Placed& r) const { return r.job; }
  JobId operator()(const Forked& r) const { return r.fork.fork.job; }
  JobId operator()(const Moved& r) const { return r.job; }
  JobId operator()(const WantedSet& r) const { return r.job; }
  JobId operator()(const AttemptOver& r) const { return r.job; }
  JobId operator()(const Finished& r) const { return r.job; }
  JobId operator()(const FirstCheckpoint& r) const { return r.job; }
  JobId operator()(const InputsPinned& r) const { return r.job; }
  JobId operator()(const JobKept& r) const { return r.job.job.id; }
  JobId operator()(const Evicted& r) const { return r.job; }
  JobId operator()(const TermBegan&) const { return {}; }
  JobId operator()(const Forgotten&) const { return {}; }
  JobId operator()(const Uploaded&) const { return {}; }
  JobId operator()(const ExpirySet&) const { return {}; }
  JobId operator()(const ExpiryAnnounced&) const { return {}; }
  JobId operator()(const Proposed&) const { return {}; }
  JobId operator()(const Joined&) const { return {}; }
  JobId operator()(const DutySet&) const { return {}; }
  JobId operator()(const SecondChosen&) const { return {}; }
  JobId operator()(const Applied&) const { return {}; }
  JobId operator()(const Compacted&) const { return {}; }
};

}  // namespace

std::uint64_t Machine::record(const Record& record) {
  std::uint64_t seq = journal.append(encode_record(record), out);
  fold(desired, record, seq);
  fleet.stamp(desired.revision, now.wall);
  JobId job = std::visit(Subject{}, record);
  if (job.is_nil()) return seq;
  until_durable.emplace(seq, job);
  reindex_job(*this, job);
  return seq;
}

bool Machine::has_second() const {
  return !desired.second.empty() && !fleet.is_lost(desired.second);
}

bool Machine::is_firm(std::uint64_t seq) const {
  return journal.is_durable(seq) && (journal.is_stored(seq) || !has_second());
}

NodeName Machine::files_node() const {
  bool named = desired.applied && !desired.applied->from_node.empty();
  return named ? desired.applied->from_node : home_machine;
}

Generation Machine::next_generation() {
  return {term, desired.counter + 1};
}

void Machine::wake(Instant at, const JobId& job) {
  timers.emplace(at, job);
}

void Machine::avoid(const JobId& job, const NodeName& node, std::string why) {
  constexpr Millis for_a_while = minutes(5);
  Instant until = now.monotonic + for_a_while;
  avoided[job][node] = Avoided{std::move(why), until};
  wake(until, job);
}

bool Machine::avoids(const JobId& job, const NodeName& node) const {
  auto nodes = avoided.find(job);
  if (nodes == avoided.end()) return false;
  auto found = nodes->second.find(node);
  return found != nodes->second.end() && now.monotonic < found->second.until;
}

void Machine::tell(std::string kind, std::string subject, std::string text) {
  events.add(std::move(kind), std::move(subject), std::move(text), now.wall, out);
}

void Machine::tell_once(const std::string& key, std::string kind, std::string subject,
                        std::string text) {
  constexpr std::size_t most_keys = 20'000;
  if (told.size() >= most_keys) told.clear();
  if (told.insert(key).second) tell(std::move(kind), std::move(subject), std::move(text));
}

void Machine::say(const NodeName& node, ControllerMessage message) {
  if (auto link = fleet.link_of(node)) out.push_back(SayToAgent{*link, std::move(message)});
}

void Machine::answer(RequestId request, Result<Value> result) {
  out.push_back(Answer{request, std::move(result)});
}

Expect Machine::expect(std::optional<DatasetId> uuid, std::optional<Timeline> timeline) const {
  return {term, uuid, timeline, std::nullopt};
}

void Machine::step_down(const ControllerTerm& higher, Error error, bool has_lost_journal) {
  if (over) return;
  over = true;
  for (const auto& entry : waiting)
    answer(entry.first, fail(ErrorCode::unavailable, "this controller ends: " + error.message,
                             "ask the controller that follows it"));
  waiting.clear();
  out.push_back(StepDown{higher, std::move(error), has_lost_journal});
}

bool Machine::is_copy_awaited() const {
  constexpr Millis patience = seconds(3);
  return !copy_is_seen && !desired.second.empty() && desired.second != home_machine &&
         now.monotonic - started_at < std::min(patience, lost_after);
}

void reindex_job(Machine& m, const JobId& id) {
  const DesiredJob* job = m.desired.find(id);
  if (job == nullptr) return;
  auto placed = m.placed_jobs.find(id);
  if (placed != m.placed_jobs.end()) {
    m.placed_on[placed->second].erase(id);
    m.placed_jobs.erase(placed);
  }
  if (job->placed) {
    m.placed_jobs[id] = job->placed->node;
    m.placed_on[job->placed->node].insert(id);
    bool share = job->job.requirement.share && job->job.requirement.vram.has_value();
    Bytes vram = share ? job->job.requirement.vram->bytes() : Bytes{};
    m.fleet.reserve({job->placed->node, id, job->placed->gpus, share, vram});
    m.moves.erase(id);
    m.holds.erase(id);
  } else {
    m.fleet.release(id);
    m.place_due = true;  // what it held is free
  }
  bool wants_place = job->wanted == Wanted::run && !job->is_over() &&
                     (!job->placed || m.fleet.is_lost(job->placed->node));
  if (wants_place) {
    m.pending.add(*job);
    m.place_due = true;
  } else {
    m.pending.remove(id);
    m.holds.erase(id);  // its reservation went above
    m.asked_for_room.erase(id);
    m.data_waits.erase(id);
  }
  if (job->is_over()) {
    m.moves.erase(id);
    m.waits_for.erase(id);
    m.not_before.erase(id);
    m.avoided.erase(id);
  }
  m.look_at(id);
}

}  // namespace zed::controller
