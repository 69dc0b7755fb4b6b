#include "env/store.hpp"

namespace zed::env {
namespace {

struct Describer {
  std::string operator()(const ListDatasets&) const { return "list datasets"; }
  std::string operator()(const ChangedDatasets&) const { return "look for changed datasets"; }
  std::string operator()(const InspectDataset& r) const { return "inspect " + r.dataset.str(); }
  std::string operator()(const MakeDataset& r) const { return "create " + r.dataset.str(); }
  std::string operator()(const SetDatasetProperties& r) const {
    return "set properties of " + r.dataset.str();
  }
  std::string operator()(const SetReadonly& r) const {
    return "make " + r.dataset.str() + (r.readonly ? " readonly" : " writable");
  }
  std::string operator()(const TakeSnapshot& r) const {
    return (r.seal ? "seal " : "snapshot ") + r.snapshot.str();
  }
  std::string operator()(const CommitCheckpoint& r) const {
    return "commit checkpoint " + r.request.dataset.str() + "@" + r.request.snapshot;
  }
  std::string operator()(const HoldSnapshot& r) const { return "hold " + r.snapshot.str(); }
  std::string operator()(const ReleaseSnapshot& r) const { return "release " + r.snapshot.str(); }
  std::string operator()(const AbortReceive& r) const {
    return "abort the receive of " + r.dataset.str();
  }
  std::string operator()(const RenameDataset& r) const {
    return "rename " + r.from.str() + " to " + r.to.str();
  }
  std::string operator()(const CloneSnapshot& r) const {
    return "clone " + r.origin.str() + " as " + r.dataset.str();
  }
  std::string operator()(const PromoteClone& r) const { return "promote " + r.dataset.str(); }
  std::string operator()(const RevertLive& r) const { return "revert " + r.dataset.str(); }
  std::string operator()(const DestroyDataset& r) const { return "destroy " + r.dataset.str(); }
  std::string operator()(const DestroySnapshot& r) const { return "destroy " + r.snapshot.str(); }
  std::string operator()(const BookmarkSnapshot& r) const {
    return "bookmark " + r.snapshot.str() + " for " + r.peer.str();
  }
  std::string operator()(const ForgetBookmark& r) const {
    return "forget the bookmark of " + r.dataset.str() + " for " + r.peer.str();
  }
  std::string operator()(const AskSpace&) const { return "ask for free space"; }
};

template <class T> Result<StoreReply> reply(Result<T> result) {
  if (!result) return fail(std::move(result).error());
  return StoreReply(std::move(*result));
}
Result<StoreReply> reply(Status status) {
  if (!status) return fail(std::move(status).error());
  return StoreReply();
}

struct Performer {
  Store& store;
  Result<StoreReply> operator()(const ListDatasets&) const { return reply(store.list()); }
  Result<StoreReply> operator()(const ChangedDatasets& r) const {
    return reply(store.changes_since(r.cursor));
  }
  Result<StoreReply> operator()(const InspectDataset& r) const {
    return reply(store.inspect(r.dataset));
  }
  Result<StoreReply> operator()(const MakeDataset& r) const {
    return reply(store.create(r.dataset, r.properties));
  }
  Result<StoreReply> operator()(const SetDatasetProperties& r) const {
    return reply(r.readonly ? store.change(r.dataset, r.changes, *r.readonly)
                            : store.set(r.dataset, r.changes));
  }
  Result<StoreReply> operator()(const SetReadonly& r) const {
    return reply(store.set_readonly(r.dataset, r.readonly));
  }
  Result<StoreReply> operator()(const TakeSnapshot& r) const {
    return reply(r.seal ? store.seal(r.snapshot, r.properties, *r.seal)
                        : store.snapshot(r.snapshot, r.properties));
  }
  Result<StoreReply> operator()(const CommitCheckpoint& r) const {
    return reply(store.commit_checkpoint(r.request));
  }
  Result<StoreReply> operator()(const HoldSnapshot& r) const {
    return reply(store.hold(r.snapshot, r.tag));
  }
  Result<StoreReply> operator()(const ReleaseSnapshot& r) const {
    return reply(store.release(r.snapshot, r.tag));
  }
  Result<StoreReply> operator()(const AbortReceive& r) const {
    return reply(store.abort_receive(r.dataset));
  }
  Result<StoreReply> operator()(const RenameDataset& r) const {
    return reply(store.rename(r.from, r.to));
  }
  Result<StoreReply> operator()(const CloneSnapshot& r) const {
    return reply(store.clone(r.origin, r.dataset, r.properties));
  }
  Result<StoreReply> operator()(const PromoteClone& r) const {
    return reply(store.promote(r.dataset));
  }
  Result<StoreReply> operator()(const RevertLive& r) const {
    return reply(store.revert_live(r.dataset));
  }
  Result<StoreReply> operator()(const DestroyDataset& r) const {
    return reply(store.destroy(r.dataset));
  }
  Result<StoreReply> operator()(const DestroySnapshot& r) const {
    return reply(store.destroy_snapshot(r.snapshot));
  }
  Result<StoreReply> operator()(const BookmarkSnapshot& r) const {
    return reply(store.bookmark(r.snapshot, r.peer));
  }
  Result<StoreReply> operator()(const ForgetBookmark& r) const {
    return reply(store.forget_bookmark(r.dataset, r.peer));
  }
  Result<StoreReply> operator()(const AskSpace&) const { return reply(store.space()); }
};

}  // namespace

Status Store::change(const DatasetName& dataset, const PropertyChanges& changes, bool readonly) {
  if (readonly) ZED_CHECK(set_readonly(dataset, true));
  ZED_CHECK(set(dataset, changes));
  return readonly ? Status() : set_readonly(dataset, false);
}

Result<Snapshot> Store::seal(const SnapshotName& name, const Properties& properties,
                             const PropertyChanges& changes) {
  ZED_TRY(Snapshot taken, snapshot(name, properties));
  ZED_CHECK(change(name.dataset, changes, true));
  return taken;
}

Status Store::bookmark(const SnapshotName& snapshot, const NodeName&) {
  return fail(ErrorCode::unsupported,
              "this store keeps no bookmarks: " + snapshot.str() + " itself has to stay");
}

Status Store::forget_bookmark(const DatasetName&, const NodeName&) {
  return {};
}

std::string describe(const StoreRequest& request) {
  return std::visit(Describer{}, request);
}

Result<StoreReply> perform(Store& store, const StoreRequest& request) {
  auto result = std::visit(Performer{store}, request);
  if (!result) return fail(std::move(result).error().with(describe(request)));
  return result;
}

}  // namespace zed::env
