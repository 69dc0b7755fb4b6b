#include "net/beneath.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#if defined(__linux__)
#include <linux/openat2.h>
#include <sys/syscall.h>
#endif

#include "base/text.hpp"
#include "net/system.hpp"

namespace zed::net {
namespace {

std::string quoted(const std::string& path) {
  constexpr std::size_t shown = 120;
  return "\"" + percent_encode(std::string_view(path).substr(0, shown)) + "\"";
}

Status check_relative(const std::string& path) {
  for (const std::string& component : split(path, '/'))
    if (component.empty() || component == "." || component == "..")
      return fail(ErrorCode::invalid, quoted(path) + " is no path below a folder");
  return {};
}

/// A folder that is only passed through need not be readable.
#ifdef O_PATH
constexpr int folder_only = O_PATH | O_DIRECTORY;
#else
constexpr int folder_only = O_SEARCH;  // macOS: O_DIRECTORY is part of it
#endif

/// For kernels without openat2.
Fd walk(int at, const std::string& path, int flags, mode_t mode) {
  Fd folder;
  std::size_t begin = 0;
  while (true) {
    std::size_t slash = path.find('/', begin);
    std::string component = path.substr(begin, slash - begin);
    int from = folder ? folder.get() : at;
    bool last = slash == std::string::npos;
    int wanted = last ? flags : folder_only;
    Fd next(::openat(from, component.c_str(), wanted | O_NOFOLLOW | O_CLOEXEC, mode));
    if (!next || last) return next;
    folder = std::move(next);
    begin = slash + 1;
  }
}

#if defined(SYS_openat2)
/// False where the kernel, or a sandbox around us, has no such call; then it is not asked again.
std::atomic<bool> has_openat2{true};

Fd open_at_once(int at, const std::string& path, int flags, mode_t mode) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC | O_NOFOLLOW);
  if ((flags & O_CREAT) != 0) how.mode = mode;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  constexpr int most_races = 16;
  for (int race = 0;; ++race) {
    Fd fd(static_cast<int>(::syscall(SYS_openat2, at, path.c_str(), &how, sizeof how)));
    // EAGAIN: something was renamed meanwhile, so the kernel could not tell.
    if (fd || errno != EAGAIN || race == most_races) return fd;
  }
}
#endif

Fd open_any(int at, const std::string& path, int flags, mode_t mode) {
#if defined(SYS_openat2)
  if (has_openat2) {
    Fd fd = open_at_once(at, path, flags, mode);
    if (fd || (errno != ENOSYS && errno != EPERM)) return fd;
    has_openat2 = false;
  }
#endif
  return walk(at, path, flags, mode);
}

}  // namespace

Result<Fd> open_beneath(int at, const std::string& path, int flags, mode_t mode) {
  ZED_CHECK(check_relative(path));
  Fd fd = open_any(at, path, flags, mode);
  struct stat status {};
  // With O_PATH a link at the end of the path would be opened itself.
  if (fd &&
      ((flags & place_only) == 0 || ::fstat(fd.get(), &status) != 0 || !S_ISLNK(status.st_mode)))
    return fd;
  if (fd) errno = ELOOP;
  if (errno == ELOOP || errno == EXDEV || errno == ENOTDIR)
    return fail(ErrorCode::io,
                "open " + quoted(path) + ": a symlink, or a file, is where a folder should be",
                "links are not followed in a folder that jobs write to");
  return fail(system_error(errno, "open " + quoted(path)));
}

Result<Fd> open_file_beneath(int at, const std::string& path) {
  ZED_TRY(auto fd, open_beneath(at, path, O_RDONLY | O_NONBLOCK));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return fail(system_error(errno, "stat " + quoted(path)));
  if (!S_ISREG(status.st_mode)) return fail(ErrorCode::io, quoted(path) + " is no regular file");
  return fd;
}

Result<Fd> make_folder_beneath(int at, const std::string& path, mode_t mode) {
  ZED_CHECK(check_relative(path));
  Fd folder;
  for (const std::string& component : split(path, '/')) {
    int from = folder ? folder.get() : at;
    if (::mkdirat(from, component.c_str(), mode) != 0 && errno != EEXIST)
      return fail(system_error(errno, "make folder " + quoted(path)));
    ZED_TRY(folder, open_beneath(from, component, O_RDONLY | O_DIRECTORY));
  }
  return folder;
}

}  // namespace zed::net
