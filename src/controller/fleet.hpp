#pragma once
// What the agents say, kept as one fleet view with the indexes that decisions need. Knows links,
// silence and inventories; decides nothing.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "controller/desired.hpp"
#include "controller/effects.hpp"
#include "controller/gpu_history.hpp"
#include "core/fleet.hpp"
#include "sched/index.hpp"

namespace zed::controller {

/// Its processes, or GPUs, may still be there.
bool is_live(const Attempt& attempt);

/// What one message changed, so that the caller knows whom to look at again.
struct Observed {
  std::set<DatasetId> datasets;
  std::set<JobId> jobs;
  bool capacity = false;  ///< a node or a GPU may take a job now
};

class Fleet {
public:
  /// A node that is a member but not here (yet): silent since `now`.
  void expect(const NodeName& name, const NodeId& id, Instant now);

  // ---- links
  void connected(LinkId link);
  /// The node behind a link; nullptr before its hello, or if the link is not the node's any more.
  const NodeName* node_of(LinkId link) const;
  std::optional<LinkId> link_of(const NodeName& node) const;
  std::vector<NodeName> connected_nodes() const;
  /// The node keeps what is known of it; it is only not heard any more.
  void gone(LinkId link);

  // ---- messages
  /// Takes a node in; a link that it had before is returned to be closed.
  std::optional<LinkId> hello(LinkId link, const Hello& hello, Instant now, Observed& seen);
  /// Errors: `invalid` for a page out of order, or more than a node may have.
  Status page(const NodeName& node, const InventoryPage& page, Observed& seen);
  Status changed(const NodeName& node, const DatasetChanged& change, Observed& seen);
  void removed(const NodeName& node, const DatasetName& dataset, Observed& seen);
  void heartbeat(const NodeName& node, const Heartbeat& beat);
  void gpus(const NodeName& node, std::vector<Gpu> gpus, Observed& seen);
  void attempt(const NodeName& node, const Attempt& attempt, Observed& seen);
  /// An attempt that ended and was acknowledged is forgotten.
  void forget_attempt(const NodeName& node, const JobId& job, const Generation& generation,
                      Observed& seen);
  void heard(const NodeName& node, Instant now);

  // ---- time, and people
  /// Silence becomes suspicion, then loss; duties show. The nodes whose status changed.
  std::vector<NodeName> refresh(Instant now, Millis lost_after,
                                const std::map<NodeName, NodeDuty>& duties);
  /// The same for one node: whether its status changed.
  bool refresh(const NodeName& node, Instant now, Millis lost_after,
               const std::map<NodeName, NodeDuty>& duties);
  void declare(const std::optional<AppliedFile>& applied);
  void declare(const std::optional<AppliedFile>& applied, const NodeName& node);
  /// A node that is not connected and will not come back.
  void forget(const NodeName& node);
  void stamp(std::uint64_t revision, WallTime at);

  // ---- reservations: placed, and not yet visible
  void reserve(const sched::Reservation& reservation);
  void release(const JobId& job);

  // ---- questions
  const FleetView& view() const { return view_; }
  /// How busy GPUs were lately.
  const GpuHistory& gpu_history() const { return gpu_history_; }
  const sched::Index& index() const { return index_; }
  sched::Index& index() { return index_; }
  /// Connected, and its inventory is complete: what the view says of it is what is there.
  bool is_ready(const NodeName& node) const;
  /// Why it is not ready, to follow its name: "is not connected".
  std::string_view absence(const NodeName& node) const;
  bool is_connected(const NodeName& node) const { return link_of(node).has_value(); }
  /// Silent for long, or no member (any more). False for no node at all.
  bool is_lost(const NodeName& node) const;
  const Node* node(const NodeName& name) const { return view_.find_node(name); }
  /// The copy of a dataset on a node; nullptr if none.
  const Dataset* copy(const NodeName& node, const DatasetId& uuid) const;
  /// Who has a copy, ready or not.
  std::vector<NodeName> holders(const DatasetId& uuid) const;
  std::vector<NodeName> ready_holders(const DatasetId& uuid) const;
  /// Identity of the dataset of that name; the copies of one dataset share name and identity.
  std::optional<DatasetId> uuid_of(const DatasetName& name) const;
  /// A job's attempt on a node; nullptr if none is known.
  const Attempt* attempt(const NodeName& node, const JobId& job) const;
  /// Nodes that report an attempt of that job.
  std::vector<NodeName> nodes_running(const JobId& job) const;
  std::vector<sched::Reservation> reservations() const;

private:
  struct Member {
    std::optional<LinkId> link;
    Instant heard;
    bool complete = false;  ///< the inventory's last page is in
    std::int64_t next_page = 0;
  };

  void index_dataset(const NodeName& node, const Dataset& dataset);
  void unindex_dataset(const NodeName& node, const Dataset& dataset);
  void set_attempts(const NodeName& node, std::vector<Attempt> attempts, Observed& seen);
  void update_index(const NodeName& node);
  bool refresh(const NodeName& name, const Member& member, Node& node, Instant now,
               Millis lost_after, const std::map<NodeName, NodeDuty>& duties);

  FleetView view_;
  sched::Index index_;
  std::map<JobId, sched::Reservation> reservations_;
  std::map<NodeName, Member> members_;
  std::unordered_map<LinkId, std::optional<NodeName>> links_;
  std::unordered_map<DatasetId, std::map<NodeName, DatasetName>> copies_;
  std::map<DatasetName, std::map<NodeName, DatasetId>> by_name_;
  std::unordered_map<JobId, std::set<NodeName>> running_;
  GpuHistory gpu_history_;
};

}  // namespace zed::controller
