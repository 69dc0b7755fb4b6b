#include "sim/memory_store.hpp"

#include <algorithm>

#include "sim/memory_space.hpp"
#include "store/catalog_store.hpp"

namespace zed::sim {
namespace {

using store::EntryKind;

std::map<std::string, std::string> files_of(const MemoryTree& tree) {
  std::map<std::string, std::string> files;
  for (const auto& [path, node] : tree)
    if (node.content) files[path] = node.content->bytes;
  return files;
}

/// Makes the folders above `path`. False if one of them is a file.
bool make_parents(MemoryTree& tree, std::string_view path) {
  for (std::size_t slash = path.find('/'); slash != std::string_view::npos;
       slash = path.find('/', slash + 1)) {
    MemoryNode folder{EntryKind::folder, 0755, 0, nullptr, {}};
    auto [parent, made] = tree.try_emplace(std::string(path.substr(0, slash)), folder);
    if (parent->second.kind != EntryKind::folder) return false;
  }
  return true;
}

/// Adds what a job's hands do to the rules.
class Inner final : public store::CatalogStore {
public:
  explicit Inner(std::unique_ptr<MemorySpace> space)
      : CatalogStore(std::move(space), store::Catalog()) {}
  MemorySpace& memory() { return static_cast<MemorySpace&>(files()); }

  Status edit(const DatasetName& dataset, const std::function<Status(MemoryTree&)>& change) {
    store::Turns::Turn turn(turns(), {{dataset}});
    ZED_TRY(auto record, catalog().find(dataset));
    if (record->readonly) return fail(ErrorCode::refused, dataset.str() + " is readonly");
    if (memory().is_full()) return fail(ErrorCode::no_space, "the simulated disk is full");
    ZED_TRY(auto place, settle_live(dataset));
    MemoryTree tree = memory().tree(place).value_or(MemoryTree{});
    ZED_CHECK(change(tree));
    memory().put_tree(place, std::move(tree));
    return {};
  }
  std::optional<MemoryTree> live_tree(const DatasetName& dataset) {
    store::Catalog now = catalog();
    auto record = now.find(dataset);
    if (!record) return std::nullopt;
    if (!(*record)->live.empty()) return memory().tree((*record)->live);
    auto content = now.content_of(**record);
    return content ? memory().tree(content->files) : MemoryTree{};
  }
  Result<MemoryTree> snapshot_tree(const SnapshotName& name) {
    ZED_TRY(auto record, catalog().find(name));
    return memory().tree(record->files).value_or(MemoryTree{});
  }
  void lose(const SnapshotName& name) {
    if (auto record = catalog().find(name)) memory().drop((*record)->files);
  }
};

}  // namespace

struct MemoryStore::State {
  explicit State(std::uint64_t seed) : inner(std::make_unique<MemorySpace>(seed)) {}

  std::optional<StoreFault> next_fault(std::string_view operation, const DatasetName& dataset) {
    std::lock_guard lock(mutex);
    ++calls;
    if (auto planned = planned_faults.find(calls); planned != planned_faults.end())
      return planned->second;
    return hook ? hook(operation, dataset) : std::nullopt;
  }

  /// Carries out `work` with the fault that is due, if one is.
  template <class Work>
  std::invoke_result_t<Work> call(std::string_view operation, const DatasetName& dataset,
                                  Work&& work) {
    auto fault = next_fault(operation, dataset);
    if (fault && !fault->after) return failure(*fault, operation, dataset);
    auto result = work();
    if (fault && result) return failure(*fault, operation, dataset);
    return result;
  }

  static tl::unexpected<Error> failure(const StoreFault& fault, std::string_view operation,
                                       const DatasetName& dataset) {
    return fail(fault.code, "simulated fault in " + std::string(operation) +
                                (dataset.empty() ? "" : " of " + dataset.str()));
  }

  Inner inner;
  mutable std::mutex mutex;
  StoreFaultHook hook;
  std::map<std::uint64_t, StoreFault> planned_faults;
  std::uint64_t calls = 0;

  class FaultySend final : public env::SendStream {
  public:
    FaultySend(State& state, DatasetName dataset, std::unique_ptr<env::SendStream> stream)
        : state_(state), dataset_(std::move(dataset)), stream_(std::move(stream)) {}
    Result<std::size_t> read(std::span<std::byte> buffer) override {
      return state_.call("read", dataset_, [&] { return stream_->read(buffer); });
    }
    Bytes total() const override { return stream_->total(); }
    Bytes resumed_at() const override { return stream_->resumed_at(); }

  private:
    State& state_;
    DatasetName dataset_;
    std::unique_ptr<env::SendStream> stream_;
  };

  class FaultyReceive final : public env::ReceiveStream {
  public:
    FaultyReceive(State& state, DatasetName dataset, std::unique_ptr<env::ReceiveStream> stream)
        : state_(state), dataset_(std::move(dataset)), stream_(std::move(stream)) {}
    Status write(std::span<const std::byte> bytes) override {
      return state_.call("write", dataset_, [&] { return stream_->write(bytes); });
    }
    Result<Snapshot> finish() override {
      return state_.call("finish", dataset_, [&] { return stream_->finish(); });
    }

  private:
    State& state_;
    DatasetName dataset_;
    std::unique_ptr<env::ReceiveStream> stream_;
  };
};

MemoryStore::MemoryStore(std::uint64_t seed) : state_(std::make_unique<State>(seed)) {}
MemoryStore::~MemoryStore() = default;
MemoryStore::MemoryStore(MemoryStore&&) noexcept = default;
MemoryStore& MemoryStore::operator=(MemoryStore&&) noexcept = default;

// ---- what a job or a person does ----------------------------------------------------------------

Status MemoryStore::write_file(const DatasetName& dataset, std::string_view path,
                               std::string bytes) {
  auto legal = store::check_path(path);
  if (!legal) return fail(ErrorCode::invalid, legal.error().message);
  return state_->inner.edit(dataset, [&](MemoryTree& tree) -> Status {
    auto old = tree.find(std::string(path));
    bool fits =
        make_parents(tree, path) && (old == tree.end() || old->second.kind == EntryKind::file);
    if (!fits) return fail(ErrorCode::invalid, std::string(path) + " is no place for a file");
    tree[std::string(path)] = {EntryKind::file, 0644, 0, content_of(std::move(bytes)), {}};
    return {};
  });
}

Status MemoryStore::remove_file(const DatasetName& dataset, std::string_view path) {
  return state_->inner.edit(dataset, [&](MemoryTree& tree) -> Status {
    std::string inside = std::string(path) + "/";
    std::erase_if(tree, [&](const auto& item) {
      return item.first == path || item.first.starts_with(inside);
    });
    return {};
  });
}

std::map<std::string, std::string> MemoryStore::live_files(const DatasetName& dataset) const {
  return files_of(state_->inner.live_tree(dataset).value_or(MemoryTree{}));
}

Result<std::map<std::string, std::string>>
MemoryStore::snapshot_files(const SnapshotName& snapshot) const {
  ZED_TRY(auto tree, state_->inner.snapshot_tree(snapshot));
  return files_of(tree);
}

void MemoryStore::lose_snapshot_files(const SnapshotName& snapshot) {
  state_->inner.lose(snapshot);
}

// ---- faults -------------------------------------------------------------------------------------

void MemoryStore::set_fault_hook(StoreFaultHook hook) {
  std::lock_guard lock(state_->mutex);
  state_->hook = std::move(hook);
}

void MemoryStore::fail_call(std::uint64_t n, StoreFault fault) {
  std::lock_guard lock(state_->mutex);
  state_->planned_faults[state_->calls + n] = fault;
}

std::uint64_t MemoryStore::calls() const {
  std::lock_guard lock(state_->mutex);
  return state_->calls;
}

void MemoryStore::set_full(bool full) {
  state_->inner.memory().set_full(full);
}

void MemoryStore::crash() {
  state_->inner.memory().crash();
}

void MemoryStore::set_wall_time(WallTime now) {
  state_->inner.memory().set_wall_time(now);
}

// ---- Store --------------------------------------------------------------------------------------

env::StoreInfo MemoryStore::info() const {
  return state_->inner.info();
}
Result<std::vector<Dataset>> MemoryStore::list() {
  return state_->call("list", {}, [&] { return state_->inner.list(); });
}
Result<Dataset> MemoryStore::inspect(const DatasetName& dataset) {
  return state_->call("inspect", dataset, [&] { return state_->inner.inspect(dataset); });
}
Result<env::Store::Changes> MemoryStore::changes_since(const std::string& cursor) {
  return state_->call("changes_since", {}, [&] { return state_->inner.changes_since(cursor); });
}
Result<env::Space> MemoryStore::space() {
  return state_->call("space", {}, [&] { return state_->inner.space(); });
}
Status MemoryStore::create(const DatasetName& dataset, const Properties& properties) {
  return state_->call("create", dataset, [&] { return state_->inner.create(dataset, properties); });
}
Status MemoryStore::set(const DatasetName& dataset, const PropertyChanges& changes) {
  return state_->call("set", dataset, [&] { return state_->inner.set(dataset, changes); });
}
Status MemoryStore::set_readonly(const DatasetName& dataset, bool readonly) {
  return state_->call("set_readonly", dataset,
                      [&] { return state_->inner.set_readonly(dataset, readonly); });
}
Result<std::filesystem::path> MemoryStore::open_live(const DatasetName& dataset) {
  return state_->call("open_live", dataset, [&] { return state_->inner.open_live(dataset); });
}
Result<std::filesystem::path> MemoryStore::snapshot_path(const SnapshotName& snapshot) {
  return state_->call("snapshot_path", snapshot.dataset,
                      [&] { return state_->inner.snapshot_path(snapshot); });
}
Result<Snapshot> MemoryStore::snapshot(const SnapshotName& name, const Properties& properties) {
  return state_->call("snapshot", name.dataset,
                      [&] { return state_->inner.snapshot(name, properties); });
}
Result<Snapshot> MemoryStore::commit_checkpoint(const env::CommitRequest& request) {
  return state_->call("commit_checkpoint", request.dataset,
                      [&] { return state_->inner.commit_checkpoint(request); });
}
Status MemoryStore::hold(const SnapshotName& snapshot, const std::string& tag) {
  return state_->call("hold", snapshot.dataset, [&] { return state_->inner.hold(snapshot, tag); });
}
Status MemoryStore::release(const SnapshotName& snapshot, const std::string& tag) {
  return state_->call("release", snapshot.dataset,
                      [&] { return state_->inner.release(snapshot, tag); });
}
Result<std::unique_ptr<env::SendStream>> MemoryStore::send(const env::SendRequest& request) {
  return state_->call("send", request.dataset, [&]() -> Result<std::unique_ptr<env::SendStream>> {
    ZED_TRY(auto stream, state_->inner.send(request));
    return std::make_unique<State::FaultySend>(*state_, request.dataset, std::move(stream));
  });
}
Result<std::unique_ptr<env::ReceiveStream>>
MemoryStore::receive(const env::ReceiveRequest& request) {
  return state_->call(
      "receive", request.dataset, [&]() -> Result<std::unique_ptr<env::ReceiveStream>> {
        ZED_TRY(auto stream, state_->inner.receive(request));
        return std::make_unique<State::FaultyReceive>(*state_, request.dataset, std::move(stream));
      });
}
Result<std::string> MemoryStore::resume_token(const DatasetName& dataset,
                                              const CheckpointId& snapshot) {
  return state_->call("resume_token", dataset,
                      [&] { return state_->inner.resume_token(dataset, snapshot); });
}
Status MemoryStore::abort_receive(const DatasetName& dataset) {
  return state_->call("abort_receive", dataset,
                      [&] { return state_->inner.abort_receive(dataset); });
}
Status MemoryStore::rename(const DatasetName& from, const DatasetName& to) {
  return state_->call("rename", from, [&] { return state_->inner.rename(from, to); });
}
Status MemoryStore::clone(const SnapshotName& origin, const DatasetName& dataset,
                          const Properties& properties) {
  return state_->call("clone", dataset,
                      [&] { return state_->inner.clone(origin, dataset, properties); });
}
Status MemoryStore::promote(const DatasetName& clone) {
  return state_->call("promote", clone, [&] { return state_->inner.promote(clone); });
}
Status MemoryStore::revert_live(const DatasetName& dataset) {
  return state_->call("revert_live", dataset, [&] { return state_->inner.revert_live(dataset); });
}
Status MemoryStore::destroy(const DatasetName& dataset) {
  return state_->call("destroy", dataset, [&] { return state_->inner.destroy(dataset); });
}
Status MemoryStore::destroy_snapshot(const SnapshotName& snapshot) {
  return state_->call("destroy_snapshot", snapshot.dataset,
                      [&] { return state_->inner.destroy_snapshot(snapshot); });
}

}  // namespace zed::sim
