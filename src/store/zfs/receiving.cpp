// The receiving end of both kinds of stream, and what is done about one that was cut off. A marker
// on the dataset (marker.hpp) says from before the first byte what is going on.

#include <algorithm>

#include <fcntl.h>

#include "base/log.hpp"
#include "base/text.hpp"
#include "store/catalog.hpp"
#include "store/dir/dir_staging.hpp"
#include "store/files/receiver.hpp"
#include "store/zfs/apply_tree.hpp"
#include "store/zfs/errors.hpp"
#include "store/zfs/store.hpp"

namespace zed::store::zfs {
namespace {

using Phase = Marker::Phase;

/// What a replica is born with: it is not mounted at boot over somebody's folder (OpenZFS issue
/// 13378), nobody writes to it, and nothing in it acts.
constexpr const char* replica_options[] = {"readonly=on", "canmount=noauto", "atime=off",
                                           "setuid=off", "devices=off"};

void add_replica_options(Arguments& arguments) {
  for (const char* option : replica_options)
    arguments.insert(arguments.end(), {"-o", option});
}

std::string text_of(const std::optional<CheckpointId>& id) {
  return id ? id->str() : "none";
}

disk::Fd open_folder(const std::filesystem::path& path) {
  return disk::Fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

/// Ends with the stream that holds it.
class ReceiveMark {
public:
  ReceiveMark(Transfers& transfers, DatasetName dataset)
      : transfers_(transfers), dataset_(std::move(dataset)) {}
  ~ReceiveMark() { transfers_.end_receive(dataset_); }
  ReceiveMark(const ReceiveMark&) = delete;
  ReceiveMark& operator=(const ReceiveMark&) = delete;

private:
  Transfers& transfers_;
  DatasetName dataset_;
};

}  // namespace

// ---- files --------------------------------------------------------------------------------------

class ZfsStore::FilesReceiving final : public env::ReceiveStream {
public:
  FilesReceiving(ZfsStore& store, env::ReceiveRequest request)
      : store_(store), request_(std::move(request)) {}
  ~FilesReceiving() override {
    // What could not be kept is sent again: nothing is wrong then but time.
    if (receiver_ && !finished_) (void)receiver_->keep();
  }

  Status begin(const Record& record, Manifest base) {
    ZED_TRY(auto folder, store_.work_.staging_folder(record.guid));
    staging_ = make_dir_staging(std::move(folder));
    Receiver::Expected expected{id_in(request_.snapshot_properties).value_or(CheckpointId{}),
                                request_.base, std::move(base)};
    receiver_.emplace(std::move(expected), *staging_);
    return {};
  }
  void own(std::unique_ptr<ReceiveMark> mark) { mark_ = std::move(mark); }

  Status write(std::span<const std::byte> bytes) override { return receiver_->write(bytes); }
  Result<Snapshot> finish() override {
    if (finished_) return fail(ErrorCode::invalid, "this receive is finished already");
    ZED_TRY(auto arrival, receiver_->finish());
    ZED_TRY(auto snapshot, store_.apply_arrival(request_, arrival));
    finished_ = true;
    return snapshot;
  }

private:
  ZfsStore& store_;
  env::ReceiveRequest request_;
  std::unique_ptr<ReceiveMark> mark_;  // outlives the receiver, which keeps what has arrived
  std::unique_ptr<Staging> staging_;
  std::optional<Receiver> receiver_;
  bool finished_ = false;
};

Status ZfsStore::mark(const DatasetName& dataset, const Marker& marker,
                      const env::ReceiveRequest& request, Arguments also) {
  ZED_TRY(auto record, glance(dataset));
  Properties wanted = marker_properties(marker, request);
  Transaction transaction;
  transaction.dataset = dataset;
  for (const auto& [name, value] : wanted)
    transaction.changes[name] = value;
  for (const std::string& name : record.marked.kept)
    if (!wanted.contains(name)) transaction.also_removed.push_back(name);
  std::string what = "prepare " + dataset.str() + " for a receive";
  ZED_CHECK(transactions_.apply(what, transaction));
  if (also.empty()) return {};
  also.insert(also.begin(), "set");
  also.push_back(zfs_.full(dataset));
  ZED_CHECK(zfs_.run(what, std::move(also)));
  return {};
}

Result<std::unique_ptr<env::ReceiveStream>>
ZfsStore::receive_files(const env::ReceiveRequest& request, std::optional<Record> record) {
  const DatasetName& name = request.dataset;
  if (!privileged_)
    return fail(ErrorCode::unsupported, "files cannot be received into " + zfs_.full(name),
                "only root may mount: let the other end be a ZFS store too");
  if (!record) {
    Arguments arguments{"create"};
    add_replica_options(arguments);
    Zfs::add_options(arguments, marker_properties(Marker::of(request, true), request));
    arguments.push_back(zfs_.full(name));
    ZED_CHECK(make_below(name, "make " + name.str(), arguments));
    ZED_TRY(record, look(name));
  } else {
    const auto& old = record->marked.marker;
    ZED_CHECK(mark(name, Marker::of(request, old && old->made_dataset), request));
  }
  Manifest base;
  if (const Snapshot* newest = record->dataset.newest()) {
    ZED_TRY(base, manifest(*record, *newest));
  }
  auto stream = std::make_unique<FilesReceiving>(*this, request);
  ZED_CHECK(stream->begin(*record, std::move(base)));
  return stream;
}

Result<Snapshot> ZfsStore::apply_arrival(const env::ReceiveRequest& request,
                                         const Arrival& arrival) {
  const DatasetName& name = request.dataset;
  Turns::Turn turn(turns_, {{name}});
  ZED_TRY(auto record, look_exactly(name));
  ZED_CHECK(may_receive(&record, request));
  if (!record.marked.marker)
    return fail(ErrorCode::stale, name.str() + " is not the dataset that this receive began in");
  Marker marker = *record.marked.marker;
  marker.phase = Phase::applying;
  ZED_CHECK(mark(name, marker, request, {"readonly=off"}));

  auto fill = [&]() -> Status {
    disk::Fd base;
    if (const Snapshot* newest = record.dataset.newest()) {
      ZED_TRY(auto path, mounting_.snapshot_files(record, newest->name));
      base = open_folder(path);
      if (!base) return no_snapshot(name.str() + "@" + newest->name);
    }
    ZED_TRY(auto path, mounting_.mount(record));
    disk::Fd live = open_folder(path);
    if (!live) return fail(ErrorCode::io, "open the files of " + name.str() + " in " + path);
    ZED_TRY(auto staged, work_.staging_folder(record.guid));
    ZED_CHECK(apply_in_place(arrival, base ? base.get() : -1, staged.get(), live.get()));
    Transaction transaction;
    transaction.dataset = name;
    transaction.snapshots = Transaction::Snapshots::take;
    transaction.snapshot = request.snapshot;
    transaction.snapshot_properties = request.snapshot_properties;
    transaction.changes = request.dataset_changes;
    marker.phase = Phase::sealing;
    transaction.changes[std::string(marker_name)] = marker.str();
    return transactions_.apply("snapshot what " + name.str() + " received", transaction);
  };
  auto filled = fill();
  ZED_TRY(auto now, look(name));
  auto settled = settle(now);
  if (!filled) return fail(std::move(filled).error());
  if (!settled) return fail(std::move(settled).error());
  return find_snapshot({name, request.snapshot});
}

// ---- zfs ----------------------------------------------------------------------------------------

class ZfsStore::StreamReceiving final : public env::ReceiveStream {
public:
  StreamReceiving(ZfsStore& store, env::ReceiveRequest request, std::unique_ptr<Child> child)
      : store_(store), request_(std::move(request)),
        what_("receive " + request_.dataset.str() + "@" + request_.snapshot),
        child_(std::move(child)) {}
  void own(std::unique_ptr<ReceiveMark> mark) { mark_ = std::move(mark); }

  Status write(std::span<const std::byte> bytes) override {
    if (ended_) return fail(*ended_);
    auto written = child_->write(bytes);
    if (written || written.error().code != ErrorCode::unavailable) return written;
    return fail(end());
  }

  Result<Snapshot> finish() override {
    if (ended_) return fail(*ended_);
    ZED_TRY(auto output, child_->finish());
    ended_ = Error{ErrorCode::invalid, "this receive is finished already", {}, {}};
    if (!output.ok) return fail(error_of(what_, output.err));
    Turns::Turn turn(store_.turns_, {{request_.dataset}});
    ZED_TRY(auto record, store_.look(request_.dataset));
    if (!record.has_unsealed)
      return fail(ErrorCode::stale, what_ + ": somebody destroyed or renamed it meanwhile");
    return store_.finish_stream(request_.dataset, record);
  }

private:
  /// Why the command has stopped reading.
  Error end() {
    auto output = child_->finish();
    if (!output)
      ended_ = output.error();
    else if (output->ok)
      ended_ = Error{ErrorCode::corrupt, what_ + ": there is more after the stream's end", {}, {}};
    else
      ended_ = error_of(what_, output->err);
    return *ended_;
  }

  ZfsStore& store_;
  env::ReceiveRequest request_;
  std::string what_;
  std::unique_ptr<ReceiveMark> mark_;  // outlives the command, which keeps what has arrived
  std::unique_ptr<Child> child_;
  std::optional<Error> ended_;
};

Result<std::unique_ptr<env::ReceiveStream>>
ZfsStore::receive_zfs(const env::ReceiveRequest& request, std::optional<Record> record) {
  const DatasetName& name = request.dataset;
  // -u: not mounted now; the options see to it that it is not mounted at boot either.
  Arguments arguments{"zfs", "receive", "-s", "-u"};
  if (!record) {
    Marker marker = Marker::of(request, true);
    add_replica_options(arguments);
    Zfs::add_options(arguments, marker_properties(marker, request));
    ZED_CHECK(make_parents(name));
  } else {
    const auto& old = record->marked.marker;
    ZED_CHECK(mark(name, Marker::of(request, old && old->made_dataset), request));
  }
  arguments.push_back(zfs_.full(name) + "@" + request.snapshot);
  ZED_TRY(auto child, zfs_.commands().start(arguments, Commands::Pipe::to_it));
  return std::make_unique<StreamReceiving>(*this, request, std::move(child));
}

Result<Snapshot> ZfsStore::finish_stream(const DatasetName& dataset, const Record& record) {
  const Marker& marker = *record.marked.marker;
  Transaction transaction;
  transaction.dataset = dataset;
  transaction.snapshots = Transaction::Snapshots::dress;
  transaction.snapshot = marker.word;
  transaction.snapshot_properties = record.marked.for_snapshot;
  transaction.changes = record.marked.for_dataset;
  transaction.also_removed = record.marked.kept;
  if (!record.dataset.readonly)
    ZED_CHECK(zfs_.run("make " + dataset.str() + " readonly",
                       {"set", "readonly=on", zfs_.full(dataset)}));
  ZED_CHECK(transactions_.apply("set the properties of " + dataset.str() + "@" + marker.word,
                                transaction));
  // Read back: what a receive promises is looked at once more before it counts.
  ZED_TRY(auto snapshot, find_snapshot({dataset, marker.word}));
  if (snapshot.properties != record.marked.for_snapshot)
    return fail(ErrorCode::io,
                dataset.str() + "@" + marker.word + " does not have the properties that were set");
  return snapshot;
}

// ---- both ---------------------------------------------------------------------------------------

Status ZfsStore::may_receive(const Record* record, const env::ReceiveRequest& request) const {
  const std::string& name = request.dataset.str();
  auto id = id_in(request.snapshot_properties);
  if (!id) return fail(ErrorCode::invalid, "a received snapshot of " + name + " needs an id");
  ZED_CHECK(check_properties(request.snapshot_properties));
  ZED_CHECK(check_properties(request.dataset_changes));
  ZED_CHECK(SnapshotName::of(request.dataset, request.snapshot));
  if (record == nullptr) {
    if (request.base) return fail(ErrorCode::not_found, "there is no dataset " + name);
    return {};
  }
  const Dataset& dataset = record->dataset;
  auto newest = dataset.newest() != nullptr ? std::optional(dataset.newest()->id) : std::nullopt;
  if (newest != request.base)
    return fail(ErrorCode::stale, name + ": its newest snapshot is " + text_of(newest) +
                                      ", but the stream's base is " + text_of(request.base));
  if (dataset.find(request.snapshot) != nullptr || dataset.find(*id) != nullptr)
    return fail(ErrorCode::exists, name + "@" + request.snapshot + " exists already");
  if (dataset.changed)
    return fail(ErrorCode::stale,
                "the files of " + name + " were changed after its newest snapshot",
                "take a snapshot of them, or revert them, first");
  return {};
}

/// `available` counts what is free in the pool and every quota above.
Status ZfsStore::has_room(const DatasetName& dataset, Bytes expected) const {
  if (expected <= Bytes{}) return {};
  std::string full = zfs_.full(dataset);
  auto facts = zfs_.datasets(full, Reach::itself);
  while (!facts && facts.error().code == ErrorCode::not_found && full != zfs_.root()) {
    full = full.substr(0, full.find_last_of('/'));
    facts = zfs_.datasets(full, Reach::itself);
  }
  if (!facts) return fail(std::move(facts).error());
  const Bytes free{static_cast<std::int64_t>(facts->at(full).number("available"))};
  if (expected <= free) return {};
  return fail(ErrorCode::no_space,
              "receive into " + dataset.str() + ": " + show(expected) + " are to come, and " +
                  show(free) + " are free in " + full,
              "zfs list -o space " + full + " shows what takes it, zfs get quota,refquota -r " +
                  zfs_.pool() + " what is allowed");
}

Result<std::unique_ptr<env::ReceiveStream>> ZfsStore::receive(const env::ReceiveRequest& request) {
  const DatasetName& name = request.dataset;
  Turns::Turn turn(turns_, {{name}});
  ZED_CHECK(transfers_.begin_receive(name));
  auto mark = std::make_unique<ReceiveMark>(transfers_, name);

  auto found = look(name);
  if (!found && found.error().code != ErrorCode::not_found) return fail(std::move(found).error());
  std::optional<Record> record;
  if (found) record = std::move(*found);
  if (record && record->marked.marker) {
    ZED_TRY(bool moved, settle(*record));
    if (moved) {
      ZED_TRY(record, look(name));
    }
  }
  // What was written a moment ago is not counted yet, and a receive that began would have to end.
  if (record && !record->dataset.readonly && !record->dataset.changed) {
    ZED_TRY(record, look_exactly(name));
  }
  ZED_CHECK(may_receive(record ? &*record : nullptr, request));
  if (record && record->is_receiving()) {
    if (!record->marked.marker)
      return fail(ErrorCode::busy, name.str() + " has an unfinished receive that is not Zed's",
                  "finish it, or end it by `zfs receive -A " + zfs_.full(name) + "`");
    if (!record->marked.marker->continues(request)) {
      ZED_CHECK(drop_partial(*record));
      auto left = look(name);
      if (!left && left.error().code != ErrorCode::not_found) return fail(std::move(left).error());
      record.reset();
      if (left) record = std::move(*left);
    }
  }
  ZED_CHECK(has_room(name, request.expected));
  if (request.kind == StreamKind::zfs) {
    ZED_TRY(auto stream, receive_zfs(request, std::move(record)));
    static_cast<StreamReceiving&>(*stream).own(std::move(mark));
    return stream;
  }
  ZED_TRY(auto stream, receive_files(request, std::move(record)));
  static_cast<FilesReceiving&>(*stream).own(std::move(mark));
  return stream;
}

Result<std::string> ZfsStore::resume_token(const DatasetName& dataset,
                                           const CheckpointId& snapshot) {
  Turns::Turn turn(turns_, {{dataset}});
  ZED_CHECK(transfers_.none_into(dataset));
  auto record = look(dataset);
  if (!record && record.error().code == ErrorCode::not_found) return std::string();
  if (!record) return fail(std::move(record).error());
  const auto& marker = record->marked.marker;
  if (!marker || marker->snapshot != snapshot) return std::string();
  ZED_TRY(bool moved, settle(*record));
  if (moved) {
    ZED_TRY(record, look(dataset));
    if (!marker) return std::string();
  }
  if (marker->kind == StreamKind::zfs) return record->token;
  ZED_TRY(auto folder, work_.staging_folder(record->guid));
  auto staging = make_dir_staging(std::move(folder));
  return Receiver::token(*staging);
}

Status ZfsStore::drop_partial(const Record& record) {
  const DatasetName& name = record.dataset.name;
  std::string full = zfs_.full(name);
  if (!record.token.empty())
    ZED_CHECK(zfs_.run("abort the receive into " + name.str(), {"receive", "-A", full}));
  const auto& marker = record.marked.marker;
  if (marker && marker->kind == StreamKind::files) work_.drop_staging(record.guid);
  auto left = look(name);
  if (!left && left.error().code == ErrorCode::not_found) return {};
  if (!left) return fail(std::move(left).error());
  if (marker && marker->made_dataset && left->dataset.snapshots.empty() && !left->has_unsealed) {
    // Without -r it refuses if anything else is in it after all.
    ZED_CHECK(zfs_.run("remove what was left of " + name.str(), {"destroy", full}));
    return {};
  }
  Transaction transaction;
  transaction.dataset = name;
  transaction.also_removed = left->marked.kept;
  return transactions_.apply("forget the receive into " + name.str(), transaction);
}

Status ZfsStore::abort_receive(const DatasetName& dataset) {
  Turns::Turn turn(turns_, {{dataset}});
  ZED_CHECK(transfers_.none_into(dataset));
  auto record = look(dataset);
  if (!record && record.error().code == ErrorCode::not_found) return {};
  if (!record) return fail(std::move(record).error());
  ZED_TRY(bool moved, settle(*record));
  if (moved) {
    ZED_TRY(record, look(dataset));
  }
  return record->is_receiving() ? drop_partial(*record) : Status();
}

Result<bool> ZfsStore::settle(const Record& record) {
  if (!record.marked.marker) return false;
  Marker marker = *record.marked.marker;
  const DatasetName& name = record.dataset.name;
  std::string full = zfs_.full(name);
  if (marker.kind == StreamKind::zfs) {
    if (!record.has_unsealed || !record.token.empty()) return false;
    ZED_CHECK(finish_stream(name, record));
    return true;
  }
  switch (marker.phase) {
  case Phase::receiving: return false;
  case Phase::applying:
    // Half of the files are in place: back to the base. Without one they are nothing yet, and the
    // next attempt begins by removing them.
    if (const Snapshot* newest = record.dataset.newest())
      ZED_CHECK(roll_back("undo a receive into " + name.str(), name, newest->name));
    marker.phase = Phase::receiving;
    break;
  case Phase::sealing: break;
  }
  ZED_CHECK(zfs_.run("make " + name.str() + " readonly", {"set", "readonly=on", full}));
  Transaction transaction;
  transaction.dataset = name;
  if (marker.phase == Phase::sealing) {
    work_.drop_staging(record.guid);
    transaction.also_removed = record.marked.kept;
  } else {
    transaction.changes[std::string(marker_name)] = marker.str();
  }
  ZED_CHECK(transactions_.apply("settle " + name.str(), transaction));
  return true;
}

}  // namespace zed::store::zfs
