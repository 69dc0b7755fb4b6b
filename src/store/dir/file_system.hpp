#pragma once
// Inside the room: what disk.cpp asks of the operating system in a way of that system's own
// (file_system_linux.cpp, file_system_macos.cpp, file_system_freebsd.cpp). Calls that return an int
// give 0, or -1 and errno.

#include <cstdint>
#include <optional>
#include <string>

#include <sys/types.h>

#include "net/fd.hpp"

namespace zed::store::disk::system {

/// A hint to begin writing these bytes.
void begin_writing(int fd, std::uint64_t offset, std::uint64_t size);
/// Writes a file's changed pages back, so that the next store to any of them moves its ctime.
int write_back(int fd);
/// Everything below the folder, and more where the system has a call for a whole file system.
int sync_all(int folder);
/// Makes a whole file at once that shares the blocks of `from`, open for writing; none where the
/// system makes the file first and shares then, or the file system cannot.
net::Fd clone_as(int from, int at, const std::string& name);
/// Makes an empty file share the blocks of `from`. False: errno says why.
bool share_blocks(int from, int to);
/// Copies up to `size` bytes from the same offset in the kernel; what it could, or -1 and errno.
ssize_t copy_inside(int from, int to, std::uint64_t offset, std::uint64_t size);
/// How fine the clock that stamps files is at its coarsest, in nanoseconds.
std::int64_t stamp_resolution();

int unmount(const std::string& path);

struct FileSystem {
  std::string name = "this file system";
  bool tracks_changes = false;  ///< as in Abilities
};
/// None: errno says why.
std::optional<FileSystem> file_system_of(int fd);

}  // namespace zed::store::disk::system
