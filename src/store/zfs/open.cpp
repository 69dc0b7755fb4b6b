// Opening: which OpenZFS this is, one process at a time, and what a crash left.

#include <algorithm>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/log.hpp"
#include "base/text.hpp"
#include "net/system.hpp"
#include "store/zfs/errors.hpp"
#include "store/zfs/store.hpp"
#include "store/zfs/zfs_store.hpp"

namespace zed::store::zfs {

Status ZfsStore::settle_all() {
  ZED_TRY(auto records, inventory_.all(Freshness::seconds_old));
  std::vector<SnapshotRow> there;
  for (const Record& record : records) {
    for (const Snapshot& snapshot : record.dataset.snapshots) {
      SnapshotRow row;
      row.guid = snapshot.guid;
      row.createtxg = snapshot.createtxg;
      there.push_back(std::move(row));
    }
    if (!record.marked.marker) continue;
    auto settled = settle(record);
    // One dataset that cannot be brought into order must not keep all others from being served.
    if (!settled)
      log_warning("store: " + record.dataset.name.str() +
                  " is left as it is: " + settled.error().describe());
  }
  if (privileged_) work_.keep_only(there);
  return {};
}

}  // namespace zed::store::zfs

namespace zed::store {
namespace {

/// One process at a time has a store open; which folder the lock is in is the system's custom.
Result<disk::Fd> take_lock(const std::string& root) {
  std::string name = root;
  std::replace(name.begin(), name.end(), '/', ':');
  std::string path = "/run/zed-store-" + name + ".lock";
  disk::Fd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!lock) return disk::Fd();  // a user without /run has a state folder of its own to lock
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
    return fail(ErrorCode::busy, "the store in pool " + root + " is open in another process",
                "stop that agent first, or give this one another pool");
  return lock;
}

}  // namespace

Result<std::unique_ptr<env::Store>> open_zfs_store(const std::string& root) {
  return open_zfs_store(root, zfs::make_system_commands(), ::geteuid() == 0);
}

Result<std::unique_ptr<env::Store>>
open_zfs_store(const std::string& root, std::unique_ptr<zfs::Commands> commands, bool privileged) {
  if (!zfs::Zfs::is_root(root))
    return fail(ErrorCode::invalid, "\"" + percent_encode(root) + "\" is no pool's name");
  std::string what = "open the store in pool " + root;
  ZED_TRY(auto said, commands->run({"zfs", "version"}, {}));
  if (!said.ok && said.out.empty()) return fail(zfs::error_of(what, said.err));
  ZED_TRY(auto version, zfs::parse_version(said.out));
  if (!version.at_least(2, 1))
    return fail(ErrorCode::unsupported, what + ": OpenZFS " + version.text + " is too old",
                "2.1 or later is needed");
  disk::Fd lock;
  if (privileged) {
    ZED_TRY(lock, take_lock(root));
  }
  std::uint64_t instance = 0;
  net::fill_random(std::as_writable_bytes(std::span(&instance, 1)));
  auto store =
      std::make_unique<zfs::ZfsStore>(std::move(commands), root, std::move(version), privileged,
                                      std::to_string(instance), std::move(lock));
  auto space = store->space();
  if (!space) return fail(std::move(space).error().with(what));
  // First: what settling rolls back is known as ours only if it is heard.
  store->watch_events();
  ZED_CHECK(store->settle_all());
  return store;
}

}  // namespace zed::store
