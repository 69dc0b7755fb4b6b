#pragma once
// The times of a file: POSIX and macOS have other names for the members of one struct.

#include <sys/stat.h>
#include <time.h>

namespace zed::net {

/// When its contents were last written.
inline const timespec& modified_at(const struct stat& status) {
#ifdef __APPLE__
  return status.st_mtimespec;
#else
  return status.st_mtim;
#endif
}

/// When its contents or anything about it (owner, mode, number of names) last changed.
inline const timespec& changed_at(const struct stat& status) {
#ifdef __APPLE__
  return status.st_ctimespec;
#else
  return status.st_ctim;
#endif
}

}  // namespace zed::net
