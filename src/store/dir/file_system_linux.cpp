#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "store/dir/file_system.hpp"

namespace zed::store::disk::system {
namespace {

struct KnownFileSystem {
  unsigned long magic;  ///< linux/magic.h and the file systems' own sources
  const char* name;
};
/// Those that move ctime at the first store to a clean mapped page (their page_mkwrite calls
/// file_update_time). tmpfs, overlayfs and network file systems are left out on purpose.
constexpr KnownFileSystem tracking[] = {
    {0xEF53, "ext4"}, {0x58465342, "xfs"}, {0x9123683E, "btrfs"}, {0xF2F52010, "f2fs"}};

}  // namespace

void begin_writing(int fd, std::uint64_t offset, std::uint64_t size) {
  (void)::sync_file_range(fd, static_cast<off_t>(offset), static_cast<off_t>(size),
                          SYNC_FILE_RANGE_WRITE);
}

int sync_all(int folder) {
  return ::syncfs(folder);
}

bool share_blocks(int from, int to) {
  return ::ioctl(to, FICLONE, from) == 0;
}

std::int64_t stamp_resolution() {
  timespec resolution{};
  ::clock_getres(CLOCK_REALTIME_COARSE, &resolution);
  return resolution.tv_nsec;
}

int unmount(const std::string& path) {
  return ::umount2(path.c_str(), 0);
}

std::optional<FileSystem> file_system_of(int fd) {
  struct statfs status {};
  if (::fstatfs(fd, &status) != 0) return std::nullopt;
  for (const KnownFileSystem& known : tracking)
    if (static_cast<unsigned long>(status.f_type) == known.magic)
      return FileSystem{known.name, true};
  return FileSystem{};
}

}  // namespace zed::store::disk::system
