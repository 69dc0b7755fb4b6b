#include "store/catalog_store.hpp"

#include <algorithm>
#include <utility>

#include "base/number.hpp"
#include "base/text.hpp"

namespace zed::store {
namespace {

std::string place_of(const SnapshotRef& snapshot) {
  return snapshot ? snapshot->files : std::string();
}

}  // namespace

CatalogStore::CatalogStore(std::unique_ptr<FileSpace> files, Catalog catalog)
    : files_(std::move(files)), instance_(std::to_string(files_->random())),
      catalog_(*files_, std::move(catalog)) {}

// ---- reading ------------------------------------------------------------------------------------

Dataset CatalogStore::show(const Catalog& catalog, const DatasetName& name,
                           const DatasetRecord& record) {
  Dataset shown = catalog.show(name, record);
  if (record.live.empty()) return shown;
  auto state = files_->look(record.live, place_of(catalog.content_of(record)));
  // Live files that cannot be looked at (a person removed them) are not those of the snapshot.
  shown.changed = state ? state->changed : true;
  if (state) shown.used += state->used;
  return shown;
}

Result<std::vector<Dataset>> CatalogStore::list() {
  Catalog now = catalog();
  std::vector<Dataset> datasets;
  datasets.reserve(now.datasets().size());
  for (const auto& [name, record] : now.datasets())
    datasets.push_back(show(now, name, *record));
  return datasets;
}

Result<Dataset> CatalogStore::inspect(const DatasetName& dataset) {
  Catalog now = catalog();
  ZED_TRY(auto record, now.find(dataset));
  return show(now, dataset, *record);
}

Status CatalogStore::adopt_missing() {
  auto missing = files_->missing(catalog());
  if (missing.empty()) return {};
  return catalog_.commit([&missing](Catalog& next) -> Status {
    std::vector<SnapshotName> lost;
    for (const auto& [name, record] : next.datasets())
      for (const SnapshotRef& snapshot : record->snapshots)
        if (std::find(missing.begin(), missing.end(), snapshot->files) != missing.end())
          lost.push_back({name, snapshot->snapshot.name});
    for (const SnapshotName& name : lost)
      next.forget(name);
    return {};
  });
}

Result<env::Store::Changes> CatalogStore::changes_since(const std::string& cursor) {
  ZED_CHECK(adopt_missing());
  Catalog now = catalog();
  Changes changes{instance_ + "-" + std::to_string(now.counter()), {}};
  std::optional<std::uint64_t> since;
  if (cursor.starts_with(instance_ + "-"))
    since = parse_number<std::uint64_t>(std::string_view(cursor).substr(instance_.size() + 1));
  // The counter never reaches the largest number, so that stands for "everything".
  changes.datasets = now.changed_after(since.value_or(UINT64_MAX));
  return changes;
}

// ---- datasets -----------------------------------------------------------------------------------

Status CatalogStore::create(const DatasetName& dataset, const Properties& properties) {
  Turns::Turn turn(turns_, {{dataset}});
  ZED_CHECK(catalog().may_create(dataset, properties));
  // The folder comes with it: a job's first start would have to name it in a change of its own.
  std::string live = files_->new_place(PlaceKind::live, dataset.leaf());
  auto made = files_->make_live(live, "", false);
  if (made)
    made = catalog_.commit([&](Catalog& next) { return next.create(dataset, properties, live); });
  if (!made) files_->drop(live);
  return made;
}

Status CatalogStore::set(const DatasetName& dataset, const PropertyChanges& changes) {
  return catalog_.commit([&](Catalog& next) { return next.set(dataset, {changes, {}}); });
}

Status CatalogStore::set_readonly(const DatasetName& dataset, bool readonly) {
  return change(dataset, {}, readonly);
}

Status CatalogStore::change(const DatasetName& dataset, const PropertyChanges& changes,
                            bool readonly) {
  Turns::Turn turn(turns_, {{dataset}});
  if (!readonly) ZED_CHECK(transfers_.none_into(dataset));
  ZED_CHECK(catalog_.commit([&](Catalog& next) { return next.set(dataset, {changes, readonly}); }));
  return protect(dataset, readonly);
}

Status CatalogStore::protect(const DatasetName& dataset, bool readonly) {
  ZED_TRY(auto record, catalog().find(dataset));
  // A crash before this leaves the folder as it was; open_live() makes it right.
  return record->live.empty() ? Status() : files_->protect_live(record->live, readonly);
}

Result<std::string> CatalogStore::settle_live(const DatasetName& dataset) {
  Catalog now = catalog();
  ZED_TRY(auto record, now.find(dataset));
  if (!record->live.empty()) return record->live;
  std::string place = files_->new_place(PlaceKind::live, dataset.leaf());
  auto made = files_->make_live(place, place_of(now.content_of(*record)), record->readonly);
  if (made) made = catalog_.commit([&](Catalog& next) { return next.move_live(dataset, place); });
  if (made) return place;
  files_->drop(place);
  return fail(std::move(made).error());
}

Result<std::filesystem::path> CatalogStore::open_live(const DatasetName& dataset) {
  Turns::Turn turn(turns_, {{dataset}});
  ZED_TRY(auto record, catalog().find(dataset));
  if (record->partial && record->partial->made_dataset)
    return fail(ErrorCode::busy, dataset.str() + " has not been received yet");
  ZED_TRY(auto place, settle_live(dataset));
  ZED_TRY(auto path, files_->live_path(place));
  ZED_CHECK(files_->protect_live(place, record->readonly));
  return path;
}

Status CatalogStore::rename(const DatasetName& from, const DatasetName& to) {
  Turns::Turn turn(turns_, {{from, true}, {to, true}});
  Catalog now = catalog();
  ZED_CHECK(now.find(from));
  for (const auto& [name, record] : now.datasets())
    if (name.is_under(from.str())) ZED_CHECK(transfers_.none_of(name, *record));
  return catalog_.commit([&](Catalog& next) { return next.rename(from, to); });
}

Status CatalogStore::clone(const SnapshotName& origin, const DatasetName& dataset,
                           const Properties& properties) {
  Turns::Turn turn(turns_, {{origin.dataset}, {dataset}});
  return catalog_.commit([&](Catalog& next) { return next.clone(origin, dataset, properties); });
}

Status CatalogStore::promote(const DatasetName& clone) {
  Catalog now = catalog();
  ZED_TRY(auto record, now.find(clone));
  if (!record->origin) return {};
  auto parent = now.holder_of(*record->origin);
  if (!parent)
    return fail(ErrorCode::not_found, "the snapshot that " + clone.str() + " came from is gone");
  Turns::Turn turn(turns_, {{clone}, {*parent}});
  now = catalog();
  for (const DatasetName& name : {clone, *parent})
    if (auto found = now.find(name)) ZED_CHECK(transfers_.none_of(name, **found));
  return catalog_.commit([&](Catalog& next) { return next.promote(clone); });
}

Status CatalogStore::revert_live(const DatasetName& dataset) {
  Turns::Turn turn(turns_, {{dataset}});
  Catalog now = catalog();
  ZED_CHECK(now.may_revert(dataset));
  ZED_CHECK(transfers_.none_into(dataset));
  ZED_TRY(auto record, now.find(dataset));
  if (record->live.empty()) return {};
  ZED_CHECK(catalog_.commit([&](Catalog& next) { return next.move_live(dataset, ""); }));
  files_->drop(record->live);
  return {};
}

Status CatalogStore::destroy(const DatasetName& dataset) {
  Turns::Turn turn(turns_, {{dataset}});
  ZED_TRY(auto record, catalog().find(dataset));
  ZED_CHECK(transfers_.none_of(dataset, *record));
  ZED_CHECK(catalog_.commit([&](Catalog& next) { return next.destroy(dataset); }));
  if (!record->live.empty()) files_->drop(record->live);
  for (const SnapshotRef& snapshot : record->snapshots)
    files_->drop(snapshot->files);
  return {};
}

// ---- snapshots ----------------------------------------------------------------------------------

Result<std::filesystem::path> CatalogStore::snapshot_path(const SnapshotName& snapshot) {
  ZED_TRY(auto record, catalog().find(snapshot));
  return files_->snapshot_path(record->files);
}

Result<Snapshot>
CatalogStore::take(const SnapshotName& name,
                   const std::function<Result<Snapshot>(Catalog&, const NewSnapshot&)>& add) {
  Catalog now = catalog();
  ZED_TRY(auto record, now.find(name.dataset));
  SnapshotSource source{record->live, place_of(now.content_of(*record)),
                        record->newest() != nullptr ? record->newest()->files : ""};
  NewSnapshot made;
  made.files = files_->new_place(PlaceKind::snapshot, name.snapshot);
  made.guid = files_->random();
  made.created = files_->wall_time();
  auto taken = files_->take(source, made.files);
  Result<Snapshot> added = fail(ErrorCode::internal, "not taken");
  if (taken) {
    made.used = taken->used;
    made.referenced = taken->referenced;
    added = catalog_.commit([&](Catalog& next) { return add(next, made); });
  } else {
    added = fail(std::move(taken).error());
  }
  if (!added) files_->drop(made.files);
  return added;
}

Result<Snapshot> CatalogStore::snapshot(const SnapshotName& name, const Properties& properties) {
  Turns::Turn turn(turns_, {{name.dataset}});
  ZED_CHECK(catalog().may_snapshot(name, properties));
  return take(name, [&](Catalog& next, const NewSnapshot& made) {
    return next.add_snapshot(name, properties, made);
  });
}

Result<Snapshot> CatalogStore::seal(const SnapshotName& name, const Properties& properties,
                                    const PropertyChanges& changes) {
  Turns::Turn turn(turns_, {{name.dataset}});
  ZED_CHECK(catalog().may_snapshot(name, properties));
  auto sealed = take(name, [&](Catalog& next, const NewSnapshot& made) {
    return next.add_snapshot(name, properties, made, {changes, true});
  });
  if (sealed) ZED_CHECK(protect(name.dataset, true));
  return sealed;
}

Result<Snapshot> CatalogStore::commit_checkpoint(const env::CommitRequest& request) {
  Turns::Turn turn(turns_, {{request.dataset}});
  ZED_CHECK(catalog().may_commit(request));
  return take({request.dataset, request.snapshot},
              [&](Catalog& next, const NewSnapshot& made) { return next.commit(request, made); });
}

Status CatalogStore::hold(const SnapshotName& snapshot, const std::string& tag) {
  return catalog_.commit([&](Catalog& next) { return next.hold(snapshot, tag); });
}

Status CatalogStore::release(const SnapshotName& snapshot, const std::string& tag) {
  return catalog_.commit([&](Catalog& next) { return next.release(snapshot, tag); });
}

Status CatalogStore::destroy_snapshot(const SnapshotName& snapshot) {
  Turns::Turn turn(turns_, {{snapshot.dataset}});
  Catalog now = catalog();
  ZED_TRY(auto record, now.find(snapshot));
  ZED_CHECK(now.may_destroy(snapshot));
  ZED_CHECK(transfers_.none_of(snapshot, *record));
  ZED_CHECK(transfers_.none_into(snapshot.dataset));
  ZED_TRY(auto dataset, now.find(snapshot.dataset));
  // Live files that are only thought of as this snapshot's must not become an older one's.
  if (dataset->live.empty() && dataset->newest() == record.get())
    ZED_CHECK(settle_live(snapshot.dataset));
  ZED_CHECK(catalog_.commit([&](Catalog& next) { return next.destroy(snapshot); }));
  files_->drop(record->files);
  return {};
}

// ---- sending ------------------------------------------------------------------------------------

class CatalogStore::Sending final : public env::SendStream {
public:
  Sending(Transfers& transfers, std::vector<std::uint64_t> guids)
      : transfers_(transfers), guids_(std::move(guids)) {
    transfers_.begin_send(guids_);
  }
  ~Sending() override { transfers_.end_send(guids_); }
  void begin(std::unique_ptr<env::SendStream> stream) { stream_ = std::move(stream); }

  Result<std::size_t> read(std::span<std::byte> buffer) override { return stream_->read(buffer); }
  Bytes total() const override { return stream_->total(); }
  Bytes resumed_at() const override { return stream_->resumed_at(); }

private:
  Transfers& transfers_;
  std::vector<std::uint64_t> guids_;
  std::unique_ptr<env::SendStream> stream_;
};

Result<std::unique_ptr<env::SendStream>> CatalogStore::send(const env::SendRequest& request) {
  if (request.kind != StreamKind::files)
    return fail(ErrorCode::unsupported, "this store sends streams of the kind `files` only");
  // The turn keeps both snapshots until they are marked as being sent.
  std::optional<Turns::Turn> turn;
  turn.emplace(turns_, std::vector<Claim>{{request.dataset}});
  Catalog now = catalog();
  ZED_TRY(auto snapshot, now.find(request.dataset, request.snapshot));
  SnapshotRef base;
  if (request.base) {
    ZED_TRY(base, now.find(request.dataset, *request.base));
    if (base->snapshot.createtxg >= snapshot->snapshot.createtxg)
      return fail(ErrorCode::invalid, "@" + base->snapshot.name + " is not older than @" +
                                          snapshot->snapshot.name + " of " + request.dataset.str());
  }
  std::vector<std::uint64_t> guids{snapshot->snapshot.guid};
  if (base) guids.push_back(base->snapshot.guid);
  auto sending = std::make_unique<Sending>(transfers_, std::move(guids));
  turn.reset();

  SendPlan plan{request.snapshot, request.base, {}, {}, request.resume_token};
  if (base) {
    ZED_TRY(plan.base_manifest, files_->manifest(base->files));
  }
  ZED_TRY(plan.manifest, files_->manifest(snapshot->files));
  ZED_TRY(auto content, files_->content(snapshot->files));
  ZED_TRY(auto stream, make_sender(std::move(plan), std::move(content)));
  sending->begin(std::move(stream));
  return sending;
}

// ---- receiving ----------------------------------------------------------------------------------

class CatalogStore::Receiving final : public env::ReceiveStream {
public:
  Receiving(CatalogStore& store, env::ReceiveRequest request, std::string place)
      : store_(store), request_(std::move(request)), place_(std::move(place)) {}
  ~Receiving() override {
    // What could not be kept is sent again: nothing is wrong then but time.
    if (receiver_ && !finished_) (void)receiver_->keep();
    receiver_.reset();
    store_.transfers_.end_receive(request_.dataset);
  }

  Status begin(Receiver::Expected expected) {
    ZED_TRY(staging_, store_.files_->staging(place_));
    receiver_.emplace(std::move(expected), *staging_);
    return {};
  }
  Status write(std::span<const std::byte> bytes) override { return receiver_->write(bytes); }
  Result<Snapshot> finish() override {
    if (finished_) return fail(ErrorCode::invalid, "this receive is finished already");
    ZED_TRY(auto arrival, receiver_->finish());
    ZED_TRY(auto snapshot, store_.finish(request_, arrival, place_));
    finished_ = true;
    return snapshot;
  }

private:
  CatalogStore& store_;
  env::ReceiveRequest request_;
  std::string place_;
  std::unique_ptr<Staging> staging_;
  std::optional<Receiver> receiver_;
  bool finished_ = false;
};

Status CatalogStore::unchanged(const Catalog& catalog, const DatasetName& name) {
  auto record = catalog.find(name);
  if (!record || (*record)->live.empty()) return {};
  ZED_TRY(auto state, files_->look((*record)->live, place_of(catalog.content_of(**record))));
  if (!state.changed) return {};
  return fail(ErrorCode::stale,
              "the files of " + name.str() + " were changed after its newest snapshot",
              "take a snapshot of them, or revert them, first");
}

namespace {

Status has_room(FileSpace& files, const env::ReceiveRequest& request) {
  if (request.expected <= Bytes{}) return {};
  ZED_TRY(env::Space space, files.space());
  if (request.expected <= space.free) return {};
  return fail(ErrorCode::no_space,
              "receive into " + request.dataset.str() + ": " + show(request.expected) +
                  " are to come, and " + show(space.free) + " are free",
              "make room, or thin checkpoints out: zedctl prune JOB");
}

}  // namespace

Result<std::unique_ptr<env::ReceiveStream>>
CatalogStore::receive(const env::ReceiveRequest& request) {
  if (request.kind != StreamKind::files)
    return fail(ErrorCode::unsupported, "this store receives streams of the kind `files` only");
  Turns::Turn turn(turns_, {{request.dataset}});
  Catalog before = catalog();
  ZED_CHECK(before.may_receive(request));
  ZED_CHECK(has_room(*files_, request));
  ZED_CHECK(unchanged(before, request.dataset));
  ZED_CHECK(transfers_.begin_receive(request.dataset));
  std::string fresh = files_->new_place(PlaceKind::receiving, request.snapshot);
  auto begun = catalog_.commit([&](Catalog& next) { return next.begin_receive(request, fresh); });
  if (!begun) {
    transfers_.end_receive(request.dataset);
    return fail(std::move(begun).error());
  }
  ZED_TRY(auto record, catalog().find(request.dataset));
  auto stream = std::make_unique<Receiving>(*this, request, record->partial->files);
  auto old = before.find(request.dataset);
  if (old && (*old)->partial && (*old)->partial->files != record->partial->files)
    files_->drop((*old)->partial->files);

  Receiver::Expected expected{record->partial->snapshot, request.base, {}};
  if (record->newest() != nullptr) {
    ZED_TRY(expected.base_manifest, files_->manifest(record->newest()->files));
  }
  ZED_CHECK(stream->begin(std::move(expected)));
  return stream;
}

Result<Snapshot> CatalogStore::finish(const env::ReceiveRequest& request, const Arrival& arrival,
                                      const std::string& receiving) {
  Turns::Turn turn(turns_, {{request.dataset}});
  Catalog before = catalog();
  ZED_CHECK(before.may_receive(request));
  ZED_CHECK(unchanged(before, request.dataset));
  ZED_TRY(auto record, before.find(request.dataset));
  NewSnapshot made;
  made.files = files_->new_place(PlaceKind::snapshot, request.snapshot);
  made.guid = files_->random();
  made.created = files_->wall_time();
  std::string base = record->newest() != nullptr ? record->newest()->files : "";
  auto assembled = files_->assemble(arrival, base, receiving, made.files);
  Result<Snapshot> snapshot = fail(ErrorCode::internal, "not assembled");
  if (assembled) {
    made.used = assembled->used;
    made.referenced = assembled->referenced;
    snapshot = catalog_.commit([&](Catalog& next) { return next.finish_receive(request, made); });
  } else {
    snapshot = fail(std::move(assembled).error());
  }
  if (!snapshot) {
    files_->drop(made.files);
    return snapshot;
  }
  if (!record->live.empty()) files_->drop(record->live);
  files_->drop(receiving);
  return snapshot;
}

Result<std::string> CatalogStore::resume_token(const DatasetName& dataset,
                                               const CheckpointId& snapshot) {
  Turns::Turn turn(turns_, {{dataset}});
  ZED_CHECK(transfers_.none_into(dataset));
  auto record = catalog().find(dataset);
  if (!record || !(*record)->partial || (*record)->partial->snapshot != snapshot)
    return std::string();
  ZED_TRY(auto staging, files_->staging((*record)->partial->files));
  return Receiver::token(*staging);
}

Status CatalogStore::abort_receive(const DatasetName& dataset) {
  Turns::Turn turn(turns_, {{dataset}});
  ZED_CHECK(transfers_.none_into(dataset));
  auto record = catalog().find(dataset);
  if (!record || !(*record)->partial) return {};
  ZED_CHECK(catalog_.commit([&](Catalog& next) { return next.abort_receive(dataset); }));
  files_->drop((*record)->partial->files);
  return {};
}

}  // namespace zed::store
