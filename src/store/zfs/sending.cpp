// The sending end of both kinds of stream.

#include <algorithm>

#include <fcntl.h>

#include "store/dir/folder_source.hpp"
#include "store/dir/tree.hpp"
#include "store/zfs/errors.hpp"
#include "store/zfs/resume.hpp"
#include "store/zfs/store.hpp"

namespace zed::store::zfs {
namespace {

/// Flags that never change for a pair of datasets: leaving large blocks out later makes a stream
/// that its own source no longer takes back (OpenZFS issues 6224 and 18101).
constexpr const char* flags[] = {"-L", "-e", "-c"};

/// A person's word, on an encrypted dataset: its blocks leave this machine as they are on the disk
/// and need no key, here or there. It travels with the dataset, so a pair keeps to what it began
/// with: OpenZFS mixes raw and other streams in no history.
constexpr char raw_property[] = "raw";

bool is_raw(const Dataset& dataset) {
  return dataset.property(raw_property) == "on";
}

Arguments send_arguments(const std::string& snapshot, const std::string& base, bool raw) {
  Arguments arguments{"send"};
  arguments.insert(arguments.end(), std::begin(flags), std::end(flags));
  if (raw) arguments.emplace_back("-w");
  if (!base.empty()) arguments.insert(arguments.end(), {"-i", base});
  arguments.push_back(snapshot);
  return arguments;
}

/// Keeps snapshots from being destroyed by this store while they are sent. (Others are kept from it
/// by OpenZFS itself, and by the holds that the agent takes.)
class SendMark {
public:
  SendMark(Transfers& transfers, std::vector<std::uint64_t> guids)
      : transfers_(transfers), guids_(std::move(guids)) {
    transfers_.begin_send(guids_);
  }
  ~SendMark() { transfers_.end_send(guids_); }
  SendMark(const SendMark&) = delete;
  SendMark& operator=(const SendMark&) = delete;

private:
  Transfers& transfers_;
  std::vector<std::uint64_t> guids_;
};

class NativeStream final : public env::SendStream {
public:
  NativeStream(std::string what, std::unique_ptr<Child> child, Bytes total, Bytes resumed)
      : what_(std::move(what)), child_(std::move(child)), total_(total), resumed_(resumed) {}
  /// A command that is frozen would not notice that nobody reads any more.
  ~NativeStream() override {
    if (!ended_) child_->kill();
  }

  Result<std::size_t> read(std::span<std::byte> buffer) override {
    if (ended_) return std::size_t{0};
    ZED_TRY(std::size_t n, child_->read(buffer));
    if (n != 0) return n;
    ended_ = true;
    ZED_TRY(auto output, child_->finish());
    if (!output.ok) return fail(error_of(what_, output.err));
    return std::size_t{0};
  }
  Bytes total() const override { return total_; }
  Bytes resumed_at() const override { return resumed_; }

private:
  std::string what_;
  std::unique_ptr<Child> child_;
  Bytes total_;
  Bytes resumed_;
  bool ended_ = false;
};

constexpr std::int64_t second_in_ns = 1'000'000'000;

/// Whether a file that has this stamp in a later snapshot is the one that it was in an earlier one
/// made at `created`: a change after that would have left a later ctime.
bool same_file(const IndexEntry& old, const IndexEntry& now, WallTime created) {
  std::int64_t created_ns = created.ms * 1'000'000;
  return old.hashed && old.entry.kind == EntryKind::file && old.entry.size == now.entry.size &&
         old.stamp.inode == now.stamp.inode && old.stamp.mtime_ns == now.stamp.mtime_ns &&
         old.stamp.ctime_ns == now.stamp.ctime_ns && old.stamp.ctime_ns < created_ns - second_in_ns;
}

}  // namespace

class ZfsStore::Sending final : public env::SendStream {
public:
  Sending(Transfers& transfers, std::vector<std::uint64_t> guids)
      : mark_(transfers, std::move(guids)) {}
  void begin(std::unique_ptr<env::SendStream> stream) { stream_ = std::move(stream); }

  Result<std::size_t> read(std::span<std::byte> buffer) override { return stream_->read(buffer); }
  Bytes total() const override { return stream_->total(); }
  Bytes resumed_at() const override { return stream_->resumed_at(); }

private:
  SendMark mark_;
  std::unique_ptr<env::SendStream> stream_;
};

Result<std::unique_ptr<env::SendStream>> ZfsStore::send(const env::SendRequest& request) {
  // The turn keeps both snapshots until they are marked as being sent.
  std::optional<Turns::Turn> turn;
  turn.emplace(turns_, std::vector<Claim>{{request.dataset}});
  ZED_TRY(auto record, look(request.dataset));
  const Snapshot* snapshot = record.dataset.find(request.snapshot);
  if (snapshot == nullptr)
    return no_snapshot("with id " + request.snapshot.str() + " of " + request.dataset.str());
  if (request.kind != StreamKind::zfs && is_raw(record.dataset))
    return fail(ErrorCode::refused,
                request.dataset.str() + " is to leave this machine encrypted (com.zed:raw=on), and "
                                        "only another pool can take it so",
                "send it to a node on OpenZFS that has no copy of it as files");
  const Snapshot* base = request.base ? record.dataset.find(*request.base) : nullptr;
  std::string base_word = base != nullptr ? "@" + base->name : "";
  std::uint64_t base_txg = base != nullptr ? base->createtxg : 0;
  std::uint64_t base_guid = base != nullptr ? base->guid : 0;
  if (request.base && base == nullptr) {
    if (request.kind != StreamKind::zfs)
      return no_snapshot("with id " + request.base->str() + " of " + request.dataset.str());
    ZED_TRY(auto row, bookmarks_.find(request.dataset, *request.base));
    base_word = "#" + row.word;
    base_txg = row.bookmark.createtxg;
    base_guid = row.bookmark.guid;
  }
  if (request.base && base_txg >= snapshot->createtxg)
    return fail(ErrorCode::invalid, base_word + " is not older than @" + snapshot->name + " of " +
                                        request.dataset.str());
  std::vector<std::uint64_t> guids{snapshot->guid};
  if (base != nullptr) guids.push_back(base->guid);
  auto sending = std::make_unique<Sending>(transfers_, std::move(guids));
  turn.reset();
  auto stream = request.kind == StreamKind::zfs
                    ? send_zfs(request, record, *snapshot, base_word, base_guid)
                    : send_files(request, record, *snapshot, base);
  if (!stream) return fail(std::move(stream).error());
  sending->begin(std::move(*stream));
  return sending;
}

// ---- zfs ----------------------------------------------------------------------------------------

Result<std::unique_ptr<env::SendStream>>
ZfsStore::send_zfs(const env::SendRequest& request, const Record& record, const Snapshot& snapshot,
                   const std::string& base, std::uint64_t base_guid) {
  SnapshotName name{record.dataset.name, snapshot.name};
  std::string what = "send " + name.str();
  Arguments arguments = send_arguments(zfs_.full(name), base, is_raw(record.dataset));
  Arguments estimating = arguments;
  estimating.insert(estimating.begin() + 1, "-nvP");
  ZED_TRY(auto estimate, zfs_.run(what, std::move(estimating)));
  Bytes total{static_cast<std::int64_t>(parse_estimate(estimate).value_or(0))};
  if (request.resume_token.empty()) {
    arguments.insert(arguments.begin(), "zfs");
    ZED_TRY(auto child, zfs_.commands().start(arguments, Commands::Pipe::from_it));
    return std::make_unique<NativeStream>(what, std::move(child), total, Bytes{});
  }
  if (!is_resume_token(request.resume_token))
    return fail(ErrorCode::invalid, what + ": this is no resume token of OpenZFS",
                "abort the receive, then it begins anew");
  // It says what the token means even where it then complains that the snapshot has another name.
  ZED_TRY(auto said, zfs_.commands().run({"zfs", "send", "-nvt", request.resume_token}, {}));
  ZED_TRY(auto point, parse_resume_point(said.out + "\n" + said.err));
  if (point.to_guid != snapshot.guid || point.from_guid != base_guid)
    return fail(ErrorCode::stale, what + ": the receiver's token is of another stream",
                "abort the receive, then it begins anew");
  Bytes resumed{static_cast<std::int64_t>(point.bytes)};
  std::unique_ptr<Child> child;
  if (point.to_name == zfs_.full(name)) {
    ZED_TRY(child, zfs_.commands().start({"zfs", "send", "-t", request.resume_token},
                                         Commands::Pipe::from_it));
  } else {
    std::string from = base.empty() ? "" : zfs_.full(record.dataset.name) + base;
    ZED_TRY(child, resume_send(zfs_.full(name), from, point));
  }
  return std::make_unique<NativeStream>(what, std::move(child), std::max(total, resumed), resumed);
}

// ---- files --------------------------------------------------------------------------------------

Status ZfsStore::learn_hashes(const Record& record, const Snapshot& snapshot, int files,
                              Index& index) {
  // The nearest older snapshot whose hashes are known spares reading what has not changed since.
  std::optional<Index> older;
  WallTime created;
  for (const Snapshot& other : record.dataset.snapshots) {
    if (other.createtxg >= snapshot.createtxg) break;
    auto known = work_.find_index(other.guid, other.createtxg);
    if (!known) continue;
    older = std::move(known);
    created = other.created;
  }
  for (IndexEntry& item : index.entries) {
    if (item.entry.kind != EntryKind::file) continue;
    const IndexEntry* old = older ? older->find(item.entry.path) : nullptr;
    if (old != nullptr && same_file(*old, item, created)) {
      item.entry.digest = old->entry.digest;
    } else {
      ZED_TRY(item.entry.digest, digest_of(files, item.entry));
    }
    item.hashed = true;
  }
  return {};
}

Result<Manifest> ZfsStore::manifest(const Record& record, const Snapshot& snapshot) {
  auto index = work_.find_index(snapshot.guid, snapshot.createtxg);
  if (!index) {
    ZED_TRY(auto path, mounting_.snapshot_files(record, snapshot.name));
    disk::Fd files(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!files) return no_snapshot(record.dataset.name.str() + "@" + snapshot.name);
    ZED_TRY(index, scan(files.get()));
    ZED_CHECK(learn_hashes(record, snapshot, files.get(), *index));
    work_.keep_index(snapshot.guid, snapshot.createtxg, *index);
  }
  std::vector<Entry> entries;
  entries.reserve(index->entries.size());
  for (IndexEntry& item : index->entries)
    entries.push_back(std::move(item.entry));
  return Manifest::of(std::move(entries));
}

Result<std::unique_ptr<env::SendStream>> ZfsStore::send_files(const env::SendRequest& request,
                                                              const Record& record,
                                                              const Snapshot& snapshot,
                                                              const Snapshot* base) {
  SendPlan plan{request.snapshot, request.base, {}, {}, request.resume_token};
  if (base != nullptr) {
    ZED_TRY(plan.base_manifest, manifest(record, *base));
  }
  ZED_TRY(plan.manifest, manifest(record, snapshot));
  ZED_TRY(auto path, mounting_.snapshot_files(record, snapshot.name));
  disk::Fd files(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!files) return no_snapshot(record.dataset.name.str() + "@" + snapshot.name);
  return make_sender(std::move(plan), make_folder_source(std::move(files)));
}

}  // namespace zed::store::zfs
