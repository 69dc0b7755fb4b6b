#include "sim/faults.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sim/world.hpp"

namespace zed::sim {
namespace {

using Kind = Fault::Kind;

struct Weight {
  Kind kind;
  std::int64_t weight;
};

// How often each is drawn, relative to the others.
constexpr Weight weights[] = {
    {Kind::rollback, 12},
    {Kind::rollback_discard, 4},
    {Kind::rollback_hold, 3},
    {Kind::resume_from, 5},
    {Kind::resume_from_on, 5},
    {Kind::resume_newest, 8},
    {Kind::resume_on, 5},
    {Kind::stop, 6},
    {Kind::cancel, 2},
    {Kind::checkpoint, 3},
    {Kind::drain, 4},
    {Kind::hand_snapshot, 3},
    {Kind::hand_destroy, 3},
    {Kind::hand_rollback, 4},
    {Kind::hand_set, 2},
    {Kind::crash_agent, 8},
    {Kind::crash_agent_at_effect, 10},
    {Kind::crash_agent_in_fork, 10},
    {Kind::crash_machine, 9},
    {Kind::lose_disk, 1},
    {Kind::crash_controller, 6},
    {Kind::crash_controller_at_effect, 8},
    {Kind::take_over, 2},
    {Kind::cut, 8},
    {Kind::isolate, 9},
    {Kind::slow_network, 4},
    {Kind::slow_store, 4},
    {Kind::full_store, 3},
    {Kind::store_errors, 8},
    {Kind::kill_supervisor, 5},
    {Kind::clock_jump, 3},
};

Kind draw_kind(Random& random) {
  std::int64_t total = 0;
  for (const Weight& entry : weights)
    total += entry.weight;
  std::int64_t drawn = random.between(1, total);
  for (const Weight& entry : weights)
    if ((drawn -= entry.weight) <= 0) return entry.kind;
  return Kind::rollback;
}

bool is_repeatable(Kind kind) {
  return kind != Kind::lose_disk && kind != Kind::take_over;
}

}  // namespace

std::string Fault::str() const {
  return fmt::format("{:>8.3f} {} subject {} detail {} lasts {} ms",
                     static_cast<double>(at.value) / 1000, to_string(kind), subject, detail,
                     lasts.value);
}

std::vector<Fault> draw_faults(std::uint64_t seed, std::size_t, std::size_t jobs, Millis during) {
  Random random(seed, "faults");
  std::vector<Fault> faults;
  for (std::size_t job = 0; job < jobs; ++job)
    faults.push_back({random.millis(3000, 15000), Kind::dispatch, job, 0, Millis{0}});
  const std::int64_t count = random.between(2, 20);
  std::set<Kind> drawn;
  for (std::int64_t i = 0; i < count; ++i) {
    Fault fault;
    fault.kind = draw_kind(random);
    if (!is_repeatable(fault.kind) && !drawn.insert(fault.kind).second) continue;
    fault.at = random.millis(5000, during.value);
    fault.subject = random.next() % 1000;
    fault.detail = random.next() % 1000;
    fault.lasts = random.chance(300) ? random.millis(30000, 70000) : random.millis(500, 15000);
    faults.push_back(fault);
  }
  std::stable_sort(faults.begin(), faults.end(),
                   [](const Fault& a, const Fault& b) { return a.at < b.at; });
  return faults;
}

}  // namespace zed::sim
