#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <sys/clonefile.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/system.hpp"
#include "store/dir/file_system.hpp"

namespace zed::store::disk::system {

void begin_writing(int, std::uint64_t, std::uint64_t) {}

int write_back(int fd) {
  return ::fsync(fd);
}

int sync_all(int folder) {
  if (::fsync_volume_np(folder, SYNC_VOLUME_FULLSYNC | SYNC_VOLUME_WAIT) == 0) return 0;
  // Only volumes with a disk of their own know that: what is left is everything, and the cache of
  // this folder's disk.
  ::sync();
  return net::sync_file(folder);
}

net::Fd clone_as(int from, int at, const std::string& name) {
  if (::fclonefileat(from, at, name.c_str(), CLONE_NOOWNERCOPY) != 0) return {};
  // The clone has the mode of what it was made from, which may forbid writing even to us.
  ::fchmodat(at, name.c_str(), 0600, AT_SYMLINK_NOFOLLOW);
  return net::Fd(::openat(at, name.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
}

bool share_blocks(int, int) {
  errno = ENOTSUP;
  return false;
}

ssize_t copy_inside(int, int, std::uint64_t, std::uint64_t) {
  errno = ENOTSUP;
  return -1;
}

/// HFS+ counts seconds, APFS nanoseconds; on neither is a change trusted to be seen (FileSystem),
/// so nothing waits for a tick of the older one.
std::int64_t stamp_resolution() {
  return 1;
}

int unmount(const std::string& path) {
  return ::unmount(path.c_str(), 0);
}

std::optional<FileSystem> file_system_of(int fd) {
  struct statfs status {};
  if (::fstatfs(fd, &status) != 0) return std::nullopt;
  // Whether APFS moves ctime at the first store to a mapped page is not documented.
  return FileSystem{status.f_fstypename, false};
}

}  // namespace zed::store::disk::system
