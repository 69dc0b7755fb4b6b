#pragma once
// What goes wrong in a run, and what people do meanwhile: a list drawn from the seed, so that a
// failing run can be shrunk by leaving entries out.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/enum.hpp"
#include "base/units.hpp"

namespace zed::sim {

class World;

struct Fault {
  enum class Kind {
    // people
    dispatch,
    rollback,
    rollback_discard,
    rollback_hold,
    resume_from,
    resume_from_on,
    resume_newest,
    resume_on,
    stop,
    cancel,
    checkpoint,
    drain,
    // people with their own zfs commands
    hand_snapshot,
    hand_destroy,
    hand_rollback,
    hand_set,
    // faults
    crash_agent,
    crash_agent_at_effect,
    crash_agent_in_fork,
    crash_machine,
    lose_disk,
    crash_controller,
    crash_controller_at_effect,
    take_over,
    cut,
    isolate,
    slow_network,
    slow_store,
    full_store,
    store_errors,
    kill_supervisor,
    clock_jump,
  };
  Millis at;
  Kind kind = Kind::dispatch;
  std::uint64_t subject = 0;  ///< job or machine, modulo their number
  std::uint64_t detail = 0;   ///< checkpoint, other machine, effect: drawn large, used modulo
  Millis lasts;               ///< until it is undone; 0: at once

  std::string str() const;
};
constexpr auto enum_names(Fault::Kind) {
  return std::array<std::string_view, 32>{"dispatch",
                                          "rollback",
                                          "rollback-discard",
                                          "rollback-hold",
                                          "resume-from",
                                          "resume-from-on",
                                          "resume-newest",
                                          "resume-on",
                                          "stop",
                                          "cancel",
                                          "checkpoint",
                                          "drain",
                                          "hand-snapshot",
                                          "hand-destroy",
                                          "hand-rollback",
                                          "hand-set",
                                          "crash-agent",
                                          "crash-agent-at-effect",
                                          "crash-agent-in-fork",
                                          "crash-machine",
                                          "lose-disk",
                                          "crash-controller",
                                          "crash-controller-at-effect",
                                          "take-over",
                                          "cut",
                                          "isolate",
                                          "slow-network",
                                          "slow-store",
                                          "full-store",
                                          "store-errors",
                                          "kill-supervisor",
                                          "clock-jump"};
}

/// The faults of a seed, by time. The first entries submit every job.
std::vector<Fault> draw_faults(std::uint64_t seed, std::size_t machines, std::size_t jobs,
                               Millis during);

/// Lets them happen in that world when their time comes.
void schedule_faults(World& world, const std::vector<Fault>& faults);

}  // namespace zed::sim
