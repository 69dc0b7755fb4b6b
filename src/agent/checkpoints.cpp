// Checkpoints: what a job asks for, what it is asked for, and commits of jobs that do not speak.
//
// A commit is one compare-and-commit of the store against the generation, the timeline and the
// newest checkpoint that this agent knows, so nothing is read first; a store that disagrees says
// `stale` and nothing happened.

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "agent/matters.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "core/hand_rollback.hpp"

namespace zed::agent {
namespace {

constexpr std::size_t most_requests = 32;        // of one attempt, under way
constexpr std::size_t remembered_answers = 256;  // of one attempt
constexpr std::size_t most_askers = 64;
constexpr std::size_t most_metric_properties = 32;
constexpr std::size_t longest_metrics = 1024;
constexpr std::size_t longest_property_name = 64;
constexpr Millis freeze_patience = seconds(10);
constexpr Millis timed_patience = seconds(60);
constexpr int most_names_tried = 3;
constexpr char request_property[] = "request";

struct Wish {
  env::CheckpointRequest request;
  bool has_deadline = true;
  bool numbered = true;  ///< a job's own request; else of a frozen job
  int tries = 0;
};

using Committed = std::function<void(Result<Snapshot>)>;

// ---- what a checkpoint is called and carries ----

std::string snapshot_word(const Dataset& there, const Wish& wish, std::uint64_t seq) {
  const auto& request = wish.request;
  std::string word = request.epoch  ? "epoch-" + std::to_string(*request.epoch)
                     : request.step ? "step-" + std::to_string(*request.step)
                                    : "ckpt-" + std::to_string(seq);
  if (there.find(word) == nullptr) return word;
  word += "." + std::to_string(seq);
  if (there.find(word) == nullptr) return word;
  // A person took this name as well: any free one will do.
  for (int n = 2;; ++n)
    if (std::string other = word + "." + std::to_string(n); there.find(other) == nullptr)
      return other;
}

bool is_metric_property(std::string_view name, const Properties& taken) {
  if (name.empty() || name.size() > longest_property_name) return false;
  if (taken.count(std::string(name)) > 0) return false;
  constexpr std::array reserved{
      "type",      "uuid",       "name",    "home",    "status", "intent", "lineage", "parent",
      "branch_of", "checkpoint", "closing", "metrics", "epoch",  "step",   "seq",     "request"};
  if (std::find(reserved.begin(), reserved.end(), name) != reserved.end()) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
  });
}

/// "0.5", "NaN": shortest, and what a person would write.
std::string text_of(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
  std::array<char, 40> text{};
  auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  return {text.data(), end};
}

void add_metrics(Properties& properties, const std::map<std::string, double>& metrics) {
  if (metrics.empty()) return;
  Value all = Value::map();
  std::size_t size = 2;
  std::size_t own = 0;
  for (const auto& [name, number] : metrics) {
    size += name.size() + to_json(Value(number)).size() + 6;
    if (size <= longest_metrics) all.set(name, number);  // the rest is in the metrics file
    if (own == most_metric_properties || !is_metric_property(name, properties)) continue;
    properties[name] = text_of(number);
    ++own;
  }
  properties[property::metrics] = to_json(all);
}

Properties checkpoint_properties(const LiveAttempt& live, const Wish& wish, CheckpointId id,
                                 std::uint64_t seq, const Snapshot* parent) {
  const auto& request = wish.request;
  Properties properties{{property::id, id.str()},
                        {property::job, live.attempt.job.str()},
                        {property::seq, std::to_string(seq)},
                        {property::timeline, live.attempt.timeline.str()},
                        {property::generation, live.attempt.generation.str()}};
  if (parent != nullptr) properties[property::parent] = parent->id.str();
  if (request.epoch) properties[property::epoch] = std::to_string(*request.epoch);
  if (request.step) properties[property::step] = std::to_string(*request.step);
  if (wish.numbered) properties[request_property] = std::to_string(request.number);
  add_metrics(properties, request.metrics);
  add_origins(properties, live.launch);
  return properties;
}

// ---- the commit ----

void committed(Machine& m, const AttemptKey& key, const Snapshot& snapshot) {
  LiveAttempt* live = m.find_attempt(key);
  if (live == nullptr) return;
  live->attempt.last_checkpoint = snapshot.id;
  if (live->every) live->next_timed = m.now.monotonic + *live->every;
  for (const LiveAttempt::Asker& asker : std::exchange(live->askers, {}))
    asker.step->succeed(snapshot.id);
}

void back_to_running(Machine& m, const AttemptKey& key) {
  LiveAttempt* live = m.find_attempt(key);
  if (live != nullptr && live->attempt.phase == AttemptPhase::checkpointing)
    set_phase(m, *live, AttemptPhase::running);
}

/// Why the attempt may not commit now, if it may not.
Status may_commit(const Machine& m, const LiveAttempt* live, const Wish& wish) {
  if (live == nullptr || !live->has_processes())
    return fail(ErrorCode::stale, "this attempt is not the current one any more");
  if (!m.listed) return fail(ErrorCode::unavailable, "the agent has just started", "ask again");
  if (live->outrun) return fail(ErrorCode::stale, "the job's dataset was rolled back by hand");
  if (m.is_forking(live->attempt.dataset))
    return fail(ErrorCode::stale, "the job's timeline is being left");
  if (live->stopping && live->stopping->mode != StopMode::stop)
    return fail(ErrorCode::cancelled, "the job is being stopped: " + live->stopping->reason);
  if (wish.has_deadline && wish.request.deadline < m.now.monotonic)
    return fail(ErrorCode::timeout, "the deadline of the request is over",
                "nothing was committed; ask again");
  return {};
}

void commit_in_turn(Machine& m, const Turn& turn, const AttemptKey& key, Wish wish, Committed done);

void commit_failed(Machine& m, const Turn& turn, const AttemptKey& key, Wish wish, Committed done,
                   Error error) {
  bool look = error.code == ErrorCode::stale || error.code == ErrorCode::exists ||
              error.code == ErrorCode::not_found;
  if (!look) return done(fail(std::move(error)));
  refresh(m, turn->dataset(), [&m, turn, key, wish, done, error]() mutable {
    bool again = error.code == ErrorCode::exists && ++wish.tries < most_names_tried;
    if (again) return commit_in_turn(m, turn, key, wish, done);
    done(fail(error));
  });
}

env::CommitRequest commit_request(Machine& m, const LiveAttempt& live, const Dataset& there,
                                  const Wish& wish) {
  const Snapshot* parent = there.newest_checkpoint();
  std::uint64_t seq = parent != nullptr ? *parent->seq() + 1 : 1;
  env::CommitRequest request;
  request.dataset = there.name;
  request.uuid = there.uuid;
  request.generation = live.attempt.generation;
  request.timeline = live.attempt.timeline;
  if (parent != nullptr) request.parent = parent->id;
  request.snapshot = snapshot_word(there, wish, seq);
  request.snapshot_properties =
      checkpoint_properties(live, wish, m.new_checkpoint_id(), seq, parent);
  request.dataset_changes = {{property::checkpoint, "@" + request.snapshot}};
  return request;
}

void commit_in_turn(Machine& m, const Turn& turn, const AttemptKey& key, Wish wish,
                    Committed done) {
  LiveAttempt* live = m.find_attempt(key);
  if (auto allowed = may_commit(m, live, wish); !allowed) return done(fail(allowed.error()));
  auto there = m.datasets.find(turn->dataset());
  if (there == m.datasets.end())
    return done(fail(ErrorCode::not_found, "no dataset " + turn->dataset().str()));
  if (live->attempt.phase == AttemptPhase::running)
    set_phase(m, *live, AttemptPhase::checkpointing);
  env::CommitRequest request = commit_request(m, *live, there->second, wish);
  std::string word = request.snapshot;
  m.call(env::CommitCheckpoint{std::move(request)},
         [&m, turn, key, wish, done, word](StoreResult reply) {
           auto snapshot = reply_as<Snapshot>(std::move(reply));
           if (!snapshot) return commit_failed(m, turn, key, wish, done, snapshot.error());
           auto known = m.datasets.find(turn->dataset());
           if (known != m.datasets.end()) {
             Dataset after = known->second;
             after.snapshots.push_back(*snapshot);
             after.properties[property::checkpoint] = "@" + word;
             learn(m, std::move(after));
           }
           committed(m, key, *snapshot);
           done(std::move(snapshot));
         });
}

// ---- a job's own requests ----

void answer(Machine& m, JobConnection connection, env::CheckpointReply reply) {
  m.emit(AnswerJob{connection, std::move(reply)});
}

env::CheckpointReply reply_of(std::uint64_t number, Result<Snapshot> result, Millis took) {
  env::CheckpointReply reply;
  reply.number = number;
  reply.seq = result ? result->seq().value_or(0) : 0;
  reply.result = std::move(result);
  reply.took = took;
  return reply;
}

void answered(Machine& m, const AttemptKey& key, env::CheckpointReply reply) {
  LiveAttempt* live = m.find_attempt(key);
  if (live == nullptr) return;
  auto asking = live->asking.extract(reply.number);
  if (!asking.empty())
    for (JobConnection connection : asking.mapped())
      answer(m, connection, reply);
  // Only a success is remembered: after a failure the job may ask again under the same number.
  if (!reply.result) return;
  live->answer_order.push_back(reply.number);
  live->answers.insert_or_assign(reply.number, std::move(reply));
  if (live->answer_order.size() <= remembered_answers) return;
  live->answers.erase(live->answer_order.front());
  live->answer_order.pop_front();
}

/// What an earlier run of the agent committed for this number.
const Snapshot* find_committed(const Machine& m, const LiveAttempt& live, std::uint64_t number) {
  auto there = m.datasets.find(live.attempt.dataset);
  if (there == m.datasets.end()) return nullptr;
  auto is = [](const Snapshot& s, const char* name, const std::string& value) {
    auto found = s.properties.find(name);
    return found != s.properties.end() && found->second == value;
  };
  for (const Snapshot& snapshot : there->second.snapshots)
    if (is(snapshot, property::generation, live.attempt.generation.str()) &&
        is(snapshot, request_property, std::to_string(number)))
      return &snapshot;
  return nullptr;
}

/// Whether the request was answered, or joined one that is under way.
bool is_repeated(Machine& m, LiveAttempt& live, const CheckpointAsked& event) {
  std::uint64_t number = event.request.number;
  if (auto before = live.answers.find(number); before != live.answers.end()) {
    answer(m, event.connection, before->second);
    return true;
  }
  if (auto under_way = live.asking.find(number); under_way != live.asking.end()) {
    if (under_way->second.size() < most_requests) under_way->second.push_back(event.connection);
    return true;
  }
  if (const Snapshot* snapshot = find_committed(m, live, number)) {
    answer(m, event.connection, reply_of(number, *snapshot, {}));
    return true;
  }
  return false;
}

// ---- jobs that do not speak ----

void thaw(Machine& m, const AttemptKey& key) {
  m.emit(FreezeProcesses{key.job, key.generation, false, 0});
  if (LiveAttempt* live = m.find_attempt(key)) live->timed_under_way = false;
}

void frozen_commit_ended(Machine& m, const AttemptKey& key, const Result<Snapshot>& result) {
  thaw(m, key);
  back_to_running(m, key);
  if (LiveAttempt* live = m.find_attempt(key); live != nullptr && !result)
    m.notice(live->attempt.dataset.str(),
             "no checkpoint by the clock: " + result.error().describe());
}

void freeze_in_turn(Machine& m, const Turn& turn, const AttemptKey& key) {
  LiveAttempt* live = m.find_attempt(key);
  Wish wish;
  wish.has_deadline = false;
  wish.numbered = false;
  if (!may_commit(m, live, wish)) {
    if (live != nullptr) live->timed_under_way = false;
    return;
  }
  EffectId id = m.expect_status([&m, turn, key, wish](Status frozen) {
    if (!frozen) return frozen_commit_ended(m, key, fail(frozen.error()));
    commit_in_turn(m, turn, key, wish,
                   [&m, key](Result<Snapshot> result) { frozen_commit_ended(m, key, result); });
  });
  m.emit(FreezeProcesses{key.job, key.generation, true, id});
  m.after(freeze_patience, [&m, key, id] {
    if (m.status_calls.erase(id) == 0) return;
    frozen_commit_ended(m, key, fail(ErrorCode::timeout, "the job's processes do not freeze"));
  });
}

/// Crash-consistent: freeze, commit, thaw.
void commit_frozen(Machine& m, LiveAttempt& live) {
  if (live.timed_under_way) return;
  AttemptKey key = live.key();
  live.timed_under_way =
      m.take_turn(live.attempt.dataset, [&m, key](Turn turn) { freeze_in_turn(m, turn, key); });
}

void ask_or_freeze(Machine& m, LiveAttempt& live, Instant deadline, const std::string& reason) {
  if (live.connection)
    m.emit(AskJob{*live.connection, env::Ask::checkpoint, deadline, reason});
  else
    commit_frozen(m, live);
}

std::int64_t leading_number(const std::string& text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

std::string text_of(const CheckpointPolicy& policy) {
  auto amount = [](std::int64_t n, const char* unit) {
    return std::to_string(n) + " " + unit + (n == 1 ? "" : "s");
  };
  switch (policy.unit) {
  case CheckpointPolicy::Unit::explicit_only: return "";
  case CheckpointPolicy::Unit::epochs: return amount(policy.count, "epoch");
  case CheckpointPolicy::Unit::steps: return amount(policy.count, "step");
  case CheckpointPolicy::Unit::time: break;
  }
  if (policy.every.value % 60000 == 0) return amount(policy.every.value / 60000, "minute");
  return amount(std::max<std::int64_t>(1, policy.every.value / 1000), "second");
}

std::optional<Millis> period_of(const std::string& text) {
  std::int64_t number = leading_number(text);
  constexpr std::int64_t longest = 60 * 24 * 366;
  if (number <= 0 || number > longest * 60) return std::nullopt;
  if (text.find(" minute") != std::string::npos) return minutes(std::min(number, longest));
  if (text.find(" second") != std::string::npos) return seconds(number);
  return std::nullopt;
}

void job_connected(Machine& m, const JobConnected& event) {
  LiveAttempt* live = m.find_attempt({event.job, event.generation});
  if (live == nullptr || !live->has_processes()) return;
  live->connection = event.connection;
  if (live->stopping) {
    if (!live->stopping->signalled)
      m.emit(
          AskJob{event.connection, env::Ask::stop, live->stopping->next, live->stopping->reason});
    return;
  }
  for (const LiveAttempt::Asker& asker : live->askers)
    m.emit(AskJob{event.connection, env::Ask::checkpoint, asker.deadline,
                  std::get<AskCheckpoint>(asker.step->step().action).reason});
}

void job_disconnected(Machine& m, JobConnection connection) {
  for (auto& [key, live] : m.attempts)
    if (live.connection == connection) live.connection.reset();
}

void checkpoint_asked(Machine& m, const CheckpointAsked& event) {
  const env::CheckpointRequest& request = event.request;
  auto refuse = [&](tl::unexpected<Error> why) {
    answer(m, event.connection, reply_of(request.number, std::move(why), {}));
  };
  AttemptKey key{event.job, request.generation};
  LiveAttempt* live = m.find_attempt(key);
  if (live == nullptr)
    return refuse(fail(ErrorCode::stale, "generation " + request.generation.brief() +
                                             " is not the job's current one"));
  if (is_repeated(m, *live, event)) return;
  Wish wish;
  wish.request = request;
  if (auto allowed = may_commit(m, live, wish); !allowed) return refuse(fail(allowed.error()));
  if (live->asking.size() >= most_requests)
    return refuse(fail(ErrorCode::busy, "too many checkpoints are being asked for at once"));
  live->asking[request.number] = {event.connection};
  Instant began = m.now.monotonic;
  std::uint64_t number = request.number;
  Committed done = [&m, key, number, began](Result<Snapshot> result) {
    answered(m, key, reply_of(number, std::move(result), m.now.monotonic - began));
    back_to_running(m, key);
  };
  bool queued = m.take_turn(live->attempt.dataset, [&m, key, wish, done](Turn turn) {
    commit_in_turn(m, turn, key, wish, done);
  });
  if (!queued) done(fail(ErrorCode::busy, "the job's dataset is busy"));
}

void ask_checkpoint(Machine& m, const Step& step, const AskCheckpoint& action) {
  LiveAttempt* live = m.find_attempt({action.job, action.generation});
  if (live == nullptr || !live->has_processes())
    return step->fail(ErrorCode::stale, "that attempt does not run here");
  if (live->askers.size() >= most_askers)
    return step->fail(ErrorCode::busy, "too many wait for a checkpoint of this job");
  Instant deadline = m.now.monotonic + action.within;
  live->askers.push_back({step, deadline});
  ask_or_freeze(m, *live, deadline, action.reason);
}

void tick_checkpoints(Machine& m) {
  for (auto& [key, live] : m.attempts) {
    auto late = std::stable_partition(
        live.askers.begin(), live.askers.end(),
        [&](const LiveAttempt::Asker& asker) { return m.now.monotonic < asker.deadline; });
    for (auto it = late; it != live.askers.end(); ++it)
      it->step->fail(ErrorCode::timeout, "the job committed no checkpoint in time");
    live.askers.erase(late, live.askers.end());
    bool due = live.every && live.attempt.phase == AttemptPhase::running &&
               live.next_timed <= m.now.monotonic;
    if (!due) continue;
    live.next_timed = m.now.monotonic + *live.every;
    ask_or_freeze(m, live, m.now.monotonic + timed_patience, "checkpoint_every");
  }
}

void end_checkpoints(Machine& m, LiveAttempt& live) {
  for (const LiveAttempt::Asker& asker : std::exchange(live.askers, {}))
    asker.step->fail(ErrorCode::stale, "the attempt ended without another checkpoint");
  live.connection.reset();
  static_cast<void>(m);
}

bool was_rolled_back(const Machine& m, const Dataset& dataset) {
  if (dataset.property(property::type) != "job") return false;
  if (dataset.property(property::home) != m.name.str()) return false;
  return was_rolled_back_by_hand(dataset);
}

void stop_outrun(Machine& m, const Dataset& dataset) {
  if (m.told_rolled_back.insert(dataset.name).second) {
    const std::string to = dataset.property(property::reverted);
    m.notice(dataset.name.str(),
             to.empty() ? "rolled back by hand: " + dataset.property(property::checkpoint) +
                              " is gone; the job goes on from what is left"
                        : "rolled back by hand to " + to + "; the job goes on from there");
  }
  LiveAttempt* live = m.live_attempt_on(dataset.name);
  if (live == nullptr || !live->has_processes()) return;
  live->outrun = true;
  stop_live(m, *live, StopMode::halt, "rolled back by hand");
}

}  // namespace zed::agent
