// What the pool's events spare and tell: that nothing has changed, so nothing need be listed, and
// that a person has rolled a dataset back.

#include "base/log.hpp"
#include "store/zfs/store.hpp"

namespace zed::store::zfs {
namespace {

/// However quiet the pool seems: an event may be lost where very many come at once.
constexpr std::chrono::seconds list_anyway_after{60};

}  // namespace

Result<env::Store::Changes> ZfsStore::changes_since(const std::string& cursor) {
  std::lock_guard lock(changes_mutex_);
  // Taken before the listing: what happens during it is listed once more.
  Listing before = now();
  bool quiet = events_ && events_->is_listening() && !cursor.empty() && cursor == listed_.cursor &&
               before.events == listed_.events && before.own_changes == listed_.own_changes &&
               before.at - listed_.at < list_anyway_after;
  if (quiet) return Changes{cursor, {}};
  ZED_TRY(auto records, inventory_.all(Freshness::seconds_old));
  auto [next, names] = changes_.since(cursor, records);
  listed_ = before;
  listed_.cursor = next;
  return Changes{std::move(next), std::move(names)};
}

ZfsStore::Listing ZfsStore::now() const {
  Listing listing;
  listing.events = events_ ? events_->heard() : 0;
  listing.own_changes = zfs_.changes();
  listing.at = std::chrono::steady_clock::now();
  return listing;
}

void ZfsStore::watch_events() {
  if (!privileged_) return;
  events_ = std::make_unique<EventWatch>(
      zfs_.commands(), zfs_.pool(), [this](const Rollback& rollback) { note_rollback(rollback); });
}

Status ZfsStore::roll_back(const std::string& what, const DatasetName& dataset,
                           const std::string& word) {
  const std::string full = zfs_.full(dataset);
  const bool will_be_heard = events_ && events_->is_listening();
  if (will_be_heard) own_rollbacks_.expect(full);
  auto done = zfs_.run(what, {"rollback", full + "@" + word});
  if (done) return {};
  if (will_be_heard) own_rollbacks_.withdraw(full);
  return fail(std::move(done).error());
}

void ZfsStore::note_rollback(const Rollback& rollback) {
  if (own_rollbacks_.claim(rollback.dataset)) return;
  auto name = zfs_.relative(rollback.dataset);
  if (!name) return;
  if (auto marked = mark_reverted(*name, rollback.txg); !marked)
    log_warning("store: " + name->str() +
                " was rolled back by hand, and that cannot be noted: " + marked.error().describe());
}

Status ZfsStore::mark_reverted(const DatasetName& dataset, std::uint64_t txg) {
  ZED_TRY(auto record, look(dataset));
  if (record.dataset.uuid.is_nil()) return {};
  // What was committed since is of what the job remembers, not of the files that it was given.
  const Snapshot* target = nullptr;
  for (const Snapshot& snapshot : record.dataset.snapshots)
    if (snapshot.createtxg < txg) target = &snapshot;
  if (target == nullptr) return {};
  return set(dataset, {{property::reverted, "@" + target->name}});
}

}  // namespace zed::store::zfs
