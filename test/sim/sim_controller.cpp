#include "sim/sim_controller.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sim/describe_events.hpp"
#include "sim/world.hpp"

namespace zed::sim {

SimController::SimController(World& world, std::size_t machine, std::uint64_t run)
    : world_(world), machine_(machine), run_(run),
      random_(world.seed(), "controller run " + std::to_string(run)),
      ids_(std::make_unique<SeededIds>(world.seed(), "controller ids " + std::to_string(run))),
      state_(std::make_unique<controller::State>(*ids_)) {}

Machine& SimController::machine() {
  return world_.machine(machine_);
}

void SimController::start() {
  const JournalDisk& journal = machine().disk.journal;
  controller::Started started;
  started.id = ControllerId{ids_->next()};
  started.machine = machine().name;
  started.records = journal.records;
  started.last_seq = journal.last_seq;
  started.lease = seconds(12);  // short enough to end within a story
  started.highest_term = world_.highest_term_seen_from(machine_);
  std::uint64_t seq = journal.last_seq - journal.records.size();
  for (const std::string& record : journal.records)
    fold_one(record, ++seq);
  durable_seq_ = journal.last_seq;
  hear(started);
  tick();
}

void SimController::tick() {
  if (dead_) return;
  hear(controller::Tick{});
  world_.schedule.after(random_.millis(200, 500), "controller tick", [weak = weak_from_this()] {
    if (auto self = weak.lock()) self->tick();
  });
}

void SimController::hear(const controller::Event& event) {
  if (dead_) return;
  if (world_.schedule.tracing()) {
    if (std::string text = describe(event); !text.empty())
      world_.schedule.note(fmt::format("controller@{} <- {}", machine().name.str(), text));
  }
  perform_all(controller::on(*state_, event, machine().now()));
}

void SimController::ask(api::Request operation, Answered answered) {
  if (dead_) return;
  const std::uint64_t number = next_request_++;
  asked_.emplace(number, std::move(answered));
  hear(controller::Requested{number, std::move(operation), {"uid 1000", "socket"}});
}

void SimController::perform_all(std::vector<controller::Effect> effects) {
  for (controller::Effect& effect : effects) {
    if (world_.schedule.tracing()) {
      if (std::string text = describe(effect); !text.empty())
        world_.schedule.note(fmt::format("controller@{} -> {}", machine().name.str(), text));
    }
    if (auto* say = std::get_if<controller::SayToAgent>(&effect)) {
      if (auto* order = std::get_if<StepOrder>(&say->message)) {
        keep_nothing(order->step);
        note_order(order->step);
      }
      outbox_.push_back(std::move(*say));
      in_a_moment([this] { say_next(); });
    } else if (auto* close = std::get_if<controller::CloseLink>(&effect)) {
      in_a_moment([this, link = close->link] { world_.network.close_from_controller(link); });
    } else if (auto* record = std::get_if<controller::WriteJournal>(&effect)) {
      in_a_moment([this, record = std::move(*record)]() mutable { write(std::move(record)); });
    } else if (auto* compaction = std::get_if<controller::CompactJournal>(&effect)) {
      in_a_moment([this, compaction = std::move(*compaction)]() mutable {
        compact(std::move(compaction));
      });
    } else if (auto* answer = std::get_if<controller::Answer>(&effect)) {
      in_a_moment([this, answer = std::move(*answer)] {
        auto node = asked_.extract(answer.request);
        if (!node.empty() && node.mapped()) node.mapped()(answer.result);
      });
    } else if (std::holds_alternative<controller::StepDown>(effect)) {
      in_a_moment([this] { world_.crash_controller(run_); });
    }
  }
}

void SimController::in_a_moment(std::function<void()> perform) {
  world_.schedule.after(random_.millis(0, 2), "controller effect",
                        [weak = weak_from_this(), perform = std::move(perform)] {
                          auto self = weak.lock();
                          if (!self || self->dead_) return;
                          if (self->crash_in_ >= 0 && --self->crash_in_ < 0) {
                            self->world_.schedule.note("controller killed between effects");
                            self->world_.crash_controller(self->run_);
                            return;
                          }
                          perform();
                        });
}

void SimController::say_next() {
  if (outbox_.empty()) return;
  controller::SayToAgent say = std::move(outbox_.front());
  outbox_.pop_front();
  if (world_.planted() == Planted::never_retries) {
    const auto* order = std::get_if<StepOrder>(&say.message);
    const auto* begin = order ? std::get_if<StartAttempt>(&order->step.action) : nullptr;
    if (begin != nullptr && begin->number > 1) return;
  }
  world_.network.to_agent(say.link, std::move(say.message));
}

/// A planted bug: `keep` takes the newest checkpoint along.
void SimController::keep_nothing(PlanStep& step) {
  auto* destroy = std::get_if<Destroy>(&step.action);
  if (world_.planted() != Planted::greedy_keep || destroy == nullptr) return;
  const auto& held = state_->view().datasets.at(step.node);
  auto copy = held.find(destroy->dataset);
  if (copy != held.end())
    if (const Snapshot* newest = copy->second.newest_checkpoint())
      destroy->snapshots.push_back(newest->id);
}

void SimController::note_order(const PlanStep& step) {
  History& history = world_.history;
  if (const auto* start = std::get_if<StartAttempt>(&step.action)) {
    if (!ordered_.insert({start->job.id, start->generation}).second) return;
    OrderedStart order{
        start->job.id,        start->generation, start->timeline, step.expect.term, 0,
        world_.schedule.now()};
    order.machine = world_.machine_named(step.node).value_or(0);
    if (world_.planted() == Planted::abandoned_start) {
      auto forks = history.forks.find(start->job.id);
      if (forks != history.forks.end()) order.timeline = forks->second.back().fork.left;
    }
    history.ordered.push_back(order);
  } else if (const auto* fork = std::get_if<ApplyFork>(&step.action)) {
    auto& known = history.forks[fork->fork.job];
    if (std::none_of(known.begin(), known.end(), [&](const KnownFork& k) {
          return k.fork.timeline == fork->fork.timeline && k.fork.left == fork->fork.left;
        }))
      known.push_back({fork->fork, step.expect.term, world_.schedule.now()});
  } else if (const auto* destroy = std::get_if<Destroy>(&step.action)) {
    history.pruned.push_back({destroy->uuid, world_.machine_named(step.node).value_or(0),
                              destroy->snapshots, step.expect.newest});
    for (const CheckpointId& id : destroy->snapshots)
      history.may_be_gone.insert(id);
  }
}

void SimController::write(controller::WriteJournal&& effect) {
  unwritten_[effect.seq] = std::move(effect.record);
  if (syncing_) return;
  syncing_ = true;
  world_.schedule.after(random_.millis(1, machine().slow ? 800 : 15), "fsync",
                        [weak = weak_from_this()] {
                          if (auto self = weak.lock(); self && !self->dead_) self->sync();
                        });
}

void SimController::sync() {
  syncing_ = false;
  if (machine().disk.full && !unwritten_.empty()) {
    const std::uint64_t last = unwritten_.rbegin()->first;
    unwritten_.clear();
    hear(controller::JournalWritten{last, fail(ErrorCode::no_space, "the disk is full")});
    return;
  }
  const std::uint64_t before = machine().disk.journal.last_seq;
  while (!unwritten_.empty() && unwritten_.begin()->first == machine().disk.journal.last_seq + 1) {
    auto node = unwritten_.extract(unwritten_.begin());
    append(node.key(), std::move(node.mapped()));
  }
  const std::uint64_t seq = machine().disk.journal.last_seq;
  if (seq != before) hear(controller::JournalWritten{seq, Status{}});
}

void SimController::append(std::uint64_t seq, std::string record) {
  JournalDisk& journal = machine().disk.journal;
  fold_one(record, seq);
  journal.records.push_back(std::move(record));
  journal.last_seq = seq;
  durable_seq_ = seq;
  world_.journal_grew(machine_, durable_);
}

void SimController::fold_one(const std::string& record, std::uint64_t seq) {
  auto decoded = controller::decode_record(record);
  if (!decoded) {
    world_.broken = "a journal record does not read: " + decoded.error().describe();
    return;
  }
  controller::fold(durable_, *decoded, seq);
}

void SimController::compact(controller::CompactJournal&& effect) {
  JournalDisk& journal = machine().disk.journal;
  if (machine().disk.full) {
    hear(controller::JournalWritten{effect.seq, fail(ErrorCode::no_space, "the disk is full")});
    return;
  }
  journal.records = effect.records;
  journal.last_seq = effect.seq;
  durable_ = {};
  std::uint64_t seq = effect.seq - effect.records.size();
  for (const std::string& record : effect.records)
    fold_one(record, ++seq);
  durable_seq_ = effect.seq;
  unwritten_.erase(unwritten_.begin(), unwritten_.upper_bound(effect.seq));
  world_.journal_grew(machine_, durable_);
  world_.schedule.after(random_.millis(1, 20), "compacted", [weak = weak_from_this(), effect] {
    if (auto self = weak.lock()) self->hear(controller::JournalWritten{effect.seq, Status{}});
  });
}

void SimController::die() {
  if (dead_) return;
  dead_ = true;
  // What was written and not fsynced is there up to any record; a torn last one is dropped at the
  // next start, as if it had never been written.
  while (!unwritten_.empty() && unwritten_.begin()->first == machine().disk.journal.last_seq + 1 &&
         random_.chance(500)) {
    auto node = unwritten_.extract(unwritten_.begin());
    append(node.key(), std::move(node.mapped()));
  }
  unwritten_.clear();
  asked_.clear();
}

}  // namespace zed::sim
