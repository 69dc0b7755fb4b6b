#pragma once
// Plan steps under way. A *need* is a key ("fork:<job>:<node>:<timeline>"): the same need never has
// two live orders, is tried again with growing pauses when it fails, and is forgotten when its
// node's connection goes, so that the reconcilers derive it again.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controller/fleet.hpp"
#include "core/message.hpp"

namespace zed::controller {

struct LiveStep {
  PlanStep step;
  std::string need;
  JobId owner;  ///< nil: a policy's, or an operation's
  LinkId link = 0;
  Instant ordered;
  TransferProgress progress;
  bool passed_on = false;  ///< a hop of a chain that is not its first
};

/// How a need ended.
struct NeedOutcome {
  std::string need;
  JobId owner;
  PlanStep step;               ///< the one whose result decided
  std::optional<Error> error;  ///< none: done
  std::optional<CheckpointId> snapshot;
  Bytes moved;
  std::int64_t failures = 0;  ///< in a row, this one included
  Millis took;                ///< since the order
  bool passed_on = false;     ///< a hop of a chain that is not its first
};

class Steps {
public:
  /// Orders the steps of a need (one, or the two halves of a transfer) unless it is under way or
  /// pausing. Steps without an id get one from `ids`. Returns whether it was ordered now.
  bool want(const std::string& need, const JobId& owner, std::vector<PlanStep> steps,
            const Fleet& fleet, Instant now, IdSource& ids, std::vector<Effect>& out);

  /// Whether want() would order them now.
  bool would_order(const std::string& need, const std::vector<PlanStep>& steps, const Fleet& fleet,
                   Instant now) const;

  /// A result of a step that is no longer waited for gives nothing. A transfer is done when both
  /// halves are; when one fails the other is cancelled.
  std::optional<NeedOutcome> result(const StepResult& result, Instant now,
                                    std::vector<Effect>& out);
  void progress(const TransferProgress& progress);
  /// The connection is gone, and with it every order on it. The owners to look at again.
  std::set<JobId> link_gone(LinkId link, std::vector<Effect>& out);
  /// Gives a need up: its steps are cancelled at their agents.
  void cancel(const std::string& need, std::vector<Effect>& out);
  /// Ends the pause of a need: a person asked for it anew.
  void forgive(const std::string& need) { pauses_.erase(need); }
  /// Forgets pauses that ended long ago.
  void sweep(Instant now);

  bool is_live(const std::string& need) const { return live_.contains(need); }
  /// When a need that failed may be tried again; none if it may now.
  std::optional<Instant> pause_of(const std::string& need, Instant now) const;
  std::optional<Error> last_error(const std::string& need) const;
  /// Transfers that a node takes part in.
  std::int64_t transfers_on(const NodeName& node) const;
  /// Pauses that end at or before `now` since the last call: their owners.
  std::set<JobId> woken(Instant now);
  const std::map<StepId, LiveStep>& all() const { return steps_; }

private:
  struct Pause {
    std::int64_t failures = 0;
    Instant until;
    JobId owner;
    std::optional<Error> error;
    std::string done;  ///< what was carried out, if it was
  };

  bool is_paused(const std::string& need, const std::vector<PlanStep>& steps, Instant now) const;
  void drop(const StepId& id, bool tell_agent, std::vector<Effect>& out);

  std::map<StepId, LiveStep> steps_;
  std::map<std::string, std::vector<StepId>> live_;
  std::map<std::string, Pause> pauses_;
  std::multimap<Instant, std::string> wakes_;
  std::map<NodeName, std::int64_t> transfers_;
};

}  // namespace zed::controller
