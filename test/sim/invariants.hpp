#pragma once
// What must always be true of a fleet. Each invariant is a function over the whole world, called
// after every event; it answers with what is wrong, or nothing.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/world.hpp"

namespace zed::sim {

using Violation = std::optional<std::string>;

/// Keeps what was looked at already, so that a check after each event costs little.
class Invariants {
public:
  explicit Invariants(World& world) : world_(world) {}

  /// The first one that does not hold: "name: what is wrong".
  Violation check();
  /// Of a fleet that has had no faults for a while: every job that can finish has done so.
  Violation check_liveness();

  Violation gpu_has_one_live_attempt();
  Violation generations_only_grow();
  Violation abandoned_timeline_is_never_resumed();
  Violation timelines_never_mix();
  Violation checkpoints_are_whole();
  Violation snapshots_never_change();
  Violation last_copy_goes_only_by_name();
  Violation keep_spares_what_must_stay();
  Violation exclusive_runs_alone();
  Violation promises_are_kept();
  Violation success_is_counted_by_the_rule();
  Violation terminal_state_never_changes();

private:
  /// What a store holds, read when it changed.
  using Content = std::map<DatasetName, Dataset>;
  void read_touched();
  Violation lines_fit_timeline(const JobId& job, const Timeline& timeline, const std::string& state,
                               const std::string& where, bool is_replica) const;
  bool may_begin_with(const JobId& job, const Timeline& timeline,
                      const std::vector<EpochLine>& prefix, bool may_be_behind) const;
  Violation mix_in(std::size_t machine, const Dataset& dataset) const;
  bool returned_to_success(const Dataset& dataset) const;
  bool was_discarded(const Committed& committed) const;
  Violation spares(const Pruned& pruned) const;
  std::int64_t least_kept(const JobId& job) const;
  Violation judge(const SimController& controller, const controller::DesiredJob& job) const;
  Violation keeps_its_word(const SimController& controller) const;
  bool waits_in_vain(const controller::DesiredJob& job) const;
  Violation can_finish_but_did_not(const controller::DesiredJob& job) const;

  World& world_;
  std::map<std::size_t, Content> contents_;
  std::set<std::size_t> changed_;  ///< machines whose content is newer than the last check
  std::size_t ordered_seen_ = 0;
  std::size_t launched_seen_ = 0;
  std::size_t pruned_seen_ = 0;
  std::map<std::pair<std::size_t, DatasetId>, Generation> dataset_generations_;
  std::map<JobId, Generation> ordered_generations_;
  std::map<std::pair<std::size_t, JobId>, Generation> launched_generations_;
  std::set<CheckpointId> known_whole_;
  std::set<std::pair<std::size_t, std::string>> compared_;
  std::set<std::pair<std::uint64_t, JobId>> judged_;
  std::map<std::uint64_t, std::uint64_t> journal_seen_;  ///< controller run -> durable seq
};

}  // namespace zed::sim
