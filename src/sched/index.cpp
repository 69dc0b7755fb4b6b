#include "sched/index.hpp"

#include <algorithm>
#include <bit>

#include "sched/index_state.hpp"

namespace zed::sched {

int level_of(Bytes bytes) {
  return bytes.value <= 0 ? 0 : std::bit_width(static_cast<std::uint64_t>(bytes.value));
}

// Buckets point at entries, so a copy builds its own.
IndexState::IndexState(const IndexState& other)
    : entries_(other.entries_), class_ids_(other.class_ids_), classes_(other.classes_),
      members_(other.members_), reserved_(other.reserved_), reserved_by_(other.reserved_by_) {
  for (auto& [name, entry] : entries_) {
    entry.indexed = false;
    reindex(entry);
  }
}

const NodeState* IndexState::find(const NodeName& name) const {
  auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second.state;
}

std::size_t IndexState::class_id(const NodeState& node) const {
  return entries_.at(node.name).class_id;
}

std::size_t IndexState::intern(const ClassKey& key) {
  auto known = class_ids_.find(key);
  if (known != class_ids_.end()) {
    ++members_[known->second];
    return known->second;
  }
  auto free = std::find(classes_.begin(), classes_.end(), nullptr);
  auto id = static_cast<std::size_t>(free - classes_.begin());
  if (free == classes_.end()) {
    classes_.emplace_back();
    members_.push_back(0);
  }
  classes_[id] = std::make_shared<const NodeClass>(key);
  members_[id] = 1;
  class_ids_.emplace(key, id);
  return id;
}

void IndexState::forget_class(std::size_t id) {
  if (--members_[id] > 0) return;
  class_ids_.erase(classes_[id]->key);
  classes_[id] = nullptr;
}

void IndexState::update(const Node& node, const std::vector<Attempt>& attempts) {
  auto [at, is_new] = entries_.try_emplace(node.name);
  Entry& entry = at->second;
  std::size_t id = intern(class_of(node));
  unindex(entry);
  if (!is_new) forget_class(entry.class_id);
  entry.class_id = id;
  entry.state = idle_state(node, classes_[id]);
  entry.holds.clear();
  for (const Attempt& attempt : attempts)
    if (is_live(attempt))
      entry.holds.push_back({attempt.job, attempt.gpus, attempt.share, attempt.vram});
  retake(entry);
  reindex(entry);
}

void IndexState::remove(const NodeName& name) {
  auto found = entries_.find(name);
  if (found == entries_.end()) return;
  unindex(found->second);
  forget_class(found->second.class_id);
  entries_.erase(found);
}

void IndexState::reserve(const Reservation& reservation) {
  reserved_[reservation.node].push_back(reservation);
  reserved_by_[reservation.job].insert(reservation.node);
  auto found = entries_.find(reservation.node);
  if (found == entries_.end()) return;
  retake(found->second);
  reindex(found->second);
}

void IndexState::release(const JobId& job) {
  auto held = reserved_by_.find(job);
  if (held == reserved_by_.end()) return;
  for (const NodeName& name : held->second) {
    auto on_node = reserved_.find(name);
    auto& list = on_node->second;
    list.erase(std::remove_if(list.begin(), list.end(),
                              [&](const Reservation& r) { return r.job == job; }),
               list.end());
    if (list.empty()) reserved_.erase(on_node);
    auto found = entries_.find(name);
    if (found == entries_.end()) continue;
    retake(found->second);
    reindex(found->second);
  }
  reserved_by_.erase(held);
}

void IndexState::release_everything() {
  reserved_.clear();
  reserved_by_.clear();
  for (auto& [name, entry] : entries_) {
    entry.holds.clear();
    retake(entry);
    reindex(entry);
  }
}

void IndexState::retake(Entry& entry) {
  entry.state.give_back_all();
  for (const Hold& hold : entry.holds)
    entry.state.take(hold.gpus, hold.share, hold.vram);
  auto reserved = reserved_.find(entry.state.name);
  if (reserved == reserved_.end()) return;
  for (const Reservation& reservation : reserved->second) {
    bool is_visible = std::any_of(entry.holds.begin(), entry.holds.end(),
                                  [&](const Hold& hold) { return hold.job == reservation.job; });
    if (!is_visible) entry.state.take(reservation.gpus, reservation.share, reservation.vram);
  }
}

bool IndexState::is_counted(const Entry& entry, const JobId& job) const {
  auto reserved = reserved_by_.find(job);
  return std::any_of(entry.holds.begin(), entry.holds.end(),
                     [&](const Hold& hold) { return hold.job == job; }) ||
         (reserved != reserved_by_.end() && reserved->second.contains(entry.state.name));
}

NodeState IndexState::with(const NodeName& name, const std::vector<Reservation>& more) const {
  const Entry& entry = entries_.at(name);
  NodeState state = entry.state;
  for (const Reservation& reservation : more)
    if (reservation.node == name && !is_counted(entry, reservation.job))
      state.take(reservation.gpus, reservation.share, reservation.vram);
  return state;
}

void IndexState::reindex(Entry& entry) {
  if (!entry.state.takes_jobs) return unindex(entry);
  for (std::size_t family = 0; family < buckets_.size(); ++family) {
    BucketKey key{entry.class_id, level_of(entry.state.pool_free), level_of(entry.state.memory),
                  shape_of(static_cast<Family>(family), entry.state)};
    if (entry.indexed) {
      if (key == entry.keys[family]) continue;
      auto old = buckets_[family].find(entry.keys[family]);
      old->second.erase(&entry.state);
      if (old->second.empty()) buckets_[family].erase(old);
    }
    buckets_[family][key].insert(&entry.state);
    entry.keys[family] = std::move(key);
  }
  entry.indexed = true;
}

void IndexState::unindex(Entry& entry) {
  if (!entry.indexed) return;
  for (std::size_t family = 0; family < buckets_.size(); ++family) {
    auto old = buckets_[family].find(entry.keys[family]);
    old->second.erase(&entry.state);
    if (old->second.empty()) buckets_[family].erase(old);
  }
  entry.indexed = false;
}

Index::Index() : state_(std::make_unique<IndexState>()) {}
Index::Index(const FleetView& view) : Index() {
  for (const auto& [name, node] : view.nodes) {
    auto attempts = view.attempts.find(name);
    update(node, attempts == view.attempts.end() ? std::vector<Attempt>{} : attempts->second);
  }
}
Index::Index(const Index& other) : state_(std::make_unique<IndexState>(*other.state_)) {}
Index::Index(Index&& other) noexcept = default;
Index& Index::operator=(const Index& other) {
  if (this != &other) state_ = std::make_unique<IndexState>(*other.state_);
  return *this;
}
Index& Index::operator=(Index&& other) noexcept = default;
Index::~Index() = default;

void Index::update(const Node& node, const std::vector<Attempt>& attempts) {
  state_->update(node, attempts);
}
void Index::remove(const NodeName& node) {
  state_->remove(node);
}
void Index::reserve(const Reservation& reservation) {
  state_->reserve(reservation);
}
void Index::release(const JobId& job) {
  state_->release(job);
}
Index Index::idle() const {
  Index copy(*this);
  copy.state_->release_everything();
  return copy;
}
std::size_t Index::node_count() const {
  return state_->node_count();
}

}  // namespace zed::sched
