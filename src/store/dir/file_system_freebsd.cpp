#include <cerrno>
#include <cstring>
#include <memory>

#include <dirent.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "store/dir/file_system.hpp"

namespace zed::store::disk::system {
namespace {

constexpr int deepest = 128;

/// fsync of every file and folder below, and of the folder itself. Takes the descriptor.
int sync_below(int folder, int depth) {
  std::unique_ptr<DIR, int (*)(DIR*)> stream(folder >= 0 ? ::fdopendir(folder) : nullptr,
                                             ::closedir);
  if (!stream) return -1;
  while (true) {
    errno = 0;
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr) break;
    if (std::strcmp(entry->d_name, ".") == 0 || std::strcmp(entry->d_name, "..") == 0) continue;
    net::Fd inside(::openat(folder, entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!inside && (errno == EMLINK || errno == ELOOP || errno == ENOENT || errno == EOPNOTSUPP))
      continue;  // a symlink or a socket, which its folder keeps, or it is gone
    struct stat status {};
    if (!inside || ::fstat(inside.get(), &status) != 0) return -1;
    if (S_ISDIR(status.st_mode)) {
      if (depth == deepest) {
        errno = ENAMETOOLONG;
        return -1;
      }
      if (sync_below(inside.release(), depth + 1) != 0) return -1;
    } else if (S_ISREG(status.st_mode) && ::fsync(inside.get()) != 0) {
      return -1;
    }
  }
  return errno == 0 ? ::fsync(folder) : -1;
}

}  // namespace

void begin_writing(int, std::uint64_t, std::uint64_t) {}

/// There is no syncfs, and sync(2) returns before the disk has everything.
int sync_all(int folder) {
  return sync_below(::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), 0);
}

/// OpenZFS shares blocks in copy_file_range(2) by itself where it can, and nothing tells whether it
/// did.
bool share_blocks(int, int) {
  errno = EOPNOTSUPP;
  return false;
}

std::int64_t stamp_resolution() {
  timespec resolution{};
  ::clock_getres(CLOCK_REALTIME_FAST, &resolution);
  return resolution.tv_nsec;
}

int unmount(const std::string& path) {
  return ::unmount(path.c_str(), 0);
}

std::optional<FileSystem> file_system_of(int fd) {
  struct statfs status {};
  if (::fstatfs(fd, &status) != 0) return std::nullopt;
  // vfs.timestamp_precision may be whole seconds, and what a store to a mapped page does differs.
  return FileSystem{status.f_fstypename, false};
}

}  // namespace zed::store::disk::system
