#include "sched/node_state.hpp"

#include <algorithm>

#include "sched/nominal.hpp"

namespace zed::sched {
namespace {

template <class T> void sort_unique(std::vector<T>& items) {
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
}

GpuSlot slot_of(const Gpu& gpu, const NodeClass& node_class) {
  GpuGroup group{kind_of(gpu), gpu.numa_node, gpu.island};
  const auto& groups = node_class.key.groups;
  auto found = std::lower_bound(groups.begin(), groups.end(), group);
  ZED_ASSERT(found != groups.end() && *found == group);
  GpuSlot slot;
  slot.uuid = gpu.uuid;
  slot.group = static_cast<std::size_t>(found - groups.begin());
  slot.schedulable = is_schedulable(gpu.health);
  slot.reported = gpu.vram_reported;
  slot.offered = gpu.vram_reported - gpu.vram_reserved - gpu.vram_strangers;
  slot.crowded = is_crowded(gpu);
  return slot;
}

}  // namespace

GpuKind kind_of(const Gpu& gpu) {
  return {
      gpu.vendor,           gpu.model, gpu.memory_kind, gpu.vram_reported, gpu.vram_reserved,
      nominal_size_gb(gpu), gpu.arch,  gpu.driver,      gpu.cuda,          !gpu.mig_parent.empty()};
}

NodeClass::NodeClass(ClassKey of) : key(std::move(of)) {
  for (const GpuGroup& group : key.groups)
    names.push_back(GpuName::parse(group.kind.model));
}

bool NodeClass::may_hold(const DatasetName& dataset) const {
  DeclaredNode declared;
  declared.dataset_roots = key.roots;
  return declared.may_hold(dataset);
}

bool NodeClass::has_label(const std::string& label) const {
  return std::binary_search(key.labels.begin(), key.labels.end(), label);
}

ClassKey class_of(const Node& node) {
  ClassKey key;
  key.os = node.facts.os;
  key.labels = node.facts.labels;
  if (node.declared) {
    key.labels.insert(key.labels.end(), node.declared->labels.begin(), node.declared->labels.end());
    key.roots = node.declared->dataset_roots;
  }
  sort_unique(key.labels);
  sort_unique(key.roots);
  for (const Gpu& gpu : node.gpus) {
    key.groups.push_back({kind_of(gpu), gpu.numa_node, gpu.island});
    if (gpu.memory_kind == MemoryKind::unified) key.unified_memory = node.facts.memory;
  }
  sort_unique(key.groups);
  return key;
}

bool is_crowded(const Gpu& gpu) {
  return gpu.vram_strangers.value > std::max(gibibytes(1).value, gpu.vram_reported.value / 10);
}

Bytes GpuSlot::left() const {
  if (!schedulable || held_whole) return {};
  return std::max(offered - shared, Bytes{});
}

void NodeState::give_back_all() {
  live = 0;
  for (GpuSlot& slot : slots) {
    slot.held_whole = false;
    slot.sharers = 0;
    slot.shared = {};
  }
}

void NodeState::take(const std::vector<std::string>& uuids, bool share, Bytes vram) {
  live += 1;
  for (GpuSlot& slot : slots) {
    if (std::find(uuids.begin(), uuids.end(), slot.uuid) == uuids.end()) continue;
    if (share) {
      slot.sharers += 1;
      slot.shared += vram;
    } else {
      slot.held_whole = true;
    }
  }
}

bool takes_jobs(const Node& node) {
  return node.status == NodeStatus::up && node.facts.may_run_jobs && node.facts.may_write_pool;
}

bool is_live(const Attempt& attempt) {
  return attempt.phase != AttemptPhase::ended;
}

NodeState idle_state(const Node& node, std::shared_ptr<const NodeClass> node_class) {
  NodeState state;
  state.name = node.name;
  state.node_class = std::move(node_class);
  state.takes_jobs = takes_jobs(node);
  state.memory = node.facts.memory;
  state.pool_free = node.pool_free;
  state.slots.reserve(node.gpus.size());
  for (const Gpu& gpu : node.gpus)
    state.slots.push_back(slot_of(gpu, *state.node_class));
  return state;
}

NodeState state_of(const Node& node, std::shared_ptr<const NodeClass> node_class,
                   const std::vector<Attempt>& attempts,
                   const std::vector<Reservation>& reservations) {
  NodeState state = idle_state(node, std::move(node_class));
  for (const Attempt& attempt : attempts)
    if (is_live(attempt)) state.take(attempt.gpus, attempt.share, attempt.vram);
  for (const Reservation& reservation : reservations) {
    if (reservation.node != node.name) continue;
    bool is_visible = std::any_of(attempts.begin(), attempts.end(), [&](const Attempt& attempt) {
      return attempt.job == reservation.job && is_live(attempt);
    });
    if (!is_visible) state.take(reservation.gpus, reservation.share, reservation.vram);
  }
  return state;
}

Shape whole_shape(const NodeState& node) {
  Shape shape(node.node_class->key.groups.size());
  for (const GpuSlot& slot : node.slots)
    if (slot.is_free()) shape[slot.group] += 1;
  return shape;
}

Shape shared_shape(const NodeState& node) {
  std::size_t groups = node.node_class->key.groups.size();
  std::vector<std::vector<std::int64_t>> left(groups);
  for (const GpuSlot& slot : node.slots)
    if (slot.left() > Bytes{}) left[slot.group].push_back(slot.left().value);
  Shape shape;
  for (auto& bytes : left) {
    std::sort(bytes.begin(), bytes.end());
    shape.push_back(static_cast<std::int64_t>(bytes.size()));
    shape.insert(shape.end(), bytes.begin(), bytes.end());
  }
  return shape;
}

Shape plain_shape(const NodeState& node) {
  auto free = std::count_if(node.slots.begin(), node.slots.end(),
                            [](const GpuSlot& slot) { return slot.is_free(); });
  return {node.live, static_cast<std::int64_t>(free)};
}

}  // namespace zed::sched
