#include "sim/run.hpp"

#include <algorithm>

#include "sim/invariants.hpp"
#include "sim/world.hpp"

namespace zed::sim {
namespace {

constexpr std::uint64_t most_events = 3'000'000;

/// Everything that can be mended is.
void make_peace(World& world) {
  world.network.heal_all();
  for (std::size_t m = 0; m < world.machine_count(); ++m) {
    Machine& machine = world.machine(m);
    machine.slow = false;
    machine.disk.be_full(false);
    machine.disk.fail_no_more();
    if (machine.agent) machine.agent->set_crash_point({});
    if (machine.up)
      world.start_agent(m);
    else
      world.boot_machine(m);
    world.people.node_duty(m, api::NodeDuty::uncordon);
  }
  for (const auto& controller : world.controllers())
    controller->crash_after_effects(-1);
  world.revive_a_controller();
}

bool all_over(World& world) {
  auto newest = world.newest_controller();
  if (!newest || newest->durable().jobs.empty()) return false;
  const auto& jobs = newest->durable().jobs;
  return std::all_of(jobs.begin(), jobs.end(),
                     [](const auto& entry) { return entry.second.is_over(); });
}

std::size_t count_succeeded(World& world) {
  auto newest = world.newest_controller();
  if (!newest) return 0;
  const auto& jobs = newest->durable().jobs;
  return static_cast<std::size_t>(std::count_if(jobs.begin(), jobs.end(), [](const auto& entry) {
    return entry.second.outcome && entry.second.outcome->state == JobState::succeeded;
  }));
}

/// False once an invariant broke.
bool run_until(World& world, Invariants& invariants, Instant end, Ending& ending,
               const std::function<bool()>& enough) {
  while (world.schedule.step(end)) {
    if (auto wrong = invariants.check()) {
      ending.violation = std::move(wrong);
      return false;
    }
    if (world.schedule.happened() > most_events) {
      ending.violation = "liveness: the fleet never comes to rest (too many events)";
      return false;
    }
    if (enough && world.schedule.happened() % 512 == 0 && enough()) return true;
  }
  return true;
}

}  // namespace

Story story_of(std::uint64_t seed, Planted planted) {
  Random random(seed, "story");
  Story story;
  story.seed = seed;
  story.planted = planted;
  story.machines = static_cast<std::size_t>(random.between(2, 5));
  // Now and then more than there are GPUs: a queue.
  story.jobs =
      static_cast<std::size_t>(random.chance(200) ? random.between(4, 7) : random.between(1, 3));
  story.controller_machine = random.index(story.machines);
  story.trouble = random.millis(40'000, 150'000);
  story.faults = draw_faults(seed, story.machines, story.jobs, story.trouble);
  return story;
}

Ending play(const Story& story, const TraceSink& trace) {
  World world({story.seed,
               story.machines,
               story.jobs,
               story.planted,
               story.controller_machine,
               std::nullopt,
               {}});
  if (trace) world.schedule.trace_to(trace);
  Invariants invariants(world);
  schedule_faults(world, story.faults);
  Ending ending;
  const Instant war{story.trouble.value + 80'000};
  bool fine = run_until(world, invariants, war, ending, nullptr);
  if (fine) {
    world.schedule.note("---- peace ----");
    make_peace(world);
    const Instant end = war + story.peace;
    // A little longer after the last job's end: what follows it must hold as well.
    fine = run_until(world, invariants, end, ending, [&] { return all_over(world); });
    if (fine)
      fine = run_until(world, invariants, std::min(end, world.schedule.now() + seconds(60)), ending,
                       nullptr);
  }
  if (fine) ending.violation = invariants.check_liveness();
  ending.at = world.schedule.now();
  ending.trace_hash = world.schedule.trace_hash();
  ending.events = world.schedule.happened();
  ending.jobs_over = count_succeeded(world);
  return ending;
}

std::string invariant_of(const Ending& ending) {
  return ending.violation ? ending.violation->substr(0, ending.violation->find(':')) : "";
}

Story shrink(const Story& story, const std::string& invariant, std::size_t tries) {
  Story best = story;
  std::size_t parts = 2;
  while (best.faults.size() > 1 && tries > 0) {
    const std::size_t size = (best.faults.size() + parts - 1) / parts;
    bool smaller = false;
    for (std::size_t from = 0; from < best.faults.size() && tries > 0; from += size) {
      Story less = best;
      const auto begin = less.faults.begin() + static_cast<std::ptrdiff_t>(from);
      less.faults.erase(
          begin, begin + static_cast<std::ptrdiff_t>(std::min(size, best.faults.size() - from)));
      --tries;
      if (invariant_of(play(less)) != invariant) continue;
      best = std::move(less);
      smaller = true;
      break;
    }
    if (smaller)
      parts = std::max<std::size_t>(2, parts - 1);
    else if (size == 1)
      break;
    else
      parts = std::min(best.faults.size(), parts * 2);
  }
  return best;
}

}  // namespace zed::sim
