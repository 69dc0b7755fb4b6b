#include "store/zfs/mounting.hpp"

#include <cerrno>

#include <fcntl.h>

#include "net/fd.hpp"
#include "store/dir/disk.hpp"
#include "store/dir/file_system.hpp"
#include "store/zfs/errors.hpp"
#include "store/zfs/users_of.hpp"

namespace zed::store::zfs {

Result<std::string> Mounting::mount(const Record& record) const {
  std::string full = zfs_.full(record.dataset.name);
  if (!privileged_)
    return fail(ErrorCode::unsupported, "the files of " + full + " are out of reach",
                "only root may mount: this agent can hold replicas only");
  if (!record.can_mount)
    return fail(ErrorCode::unsupported, full + " has no mount point",
                "give it one: zfs set mountpoint=/" + zfs_.root() + " " + zfs_.root());
  for (bool tried : {false, true}) {
    // The last one counts: it lies over the others.
    std::string path;
    for (const Mount& mount : zfs_.mounts())
      if (mount.source == full) path = mount.path;
    if (!path.empty()) return path;
    if (tried) break;
    ZED_CHECK(zfs_.run("mount " + full, {"mount", full}));
  }
  return fail(ErrorCode::io, full + " was mounted and is in no mount table",
              "somebody unmounted it at once, or it is mounted in another namespace");
}

Status Mounting::unmount(const Record& record) const {
  ZED_CHECK(unmount_snapshots(record.dataset.name));
  if (!record.mounted) return {};
  std::string full = zfs_.full(record.dataset.name);
  return naming_users(
      ignoring(zfs_.run("unmount " + full, {"unmount", full}), "not currently mounted"),
      record.dataset.name);
}

Status Mounting::naming_users(Status status, const DatasetName& dataset) const {
  if (status || status.error().code != ErrorCode::busy) return status;
  std::string full = zfs_.full(dataset);
  for (const Mount& mount : zfs_.mounts()) {
    if (mount.source != full && !mount.source.starts_with(full + "/")) continue;
    std::string users = users_of(mount.path);
    if (!users.empty()) status.error().hint = "end what uses " + mount.path + ": " + users;
  }
  return status;
}

Status Mounting::unmount_snapshots(const DatasetName& dataset) const {
  std::string ours = zfs_.full(dataset) + "@";
  for (const Mount& mount : zfs_.mounts()) {
    if (!mount.source.starts_with(ours)) continue;
    // The kernel may have dropped it by itself meanwhile.
    if (disk::system::unmount(mount.path) == 0 || errno == EINVAL || errno == ENOENT) continue;
    return fail(error_of_errno("unmount snapshot " + mount.source, errno));
  }
  return {};
}

Result<std::filesystem::path> Mounting::snapshot_files(const Record& record,
                                                       const std::string& word) const {
  ZED_TRY(auto top, mount(record));
  std::filesystem::path path = std::filesystem::path(top) / ".zfs" / "snapshot" / word;
  // Opening it makes the kernel mount it.
  disk::Fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder && errno == ENOENT) return no_snapshot(record.dataset.name.str() + "@" + word);
  if (!folder && errno == ELOOP)
    return fail(ErrorCode::io, "open " + path.string() + ": the kernel did not mount the snapshot",
                "it does so by `/usr/bin/env mount -t zfs`: both must be on this machine");
  if (!folder) return fail(net::system_error(errno, "open " + path.string()));
  return path;
}

}  // namespace zed::store::zfs
