#pragma once
// Bugs that are planted on purpose, one for each invariant: the test of the test. Each corrupts
// what a shell does between a state machine and the simulated world, as a real bug in either would.

#include <array>
#include <string_view>

#include "base/enum.hpp"

namespace zed::sim {

enum class Planted {
  none,
  early_exit,        ///< processes are reported gone, and their GPU free, while they live on
  old_generation,    ///< an attempt starts under the generation of the one before
  abandoned_start,   ///< a start is ordered on the timeline that a fork left
  late_receive,      ///< a receive goes on writing after its end: in the next timeline, too
  last_copy,         ///< a checkpoint that nobody named is destroyed
  forgotten_submit,  ///< both journals lose a submit
  wrong_success,     ///< a failure is reported as a success
  terminal_changes,  ///< the journal forgets that a job has ended
  never_retries,     ///< the second start of a job never reaches its agent
  changed_copy,      ///< a replica's snapshot gets a property that the original lacks
  greedy_keep,       ///< `keep` takes the newest checkpoint along
  endless_lease,     ///< an exclusive job goes on when its lease has ended
  torn_checkpoint,   ///< a checkpoint is committed without one of its files
};
constexpr auto enum_names(Planted) {
  return std::array<std::string_view, 14>{
      "none",         "early-exit",       "old-generation", "abandoned-start",  "late-receive",
      "last-copy",    "forgotten-submit", "wrong-success",  "terminal-changes", "never-retries",
      "changed-copy", "greedy-keep",      "endless-lease",  "torn-checkpoint"};
}

}  // namespace zed::sim
