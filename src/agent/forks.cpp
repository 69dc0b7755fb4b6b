// Carrying out forks: first the transfers and processes of the dataset end, then the moves of
// fork_plan.hpp, one effect after the other, each followed by another look at the store.

#include <algorithm>

#include "agent/fork_plan.hpp"
#include "agent/matters.hpp"

namespace zed::agent {
namespace {

constexpr std::int64_t patience = 5;  // failed moves until the controller (or hello) hears of it
constexpr Millis longest_wait = seconds(30);
constexpr Millis quiet_patience = minutes(10);
constexpr int most_moves = 4096;  // a discard destroys one snapshot a move

/// One intent on its way.
struct Run {
  Turn turn;
  Intent intent;
  std::shared_ptr<void> mark;        ///< the branch is half done while this lives
  std::function<void(Status)> told;  ///< called once: with the end, or when patience is over
  std::int64_t failures = 0;
  int moves = 0;
  void tell(Status status) {
    if (auto then = std::exchange(told, {})) then(std::move(status));
  }
};
using RunPointer = std::shared_ptr<Run>;

void advance(Machine& m, const RunPointer& run);

/// An intent once written is always finished: a failure is told, and tried again.
void failed(Machine& m, const RunPointer& run, const Error& error) {
  ++run->failures;
  if (run->failures == 1 || !is_retryable(error.code))
    m.notice(run->intent.dataset.str(), "the fork waits: " + error.describe());
  if (run->failures >= patience || !is_retryable(error.code)) run->tell(fail(error));
  std::int64_t wait = 200 * (std::int64_t{1} << std::min<std::int64_t>(run->failures - 1, 10));
  m.after(std::min(Millis{wait}, longest_wait), [&m, run] { advance(m, run); });
}

Result<std::optional<Dataset>> seen(StoreResult reply) {
  auto dataset = reply_as<Dataset>(std::move(reply));
  if (dataset) return std::optional<Dataset>(std::move(*dataset));
  if (dataset.error().code == ErrorCode::not_found) return std::optional<Dataset>();
  return fail(dataset.error());
}

void mirror(Machine& m, const DatasetName& name, const std::optional<Dataset>& dataset) {
  if (dataset)
    learn(m, *dataset);
  else
    forget(m, name);
}

void finished(Machine& m, const RunPointer& run, const ForkSight& sight) {
  mirror(m, run->intent.dataset, sight.main);
  mirror(m, run->intent.branch, sight.branch);
  run->tell({});
}

/// Something that is kept stands on what is to be discarded: an older branch begins there, or a
/// person holds it. The rest of the branch stays with it; the fork itself is done.
bool stands_on_it(const Error& error) {
  return error.code == ErrorCode::busy;
}

void tell_of_rest(Machine& m, const DatasetName& branch, const Error& error) {
  m.notice(branch.str(), "is not destroyed altogether: " + error.describe());
}

void move(Machine& m, const RunPointer& run, const ForkSight& sight) {
  auto next = next_move(run->intent, sight);
  if (!next) return failed(m, run, next.error());
  if (!next->request) return finished(m, run, sight);
  if (++run->moves > most_moves)
    return failed(m, run,
                  Error{ErrorCode::busy, "the store does not get on with the fork", {}, ""});
  const bool discards = next->stage == ForkStage::discard;
  m.call(*next->request, [&m, run, discards, sight](StoreResult reply) {
    if (!reply && discards && stands_on_it(reply.error())) {
      tell_of_rest(m, run->intent.branch, reply.error());
      return finished(m, run, sight);
    }
    // Somebody may have been faster, or an effect came through whose result was lost: the next look
    // at the store tells.
    if (!reply && reply.error().code != ErrorCode::not_found &&
        reply.error().code != ErrorCode::exists)
      return failed(m, run, reply.error());
    if (!reply && ++run->failures >= patience) return failed(m, run, reply.error());
    if (reply) run->failures = 0;
    advance(m, run);
  });
}

void advance(Machine& m, const RunPointer& run) {
  m.call(env::InspectDataset{run->intent.dataset}, [&m, run](StoreResult reply) {
    auto main = seen(std::move(reply));
    if (!main) return failed(m, run, main.error());
    m.call(env::InspectDataset{run->intent.branch}, [&m, run, main = *main](StoreResult other) {
      auto branch = seen(std::move(other));
      if (!branch) return failed(m, run, branch.error());
      move(m, run, ForkSight{main, *branch});
    });
  });
}

void run_intent(Machine& m, Turn turn, Intent intent, std::function<void(Status)> told) {
  auto run = std::make_shared<Run>();
  run->turn = std::move(turn);
  run->intent = std::move(intent);
  run->told = std::move(told);
  auto mark = m.branches_to_be.insert(run->intent.branch);
  run->mark = std::shared_ptr<void>(nullptr, [&m, mark](void*) {
    m.touched[*mark] = ++m.turn_clock;
    m.branches_to_be.erase(mark);
  });
  advance(m, run);
}

// ---- from an order ----

std::set<DatasetName> taken_names(const Machine& m) {
  std::set<DatasetName> taken;
  for (const auto& [name, dataset] : m.datasets)
    taken.insert(name);
  return taken;
}

using Planner = std::function<Result<ForkPlan>(const Dataset&)>;

struct Order {
  Step step;
  Turn turn;
  Planner plan;
  DatasetId branch_uuid;
  bool discard = false;
  bool snapshotted = false;    ///< the live files are the newest snapshot's by now
  std::shared_ptr<void> mark;  ///< the dataset counts as forking while this lives
};
using OrderPointer = std::shared_ptr<Order>;

void look(Machine& m, const OrderPointer& order);

void look_again(Machine& m, const OrderPointer& order, StoreResult reply) {
  if (!reply) return order->step->fail(reply.error());
  look(m, order);
}

/// A fork that was done before, but for its discard.
void finish_discard(Machine& m, const OrderPointer& order) {
  const Dataset* branch = nullptr;
  for (const auto& [name, dataset] : m.datasets)
    if (dataset.uuid == order->branch_uuid && order->discard) branch = &dataset;
  if (branch == nullptr) {
    auto step = order->step;
    return refresh(m, order->turn->dataset(), [order, step] { step->succeed(); });
  }
  DatasetName name = branch->name;
  env::StoreRequest request = env::DestroyDataset{name};
  if (const Snapshot* newest = branch->newest())
    request = env::DestroySnapshot{SnapshotName{name, newest->name}};
  m.call(std::move(request), [&m, order, name](StoreResult reply) {
    if (!reply && stands_on_it(reply.error())) {
      tell_of_rest(m, name, reply.error());
      return refresh(m, order->turn->dataset(), [order] { order->step->succeed(); });
    }
    if (!reply && reply.error().code != ErrorCode::not_found)
      return order->step->fail(reply.error());
    refresh(m, name, [&m, order] { finish_discard(m, order); });
  });
}

struct PlanFollower {
  Machine& m;
  const OrderPointer& order;
  const Dataset& there;

  void operator()(const ForkIsDone&) const { finish_discard(m, order); }

  void operator()(const ForkKeepsAll& keep) const {
    DatasetName name = there.name;
    // Readonly first: whoever sees the new timeline may rely on it.
    m.call(env::SetReadonly{name, true}, [&machine = m, o = order, name, keep](StoreResult reply) {
      if (!reply) return o->step->fail(reply.error());
      machine.call(env::SetDatasetProperties{name, keep.changes},
                   [&machine, o](StoreResult set) { look_again(machine, o, std::move(set)); });
    });
  }

  void operator()(const ForkNeedsSnapshot&) const {
    order->snapshotted = true;
    std::string word = "closed-" + there.timeline().value_or(Timeline{}).brief() + "-fork";
    for (int n = 2; there.find(word) != nullptr; ++n)
      word =
          "closed-" + there.timeline().value_or(Timeline{}).brief() + "-fork." + std::to_string(n);
    Properties properties{{property::id, m.new_checkpoint_id().str()},
                          {property::job, there.uuid.str()},
                          {property::closing, "fork"},
                          {property::timeline, there.property(property::timeline)}};
    m.call(env::SetReadonly{there.name, true}, [&machine = m, o = order, name = there.name, word,
                                                properties](StoreResult reply) {
      if (!reply) return o->step->fail(reply.error());
      machine.call(env::TakeSnapshot{SnapshotName{name, word}, properties},
                   [&machine, o](StoreResult taken) { look_again(machine, o, std::move(taken)); });
    });
  }

  void operator()(const ForkRevertsFiles&) const {
    order->snapshotted = true;
    m.call(env::RevertLive{there.name}, [&machine = m, o = order](StoreResult done) {
      look_again(machine, o, std::move(done));
    });
  }

  void operator()(const Intent& intent) const {
    m.call(env::SetDatasetProperties{there.name, {{property::intent, intent_text(intent)}}},
           [&machine = m, o = order, intent](StoreResult written) {
             if (!written) return o->step->fail(written.error());
             follow(machine, o, intent);
           });
  }

  static void follow(Machine& machine, const OrderPointer& order, const Intent& intent) {
    run_intent(machine, order->turn, intent, [order](Status status) {
      if (status)
        order->step->succeed();
      else
        order->step->fail(status.error());
    });
  }
};

void plan_and_go(Machine& m, const OrderPointer& order, const Dataset& there) {
  if (std::string text = there.property(property::intent); !text.empty()) {
    auto unfinished = parse_intent(text);
    if (!unfinished) return order->step->fail(unfinished.error());
    return run_intent(m, order->turn, *unfinished, [&m, order](Status status) {
      if (!status) return order->step->fail(status.error());
      look(m, order);
    });
  }
  Dataset seen_now = there;
  // Readonly and just snapshotted: a store that cannot tell calls it changed all the same.
  if (order->snapshotted) seen_now.changed = false;
  auto plan = order->plan(seen_now);
  if (!plan) return order->step->fail(plan.error());
  std::visit(PlanFollower{m, order, there}, *plan);
}

void look(Machine& m, const OrderPointer& order) {
  DatasetName name = order->turn->dataset();
  m.call(env::InspectDataset{name}, [&m, order](StoreResult reply) {
    auto there = reply_as<Dataset>(std::move(reply));
    if (!there) return order->step->fail(there.error());
    if (auto allowed = may_write(m, *there); !allowed) return order->step->fail(allowed.error());
    if (!there->receiving) return plan_and_go(m, order, *there);
    m.call(env::AbortReceive{there->name},
           [&m, order](StoreResult dropped) { look_again(m, order, std::move(dropped)); });
  });
}

OrderPointer make_order(Machine& m, const Step& step, Turn turn) {
  auto order = std::make_shared<Order>();
  DatasetName name = turn->dataset();
  m.forking.insert(name);
  order->mark = std::shared_ptr<void>(nullptr, [&m, name](void*) { m.forking.erase(name); });
  order->step = step;
  order->turn = std::move(turn);
  if (const auto* fork = std::get_if<ApplyFork>(&step->step().action)) {
    order->branch_uuid = fork->branch_uuid;
    order->discard = fork->fork.discard;
    order->plan = [&m, action = *fork](const Dataset& there) {
      return plan_fork(action, there, m.name, taken_names(m));
    };
  } else {
    const auto& follow = std::get<FollowHome>(step->step().action);
    order->plan = [&m, action = follow](const Dataset& there) {
      return plan_follow(action, there, taken_names(m));
    };
  }
  return order;
}

bool is_done_already(const Machine& m, const PlanStep& step, const DatasetName& name) {
  const auto* fork = std::get_if<ApplyFork>(&step.action);
  auto known = m.datasets.find(name);
  if (fork == nullptr || known == m.datasets.end()) return false;
  return known->second.uuid == fork->uuid && known->second.timeline() == fork->fork.timeline;
}

/// Whether nothing uses the dataset any more; asks what does to end.
bool is_quiet(Machine& m, const WaitingFork& waiting) {
  // A repeated order for a fork that is done must not stop the attempt that came after it.
  if (is_done_already(m, waiting.step->step(), waiting.dataset)) return true;
  bool quiet = end_transfers(m, waiting.dataset, "its timeline is being left");
  if (LiveAttempt* live = m.live_attempt_on(waiting.dataset)) {
    quiet = false;
    stop_live(m, *live, StopMode::halt, "its timeline is being left");
  }
  return quiet;
}

void wait_for_quiet(Machine& m, const Step& step, const DatasetName& dataset, Instant since) {
  constexpr std::size_t most_forks = 256;
  if (m.waiting_forks.size() >= most_forks)
    return step->fail(ErrorCode::busy, "too many forks wait here", "try again");
  m.waiting_forks.push_back({step, dataset, since});
}

void begin_fork(Machine& m, const WaitingFork& waiting) {
  Step step = waiting.step;
  DatasetName dataset = waiting.dataset;
  bool queued = m.take_turn(dataset, [&m, waiting, step, dataset](Turn turn) {
    // Something may have begun between the wait and the turn.
    if (!is_quiet(m, waiting)) return wait_for_quiet(m, step, dataset, waiting.since);
    look(m, make_order(m, step, std::move(turn)));
  });
  if (!queued) step->fail(ErrorCode::busy, "too many steps wait for it", "try again");
}

void settle_start(Machine& m) {
  if (m.unfinished_forks > 0 || m.ready) return;
  m.ready = true;
  greet(m);
}

}  // namespace

void apply_fork(Machine& m, const Step& step, const ApplyFork& action) {
  wait_for_quiet(m, step, action.dataset, m.now.monotonic);
}

void follow_home(Machine& m, const Step& step, const FollowHome& action) {
  wait_for_quiet(m, step, action.dataset, m.now.monotonic);
}

void advance_forks(Machine& m) {
  std::vector<WaitingFork> still;
  std::vector<WaitingFork> go;
  for (const WaitingFork& waiting : std::exchange(m.waiting_forks, {})) {
    bool quiet = is_quiet(m, waiting);
    if (!quiet && m.now.monotonic - waiting.since > quiet_patience)
      waiting.step->fail(ErrorCode::busy, waiting.dataset.str() + " does not come to rest",
                         "a transfer or an attempt of it does not end; it is tried again");
    else
      (quiet ? go : still).push_back(waiting);
  }
  m.waiting_forks.insert(m.waiting_forks.end(), still.begin(), still.end());
  for (const WaitingFork& waiting : go)
    begin_fork(m, waiting);
}

void resume_intents(Machine& m) {
  std::vector<Intent> intents;
  for (const auto& [name, dataset] : m.datasets) {
    std::string text = dataset.property(property::intent);
    if (text.empty()) continue;
    auto intent = parse_intent(text);
    if (intent)
      intents.push_back(*intent);
    else
      m.notice(name.str(), intent.error().describe());
  }
  m.unfinished_forks = intents.size();
  for (const Intent& intent : intents)
    m.take_turn(intent.dataset, [&m, intent](Turn turn) {
      m.forking.insert(intent.dataset);
      run_intent(m, std::move(turn), intent, [&m, name = intent.dataset](Status) {
        m.forking.erase(name);
        --m.unfinished_forks;
        settle_start(m);
      });
    });
  settle_start(m);
}

}  // namespace zed::agent
