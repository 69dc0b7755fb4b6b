#include "sim/memory_space.hpp"

#include <algorithm>
#include <cstring>

namespace zed::sim {
namespace {

using store::ByteVector;
using store::Entry;
using store::EntryKind;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

class MemoryStaging final : public store::Staging {
public:
  MemoryStaging(MemorySpace& space, std::string place)
      : space_(space), place_(std::move(place)), life_(space.lives()) {}

  Result<std::optional<Found>> find() override {
    std::optional<Found> found;
    ZED_CHECK(space_.with_arrival(place_, life_, [&](MemoryArrival& arrival) -> Status {
      if (arrival.plan) found = Found{*arrival.plan, arrival.kept};
      return {};
    }));
    return found;
  }
  Status clear() override {
    return space_.with_arrival(place_, life_, [](MemoryArrival& arrival) -> Status {
      arrival = {};
      return {};
    });
  }
  Status keep_plan(std::span<const std::byte> plan) override {
    return space_.with_arrival(place_, life_, [&](MemoryArrival& arrival) -> Status {
      arrival.plan = ByteVector(plan.begin(), plan.end());
      return {};
    });
  }
  Status append(std::size_t file, std::uint64_t offset, std::span<const std::byte> bytes) override {
    if (space_.is_full()) return fail(ErrorCode::no_space, "the simulated disk is full");
    return space_.with_arrival(place_, life_, [&](MemoryArrival& arrival) -> Status {
      std::string& text = arrival.files[file];
      text.resize(static_cast<std::size_t>(offset) + bytes.size());
      if (!bytes.empty())
        std::memcpy(text.data() + static_cast<std::size_t>(offset), bytes.data(), bytes.size());
      return {};
    });
  }
  Status read(std::size_t file, std::uint64_t offset, std::span<std::byte> buffer) override {
    return space_.with_arrival(place_, life_, [&](MemoryArrival& arrival) -> Status {
      const std::string& text = arrival.files[file];
      if (text.size() < offset + buffer.size())
        return fail(ErrorCode::corrupt, "the interrupted receive is shorter than it was");
      if (!buffer.empty())
        std::memcpy(buffer.data(), text.data() + static_cast<std::size_t>(offset), buffer.size());
      return {};
    });
  }
  Status keep_offset(std::uint64_t body_offset) override {
    return space_.with_arrival(place_, life_, [&](MemoryArrival& arrival) -> Status {
      arrival.durable = arrival.files;
      arrival.kept = body_offset;
      return {};
    });
  }

private:
  MemorySpace& space_;
  std::string place_;
  std::uint64_t life_;
};

class MemorySource final : public store::ContentSource {
public:
  MemorySource(MemorySpace& space, std::string place)
      : space_(space), place_(std::move(place)), life_(space.lives()) {}
  Status read(const Entry& file, std::uint64_t offset, std::span<std::byte> buffer) override {
    if (space_.lives() != life_) return fail(ErrorCode::cancelled, "the sender died");
    auto tree = space_.tree(place_);
    if (!tree) return fail(ErrorCode::not_found, "the snapshot was destroyed");
    const std::string& bytes = tree->at(file.path).content->bytes;
    std::memcpy(buffer.data(), bytes.data() + static_cast<std::size_t>(offset), buffer.size());
    return {};
  }

private:
  MemorySpace& space_;
  std::string place_;
  std::uint64_t life_;
};

store::MadeFiles measure(const MemoryTree& tree, const MemoryTree& previous) {
  store::MadeFiles made;
  for (const auto& [path, node] : tree) {
    if (!node.content) continue;
    Bytes size{static_cast<std::int64_t>(node.content->bytes.size())};
    made.referenced += size;
    auto old = previous.find(path);
    if (old == previous.end() || old->second.content != node.content) made.used += size;
  }
  return made;
}

}  // namespace

ContentRef content_of(std::string bytes) {
  auto content = std::make_shared<MemoryContent>();
  content->digest = store::sha256(bytes_of(bytes));
  content->bytes = std::move(bytes);
  return content;
}

// ---- for MemoryStore ----------------------------------------------------------------------------

std::optional<MemoryTree> MemorySpace::tree(const std::string& place) const {
  std::lock_guard lock(mutex_);
  auto found = trees_.find(place);
  return found == trees_.end() ? std::nullopt : std::optional(found->second);
}

void MemorySpace::put_tree(const std::string& place, MemoryTree tree) {
  std::lock_guard lock(mutex_);
  trees_[place] = std::move(tree);
}

void MemorySpace::set_full(bool full) {
  std::lock_guard lock(mutex_);
  full_ = full;
}

bool MemorySpace::is_full() const {
  std::lock_guard lock(mutex_);
  return full_;
}

void MemorySpace::set_wall_time(WallTime now) {
  std::lock_guard lock(mutex_);
  now_ = now;
}

void MemorySpace::crash() {
  std::lock_guard lock(mutex_);
  ++life_;
  for (auto& [place, arrival] : arrivals_)
    arrival.files = arrival.durable;
}

std::uint64_t MemorySpace::lives() const {
  std::lock_guard lock(mutex_);
  return life_;
}

Status MemorySpace::with_arrival(const std::string& place, std::uint64_t life,
                                 const std::function<Status(MemoryArrival&)>& work) {
  std::lock_guard lock(mutex_);
  if (life != life_) return fail(ErrorCode::cancelled, "the receiver died");
  return work(arrivals_[place]);
}

// ---- FileSpace ----------------------------------------------------------------------------------

env::StoreInfo MemorySpace::info() const {
  return {StoreKind::dir, "memory", "memory 1", true, {StreamKind::files}};
}

Result<env::Space> MemorySpace::space() {
  std::lock_guard lock(mutex_);
  Bytes used;
  std::set<const MemoryContent*> counted;
  for (const auto& [place, tree] : trees_)
    for (const auto& [path, node] : tree)
      if (node.content && counted.insert(node.content.get()).second)
        used += Bytes{static_cast<std::int64_t>(node.content->bytes.size())};
  Bytes total = gibibytes(1024);
  return env::Space{full_ ? Bytes{} : total - used, total};
}

Status MemorySpace::check_space() const {
  if (full_) return fail(ErrorCode::no_space, "the simulated disk is full");
  return {};
}

Status MemorySpace::keep(const store::CatalogEdit&) {
  std::lock_guard lock(mutex_);
  return check_space();
}

std::string MemorySpace::new_place(store::PlaceKind kind, std::string_view hint) {
  constexpr std::array<const char*, 3> folders{"live/", "snapshots/", "receiving/"};
  std::lock_guard lock(mutex_);
  return folders[static_cast<std::size_t>(kind)] + std::to_string(++places_) + "-" +
         std::string(hint);
}

void MemorySpace::drop(const std::string& place) {
  std::lock_guard lock(mutex_);
  trees_.erase(place);
  arrivals_.erase(place);
}

Result<MemoryTree> MemorySpace::find(const std::string& place) const {
  if (place.empty()) return MemoryTree{};
  auto found = trees_.find(place);
  if (found == trees_.end())
    return fail(ErrorCode::not_found, "the files of " + place + " are gone");
  return found->second;
}

Status MemorySpace::make_live(const std::string& live, const std::string& snapshot, bool) {
  std::lock_guard lock(mutex_);
  ZED_CHECK(check_space());
  ZED_TRY(auto tree, find(snapshot));
  trees_[live] = std::move(tree);
  return {};
}

Result<std::filesystem::path> MemorySpace::live_path(const std::string& live) {
  std::lock_guard lock(mutex_);
  ZED_CHECK(find(live));
  return std::filesystem::path("/memory/" + live);
}

Status MemorySpace::protect_live(const std::string&, bool) {
  return {};  // write_file() asks the catalog
}

Result<store::LiveState> MemorySpace::look(const std::string& live, const std::string& snapshot) {
  std::lock_guard lock(mutex_);
  ZED_TRY(auto now, find(live));
  ZED_TRY(auto then, find(snapshot));
  return store::LiveState{now != then, measure(now, then).used};
}

Result<store::MadeFiles> MemorySpace::take(const store::SnapshotSource& source,
                                           const std::string& snapshot) {
  std::lock_guard lock(mutex_);
  ZED_CHECK(check_space());
  ZED_TRY(auto tree, find(source.live.empty() ? source.content : source.live));
  ZED_TRY(auto previous, find(source.previous));
  auto made = measure(tree, previous);
  trees_[snapshot] = std::move(tree);
  return made;
}

Result<std::filesystem::path> MemorySpace::snapshot_path(const std::string& snapshot) {
  std::lock_guard lock(mutex_);
  ZED_CHECK(find(snapshot));
  return std::filesystem::path("/memory/" + snapshot);
}

Result<store::Manifest> MemorySpace::manifest(const std::string& snapshot) {
  std::lock_guard lock(mutex_);
  ZED_TRY(auto tree, find(snapshot));
  std::vector<Entry> entries;
  entries.reserve(tree.size());
  for (const auto& [path, node] : tree) {
    Entry entry;
    entry.path = path;
    entry.kind = node.kind;
    entry.mode = node.mode;
    entry.mtime_ns = node.mtime_ns;
    entry.target = node.target;
    if (node.content) {
      entry.size = node.content->bytes.size();
      entry.digest = node.content->digest;
    }
    entries.push_back(std::move(entry));
  }
  return store::Manifest::of(std::move(entries));
}

Result<std::unique_ptr<store::ContentSource>> MemorySpace::content(const std::string& snapshot) {
  return std::make_unique<MemorySource>(*this, snapshot);
}

Result<std::unique_ptr<store::Staging>> MemorySpace::staging(const std::string& receiving) {
  return std::make_unique<MemoryStaging>(*this, receiving);
}

Result<store::MadeFiles> MemorySpace::assemble(const store::Arrival& arrival,
                                               const std::string& base,
                                               const std::string& receiving,
                                               const std::string& snapshot) {
  std::lock_guard lock(mutex_);
  ZED_CHECK(check_space());
  ZED_TRY(auto previous, find(base));
  MemoryTree tree = previous;
  for (const std::string& path : arrival.delta.removed)
    tree.erase(path);
  auto& staged = arrivals_[receiving].files;
  for (std::size_t i = 0; i < arrival.delta.put.size(); ++i) {
    const Entry& entry = arrival.delta.put[i];
    MemoryNode node{entry.kind, entry.mode, entry.mtime_ns, nullptr, entry.target};
    if (const auto& place = arrival.places[i]) {
      using From = store::ContentPlace::From;
      if (place->from == From::staged) node.content = content_of(staged[place->staged_file]);
      if (place->from == From::base) node.content = previous.at(place->path).content;
      if (place->from == From::earlier) node.content = tree.at(place->path).content;
    }
    tree[entry.path] = std::move(node);
  }
  auto made = measure(tree, previous);
  trees_[snapshot] = std::move(tree);
  return made;
}

std::vector<std::string> MemorySpace::missing(const store::Catalog& catalog) {
  std::lock_guard lock(mutex_);
  std::vector<std::string> places;
  for (const auto& [name, record] : catalog.datasets())
    for (const store::SnapshotRef& snapshot : record->snapshots)
      if (!trees_.contains(snapshot->files)) places.push_back(snapshot->files);
  return places;
}

// splitmix64 (Steele, Lea, Flood 2014): every seed gives a full period.
std::uint64_t MemorySpace::random() {
  std::lock_guard lock(mutex_);
  std::uint64_t z = (random_state_ += 0x9e3779b97f4a7c15U);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

WallTime MemorySpace::wall_time() {
  std::lock_guard lock(mutex_);
  return now_;
}

}  // namespace zed::sim
