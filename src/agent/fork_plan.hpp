#pragma once
// A fork on one node, as a pure function of what the store shows.
//
// Whoever begins a fork writes an Intent onto the dataset. From then on the next move follows from
// the two datasets alone, so an agent that crashed between any two moves goes on from where the
// store is, and the way it goes on is the way it always goes.

#include <array>
#include <optional>
#include <set>
#include <string>
#include <variant>

#include "core/dataset.hpp"
#include "core/plan.hpp"
#include "env/store.hpp"

namespace zed::agent {

/// What was begun: the property `intent` in JSON. It is written on the dataset before anything is
/// changed, travels on it to the branch, and is removed from the branch at the end.
struct Intent {
  DatasetName dataset;               ///< where the new timeline lives, before and after
  DatasetId uuid;                    ///< its identity, before and after
  std::optional<CheckpointId> base;  ///< the newest snapshot that both have; none: begin empty
  std::string base_name;             ///< its name
  DatasetName branch;                ///< where the abandoned timeline goes
  DatasetId branch_uuid;             ///< the branch's own identity
  PropertyChanges changes;           ///< the new dataset's properties against the old one's
  bool discard = false;              ///< destroy the branch once all is done
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("dataset", self.dataset);
    visit("uuid", self.uuid);
    visit("base", self.base);
    visit("base_name", self.base_name);
    visit("branch", self.branch);
    visit("branch_uuid", self.branch_uuid);
    visit("changes", self.changes);
    visit("discard", self.discard);
  }
  friend bool operator==(const Intent&, const Intent&) = default;
};
std::string intent_text(const Intent& intent);
/// Errors: `corrupt`.
Result<Intent> parse_intent(const std::string& text);

/// The stages in their order; docs/agent.md draws them.
enum class ForkStage {
  set_aside,       ///< the old dataset gets the branch's identity, in one set
  rename,          ///< and its name
  begin,           ///< clone of branch@base, or a new dataset, with all properties
  promote,         ///< the common snapshots move to the new dataset
  set_properties,  ///< read back: what the clone lacks is set
  protect,         ///< the new dataset readonly, until an attempt starts
  protect_branch,  ///< the branch readonly
  clear_intent,    ///< from here on there is nothing left to finish
  discard,         ///< only if the person said so
  done,
};
constexpr auto enum_names(ForkStage) {
  return std::array<std::string_view, 10>{
      "set-aside", "rename",         "begin",        "promote", "set-properties",
      "protect",   "protect-branch", "clear-intent", "discard", "done"};
}
struct ForkMove {
  ForkStage stage = ForkStage::done;
  std::optional<env::StoreRequest> request;  ///< none when done
};

/// What the store shows of the two datasets of an intent.
struct ForkSight {
  std::optional<Dataset> main;
  std::optional<Dataset> branch;
};

/// The next move of an intent that is written. Errors: `conflict` (a name is taken by a stranger),
/// `corrupt` (neither dataset is there).
Result<ForkMove> next_move(const Intent& intent, const ForkSight& sight);

// ---- how a fork begins ----

/// The dataset is on the fork's timeline already.
struct ForkIsDone {};
/// Nothing is abandoned: only properties are set.
struct ForkKeepsAll {
  PropertyChanges changes;
};
/// Live files changed since the newest snapshot: they are kept in a snapshot first.
struct ForkNeedsSnapshot {};
/// The live files of a replica are not its newest snapshot's: somebody destroyed a snapshot here.
/// They are nobody's work and go back to it, before anything continues from them.
struct ForkRevertsFiles {};
using ForkPlan =
    std::variant<ForkIsDone, ForkKeepsAll, ForkNeedsSnapshot, ForkRevertsFiles, Intent>;

/// How to apply a fork to this copy. `self` is this node. Errors: `stale` (another dataset, a newer
/// timeline), `not_found` (the home lacks the checkpoint), `conflict` (a copy that missed an
/// earlier fork: it must follow its home first).
Result<ForkPlan> plan_fork(const ApplyFork& action, const Dataset& there, const NodeName& self,
                           const std::set<DatasetName>& taken);

/// How a replica returns to its home's history. Done: only for the newest being `common`.
Result<ForkPlan> plan_follow(const FollowHome& action, const Dataset& there,
                             const std::set<DatasetName>& taken);

/// Adds a fork to the `lineage` property: "<timeline>@<id>,…", the last 20.
std::string extended_lineage(const std::string& lineage, const Fork& fork);

}  // namespace zed::agent
