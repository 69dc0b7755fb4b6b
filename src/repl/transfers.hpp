#pragma once
// From a policy, or a job's `copies`, to the transfers that are due now and their plan steps.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/cluster.hpp"
#include "core/fleet.hpp"
#include "core/plan.hpp"
#include "repl/step.hpp"

namespace zed::repl {

/// What is due for one dataset on one target.
struct Transfer {
  DatasetName dataset;
  DatasetId uuid;
  NodeName source;
  NodeName target;
  ReplicationStep step;
  StreamKind kind = StreamKind::files;
  std::size_t behind = 0;  ///< snapshots still to travel, this one included
  std::optional<Bytes> max_rate;
  std::string why;  ///< "policy models: macbook lacks llama-8b@v1"
  /// Who sends it instead of the source: in a chain the node that receives it at the same time; or
  /// one that has the same.
  NodeName passed_on_by;
};

/// A dataset that a policy leaves out, and why: "size_gb is not set".
struct Excluded {
  DatasetName dataset;
  std::string why;
};

struct PolicyTransfers {
  std::vector<Transfer> transfers;  ///< up-to-date ones left out; conflicts are in it
  std::vector<Excluded> excluded;
};

/// Says why a dataset is left out, or nothing if it is selected (spec/filter evaluates the text).
using Filter = std::function<std::optional<std::string>(const Dataset&)>;

/// Whether a policy is about that dataset at its source; its filter is another question. Branches
/// never are.
bool selects(const ReplicationPolicy& policy, const Dataset& dataset);

/// The snapshot that a step moves; none if it moves none.
std::optional<CheckpointId> snapshot_of(const ReplicationStep& step);

/// What it is an increment to; none for a full stream and for what moves nothing.
std::optional<CheckpointId> base_of(const ReplicationStep& step);

/// Everything that `policy` wants moved now: at most one step for each dataset and target. Branches
/// are left out; a source or target that is silent has no steps; nothing is ever sent onto a
/// dataset's home; a holder that has not begun the source's timeline has a fork to apply first.
PolicyTransfers due_transfers(const FleetView& view, const ReplicationPolicy& policy,
                              const Filter& filter);
/// The same for one dataset and one target; none if nothing is due. `why` begins the step's reason:
/// "job finetune, copies 1".
std::optional<Transfer> due_transfer(const FleetView& view, const DatasetId& uuid,
                                     const NodeName& source, const NodeName& target,
                                     const std::string& why, const Retention& retention = {});

/// The plan steps of one transfer: send and receive with one ticket, or follow-home. Empty for a
/// conflict and for what is up to date. plan_chain() ties those of a chain to one another. The view
/// must be the one that the transfer was made from.
std::vector<PlanStep> plan_steps(const FleetView& view, const Transfer& transfer,
                                 const ControllerTerm& term, IdSource& ids);

}  // namespace zed::repl
