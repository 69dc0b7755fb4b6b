// What each fault does to a world.

#include <fmt/format.h>

#include "sim/faults.hpp"
#include "sim/hand.hpp"
#include "sim/world.hpp"

namespace zed::sim {
namespace {

using Kind = Fault::Kind;

class Striker {
public:
  Striker(World& world, const Fault& fault) : world_(world), fault_(fault) {}

  void strike() {
    world_.schedule.note("fault: " + fault_.str());
    if (fault_.kind <= Kind::drain)
      ask_people();
    else if (fault_.kind <= Kind::hand_set)
      use_hands();
    else if (fault_.kind <= Kind::take_over)
      break_programs();
    else
      break_surroundings();
  }

private:
  std::size_t machine() const { return fault_.subject % world_.machine_count(); }
  std::size_t other() const { return fault_.detail % world_.machine_count(); }
  std::size_t job() const { return fault_.subject % world_.job_count(); }
  bool odd() const { return fault_.detail % 2 == 1; }
  void later(std::function<void()> undo) {
    world_.schedule.after(fault_.lasts, "fault over", std::move(undo));
  }

  void ask_people() {
    Operator& people = world_.people;
    switch (fault_.kind) {
    case Kind::dispatch: people.dispatch(job()); break;
    case Kind::rollback: people.rollback(job(), fault_.detail, false, false, odd()); break;
    case Kind::rollback_discard: people.rollback(job(), fault_.detail, true, false, false); break;
    case Kind::rollback_hold: people.rollback(job(), fault_.detail, false, true, false); break;
    case Kind::resume_from: people.resume(job(), fault_.detail, "", odd()); break;
    case Kind::resume_from_on:
      people.resume(job(), fault_.detail, world_.machine(other()).name.str(), false);
      break;
    case Kind::resume_newest: people.resume_newest(job()); break;
    case Kind::resume_on: people.resume_on(job(), world_.machine(other()).name.str()); break;
    case Kind::stop: people.stop(job()); break;
    case Kind::cancel: people.cancel(job()); break;
    case Kind::checkpoint: people.checkpoint(job()); break;
    case Kind::drain:
      people.node_duty(machine(), api::NodeDuty::drain);
      later([this_world = &world_, m = machine()] {
        this_world->people.node_duty(m, api::NodeDuty::uncordon);
      });
      break;
    default: break;
    }
  }

  void use_hands() {
    switch (fault_.kind) {
    case Kind::hand_snapshot: hand_snapshot(world_, machine(), job()); break;
    case Kind::hand_destroy: hand_destroy(world_, machine(), job(), fault_.detail); break;
    case Kind::hand_rollback: hand_rollback(world_, machine(), job(), fault_.detail); break;
    case Kind::hand_set: hand_set(world_, machine(), job()); break;
    default: break;
    }
  }

  void break_programs() {
    World* world = &world_;
    const std::size_t m = machine();
    switch (fault_.kind) {
    case Kind::crash_agent:
      world_.crash_agent(m);
      later([world, m] { world->start_agent(m); });
      break;
    case Kind::crash_agent_at_effect:
    case Kind::crash_agent_in_fork: set_crash_point(); break;
    case Kind::crash_machine:
      if (world_.machine(m).up) {
        world_.crash_machine(m);
        later([world, m] { world->boot_machine(m); });
      }
      break;
    case Kind::lose_disk: world_.lose_disk(m); break;
    case Kind::crash_controller:
      if (auto controller = world_.newest_controller()) {
        const std::size_t at = controller->machine_index();
        world_.crash_controller(controller->run());
        world_.schedule.after(Millis{fault_.lasts.value / 3}, "controller restarts",
                              [world, at] { world->start_controller(at); });
      }
      break;
    case Kind::crash_controller_at_effect:
      if (auto controller = world_.newest_controller()) {
        controller->crash_after_effects(static_cast<std::int64_t>(fault_.detail % 40));
        const std::size_t at = controller->machine_index();
        world_.schedule.after(fault_.lasts + seconds(5), "controller restarts",
                              [world, at] { world->start_controller(at); });
      }
      break;
    case Kind::take_over: world_.people_take_over(); break;
    default: break;
    }
  }

  void set_crash_point() {
    World* world = &world_;
    const std::size_t m = machine();
    if (!world_.machine(m).agent) return;
    CrashPoint point;
    point.only_store_changes = fault_.kind == Kind::crash_agent_in_fork;
    point.only_in_fork = point.only_store_changes;
    point.before = odd();
    point.effects_left =
        static_cast<std::int64_t>((fault_.detail / 2) % (point.only_store_changes ? 12 : 60));
    world_.machine(m).agent->set_crash_point(point);
    // Whoever notices starts it again.
    world_.schedule.after(fault_.lasts + seconds(10), "agent restarts",
                          [world, m] { world->start_agent(m); });
  }

  void break_surroundings() {
    World* world = &world_;
    const std::size_t m = machine();
    const std::size_t o = other();
    switch (fault_.kind) {
    case Kind::cut:
      world_.network.cut(m, o);
      later([world, m, o] { world->network.join(m, o); });
      break;
    case Kind::isolate:
      for (std::size_t i = 0; i < world_.machine_count(); ++i)
        world_.network.cut(m, i);
      later([world, m] {
        for (std::size_t i = 0; i < world->machine_count(); ++i)
          world->network.join(m, i);
      });
      break;
    case Kind::slow_network:
      world_.network.be_slow(true);
      later([world] { world->network.be_slow(false); });
      break;
    case Kind::slow_store:
      world_.machine(m).slow = true;
      later([world, m] { world->machine(m).slow = false; });
      break;
    case Kind::full_store:
      world_.machine(m).disk.be_full(true);
      later([world, m] { world->machine(m).disk.be_full(false); });
      break;
    case Kind::store_errors:
      world_.machine(m).disk.fail_at_random(world_.seed() + fault_.detail);
      later([world, m] { world->machine(m).disk.fail_no_more(); });
      break;
    case Kind::kill_supervisor:
      for (const auto& job : world_.machine(m).live_jobs())
        job->lose_supervisor();
      break;
    case Kind::clock_jump:
      world_.machine(m).wall_offset_ms += odd() ? 3'600'000 : -3'600'000;
      break;
    default: break;
    }
  }

  World& world_;
  Fault fault_;
};

}  // namespace

void schedule_faults(World& world, const std::vector<Fault>& faults) {
  for (const Fault& fault : faults)
    world.schedule.after(fault.at - Millis{world.schedule.now().ms}, "fault",
                         [&world, fault] { Striker(world, fault).strike(); });
}

}  // namespace zed::sim
