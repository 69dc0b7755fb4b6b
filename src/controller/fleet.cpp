#include "controller/fleet.hpp"

#include <algorithm>

namespace zed::controller {
namespace {

// Far beyond any real node, near enough that a broken agent cannot fill the controller's memory.
constexpr std::size_t most_datasets = 50'000;
constexpr std::size_t most_snapshots = 100'000;  ///< of one dataset
constexpr std::size_t most_attempts = 4096;      ///< of one node
constexpr Millis suspect_after = seconds(6);

/// Appends or replaces by identity; the order stays by createtxg.
void merge_snapshots(std::vector<Snapshot>& into, const std::vector<Snapshot>& news) {
  for (const Snapshot& snapshot : news) {
    auto same = std::find_if(into.begin(), into.end(),
                             [&](const Snapshot& known) { return known.id == snapshot.id; });
    if (same != into.end())
      *same = snapshot;
    else
      into.push_back(snapshot);
  }
  std::stable_sort(into.begin(), into.end(),
                   [](const Snapshot& a, const Snapshot& b) { return a.createtxg < b.createtxg; });
}

}  // namespace

bool is_live(const Attempt& attempt) {
  return attempt.phase != AttemptPhase::ended;
}

void Fleet::expect(const NodeName& name, const NodeId& id, Instant now) {
  if (members_.contains(name)) return;
  members_[name].heard = now;
  Node node;
  node.id = id;
  node.name = name;
  node.status = NodeStatus::suspect;
  view_.nodes.emplace(name, std::move(node));
}

void Fleet::connected(LinkId link) {
  links_.emplace(link, std::nullopt);
}

const NodeName* Fleet::node_of(LinkId link) const {
  auto found = links_.find(link);
  return found == links_.end() || !found->second ? nullptr : &*found->second;
}

std::optional<LinkId> Fleet::link_of(const NodeName& node) const {
  auto found = members_.find(node);
  return found == members_.end() ? std::nullopt : found->second.link;
}

std::vector<NodeName> Fleet::connected_nodes() const {
  std::vector<NodeName> nodes;
  for (const auto& [name, member] : members_)
    if (member.link) nodes.push_back(name);
  return nodes;
}

void Fleet::gone(LinkId link) {
  auto found = links_.find(link);
  if (found == links_.end()) return;
  if (found->second) {
    Member& member = members_[*found->second];
    if (member.link == link) member.link.reset();
  }
  links_.erase(found);
}

std::optional<LinkId> Fleet::hello(LinkId link, const Hello& hello, Instant now, Observed& seen) {
  Member& member = members_[hello.name];
  std::optional<LinkId> old = member.link;
  if (old && *old != link) links_.erase(*old);
  links_[link] = hello.name;
  member = Member{link, now, false, 0};
  Node& node = view_.nodes[hello.name];
  node.id = hello.node;
  node.name = hello.name;
  node.facts = hello.facts;
  node.gpus = hello.gpus;
  set_attempts(hello.name, hello.attempts, seen);
  update_index(hello.name);
  return old && *old != link ? old : std::nullopt;
}

Status Fleet::page(const NodeName& node, const InventoryPage& page, Observed& seen) {
  Member& member = members_[node];
  if (page.page == 0) {
    for (const auto& entry : view_.datasets[node])
      unindex_dataset(node, entry.second);
    view_.datasets[node].clear();
    member.complete = false;
    member.next_page = 0;
  }
  if (page.page != member.next_page)
    return fail(ErrorCode::invalid, "inventory page " + std::to_string(page.page) + " came for " +
                                        std::to_string(member.next_page));
  ++member.next_page;
  auto& datasets = view_.datasets[node];
  for (const Dataset& part : page.datasets) {
    auto [entry, is_new] = datasets.try_emplace(part.name, part);
    if (!is_new) {
      merge_snapshots(entry->second.snapshots, part.snapshots);
    } else {
      index_dataset(node, part);
    }
    seen.datasets.insert(part.uuid);
    if (datasets.size() > most_datasets || entry->second.snapshots.size() > most_snapshots)
      return fail(ErrorCode::invalid, "the inventory of " + node.str() + " is larger than any");
  }
  if (page.last) {
    member.complete = true;
    member.next_page = 0;
    seen.capacity = true;
    for (const auto& entry : datasets)
      seen.datasets.insert(entry.second.uuid);
    update_index(node);
  }
  return {};
}

Status Fleet::changed(const NodeName& node, const DatasetChanged& change, Observed& seen) {
  auto& datasets = view_.datasets[node];
  auto found = datasets.find(change.dataset.name);
  if (found == datasets.end()) {
    if (datasets.size() >= most_datasets)
      return fail(ErrorCode::invalid, node.str() + " reports more datasets than any node has");
    found = datasets.emplace(change.dataset.name, change.dataset).first;
    index_dataset(node, found->second);
    seen.datasets.insert(change.dataset.uuid);
    return {};
  }
  Dataset& known = found->second;
  seen.datasets.insert(known.uuid);
  seen.datasets.insert(change.dataset.uuid);
  unindex_dataset(node, known);
  std::vector<Snapshot> snapshots = std::move(known.snapshots);
  known = change.dataset;
  if (change.delta) {
    merge_snapshots(snapshots, change.dataset.snapshots);
    std::erase_if(snapshots, [&](const Snapshot& snapshot) {
      return std::find(change.gone.begin(), change.gone.end(), snapshot.id) != change.gone.end();
    });
    known.snapshots = std::move(snapshots);
  }
  index_dataset(node, known);
  if (known.snapshots.size() > most_snapshots)
    return fail(ErrorCode::invalid, known.name.str() + " has more snapshots than any dataset");
  return {};
}

void Fleet::removed(const NodeName& node, const DatasetName& dataset, Observed& seen) {
  auto& datasets = view_.datasets[node];
  auto found = datasets.find(dataset);
  if (found == datasets.end()) return;
  seen.datasets.insert(found->second.uuid);
  unindex_dataset(node, found->second);
  datasets.erase(found);
}

void Fleet::heartbeat(const NodeName& node, const Heartbeat& beat) {
  Node& known = view_.nodes[node];
  gpu_history_.add(node, beat.loads);
  bool moved = known.pool_free != beat.pool_free || known.memory_free != beat.memory_free;
  known.pool_free = beat.pool_free;
  known.memory_free = beat.memory_free;
  if (beat.power) known.facts.power = *beat.power;
  if (moved) update_index(node);
}

void Fleet::gpus(const NodeName& node, std::vector<Gpu> gpus, Observed& seen) {
  view_.nodes[node].gpus = std::move(gpus);
  seen.capacity = true;
  update_index(node);
}

void Fleet::attempt(const NodeName& node, const Attempt& attempt, Observed& seen) {
  auto& attempts = view_.attempts[node];
  auto same = std::find_if(attempts.begin(), attempts.end(), [&](const Attempt& known) {
    return known.job == attempt.job && known.generation == attempt.generation;
  });
  if (same == attempts.end()) {
    if (attempts.size() >= most_attempts) return;
    attempts.push_back(attempt);
  } else {
    // An end is final: what comes late is older.
    if (!is_live(*same) && is_live(attempt)) return;
    if (is_live(*same) && !is_live(attempt)) seen.capacity = true;
    *same = attempt;
  }
  running_[attempt.job].insert(node);
  seen.jobs.insert(attempt.job);
  update_index(node);
}

void Fleet::forget_attempt(const NodeName& node, const JobId& job, const Generation& generation,
                           Observed& seen) {
  auto found = view_.attempts.find(node);
  if (found == view_.attempts.end()) return;
  std::erase_if(found->second, [&](const Attempt& known) {
    return known.job == job && known.generation == generation && !is_live(known);
  });
  if (attempt(node, job) == nullptr) {
    auto where = running_.find(job);
    if (where != running_.end()) where->second.erase(node);
    if (where != running_.end() && where->second.empty()) running_.erase(where);
  }
  seen.capacity = true;
  update_index(node);
}

void Fleet::heard(const NodeName& node, Instant now) {
  members_[node].heard = now;
}

std::vector<NodeName> Fleet::refresh(Instant now, Millis lost_after,
                                     const std::map<NodeName, NodeDuty>& duties) {
  std::vector<NodeName> changed;
  // Four times a second for every node of the fleet: side by side, and nothing is looked up.
  auto known = view_.nodes.begin();
  for (const auto& [name, member] : members_) {
    while (known != view_.nodes.end() && known->first < name)
      ++known;
    if (known == view_.nodes.end() || known->first != name)
      known = view_.nodes.emplace_hint(known, name, Node{});
    if (refresh(name, member, known->second, now, lost_after, duties)) changed.push_back(name);
  }
  return changed;
}

bool Fleet::refresh(const NodeName& name, Instant now, Millis lost_after,
                    const std::map<NodeName, NodeDuty>& duties) {
  return refresh(name, members_[name], view_.nodes[name], now, lost_after, duties);
}

bool Fleet::refresh(const NodeName& name, const Member& member, Node& node, Instant now,
                    Millis lost_after, const std::map<NodeName, NodeDuty>& duties) {
  node.silent = now - member.heard;
  NodeStatus status = NodeStatus::up;
  auto duty = duties.find(name);
  if (node.silent >= lost_after)
    status = NodeStatus::lost;
  else if (node.silent >= suspect_after || !member.link)
    status = NodeStatus::suspect;
  else if (duty != duties.end())
    status = duty->second.duty == Duty::draining ? NodeStatus::draining : NodeStatus::cordoned;
  if (status == node.status) return false;
  node.status = status;
  update_index(name);
  return true;
}

void Fleet::declare(const std::optional<AppliedFile>& applied) {
  for (const auto& entry : view_.nodes)
    declare(applied, entry.first);
}

void Fleet::declare(const std::optional<AppliedFile>& applied, const NodeName& name) {
  auto node = view_.nodes.find(name);
  if (node == view_.nodes.end()) return;
  const DeclaredNode* declared = applied ? applied->cluster.find_node(name) : nullptr;
  node->second.declared = declared != nullptr ? std::optional(*declared) : std::nullopt;
  update_index(name);
}

void Fleet::forget(const NodeName& name) {
  auto datasets = view_.datasets.find(name);
  if (datasets != view_.datasets.end())
    for (const auto& entry : datasets->second)
      unindex_dataset(name, entry.second);
  view_.datasets.erase(name);
  Observed seen;
  set_attempts(name, {}, seen);
  view_.attempts.erase(name);
  view_.nodes.erase(name);
  members_.erase(name);
  gpu_history_.forget(name);
  index_.remove(name);
}

void Fleet::stamp(std::uint64_t revision, WallTime at) {
  view_.revision = revision;
  view_.taken_at = at;
}

void Fleet::reserve(const sched::Reservation& reservation) {
  release(reservation.job);
  reservations_.emplace(reservation.job, reservation);
  index_.reserve(reservation);
}

void Fleet::release(const JobId& job) {
  if (reservations_.erase(job) > 0) index_.release(job);
}

std::vector<sched::Reservation> Fleet::reservations() const {
  std::vector<sched::Reservation> all;
  for (const auto& entry : reservations_)
    all.push_back(entry.second);
  return all;
}

bool Fleet::is_ready(const NodeName& node) const {
  auto found = members_.find(node);
  return found != members_.end() && found->second.link && found->second.complete && !is_lost(node);
}

std::string_view Fleet::absence(const NodeName& node) const {
  return is_connected(node) && !is_lost(node) ? "has just connected and still tells what it holds"
                                              : "is not connected";
}

bool Fleet::is_lost(const NodeName& name) const {
  const Node* known = view_.find_node(name);
  return known == nullptr ? !name.empty() : known->status == NodeStatus::lost;
}

const Dataset* Fleet::copy(const NodeName& node, const DatasetId& uuid) const {
  auto found = copies_.find(uuid);
  if (found == copies_.end()) return nullptr;
  auto held = found->second.find(node);
  if (held == found->second.end()) return nullptr;
  const auto& datasets = view_.datasets.at(node);
  auto dataset = datasets.find(held->second);
  return dataset == datasets.end() ? nullptr : &dataset->second;
}

std::vector<NodeName> Fleet::holders(const DatasetId& uuid) const {
  std::vector<NodeName> nodes;
  auto found = copies_.find(uuid);
  if (found == copies_.end()) return nodes;
  for (const auto& entry : found->second)
    nodes.push_back(entry.first);
  return nodes;
}

std::vector<NodeName> Fleet::ready_holders(const DatasetId& uuid) const {
  std::vector<NodeName> nodes = holders(uuid);
  std::erase_if(nodes, [this](const NodeName& node) { return !is_ready(node); });
  return nodes;
}

std::optional<DatasetId> Fleet::uuid_of(const DatasetName& name) const {
  auto found = by_name_.find(name);
  if (found == by_name_.end() || found->second.empty()) return std::nullopt;
  return found->second.begin()->second;
}

const Attempt* Fleet::attempt(const NodeName& node, const JobId& job) const {
  auto found = view_.attempts.find(node);
  if (found == view_.attempts.end()) return nullptr;
  const Attempt* newest = nullptr;
  for (const Attempt& attempt : found->second)
    if (attempt.job == job && (newest == nullptr || newest->generation < attempt.generation))
      newest = &attempt;
  return newest;
}

std::vector<NodeName> Fleet::nodes_running(const JobId& job) const {
  auto found = running_.find(job);
  if (found == running_.end()) return {};
  return {found->second.begin(), found->second.end()};
}

void Fleet::index_dataset(const NodeName& node, const Dataset& dataset) {
  if (dataset.uuid.is_nil()) return;
  copies_[dataset.uuid][node] = dataset.name;
  by_name_[dataset.name][node] = dataset.uuid;
}

void Fleet::unindex_dataset(const NodeName& node, const Dataset& dataset) {
  auto copies = copies_.find(dataset.uuid);
  if (copies != copies_.end()) {
    auto held = copies->second.find(node);
    if (held != copies->second.end() && held->second == dataset.name) copies->second.erase(held);
    if (copies->second.empty()) copies_.erase(copies);
  }
  auto named = by_name_.find(dataset.name);
  if (named == by_name_.end()) return;
  named->second.erase(node);
  if (named->second.empty()) by_name_.erase(named);
}

void Fleet::set_attempts(const NodeName& node, std::vector<Attempt> attempts, Observed& seen) {
  for (const Attempt& attempt : view_.attempts[node]) {
    seen.jobs.insert(attempt.job);
    auto where = running_.find(attempt.job);
    if (where == running_.end()) continue;
    where->second.erase(node);
    if (where->second.empty()) running_.erase(where);
  }
  if (attempts.size() > most_attempts) attempts.resize(most_attempts);
  for (const Attempt& attempt : attempts) {
    seen.jobs.insert(attempt.job);
    running_[attempt.job].insert(node);
  }
  view_.attempts[node] = std::move(attempts);
}

void Fleet::update_index(const NodeName& name) {
  // A node whose inventory is not in yet cannot be given work: what is there is unknown.
  auto member = members_.find(name);
  const Node* known = view_.find_node(name);
  if (member == members_.end() || known == nullptr) return;
  if (!member->second.complete || !member->second.link) {
    index_.remove(name);
    return;
  }
  std::vector<Attempt> live;
  for (const Attempt& attempt : view_.attempts[name])
    if (is_live(attempt)) live.push_back(attempt);
  index_.update(*known, live);
}

}  // namespace zed::controller
