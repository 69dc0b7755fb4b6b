#include "store/dir/disk.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>

#include <dirent.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "base/text.hpp"
#include "net/beneath.hpp"
#include "net/system.hpp"
#include "store/dir/file_system.hpp"

namespace zed::store::disk {
namespace {

// ---- faults ----

std::atomic<std::uint64_t> change_count{0};
std::atomic<std::uint64_t> fault_at{0};
std::atomic<Fault> fault_kind{Fault::die};
std::atomic<bool> is_syncing{true};

const bool fault_from_environment = [] {
  const char* text = std::getenv("ZED_STORE_DIE_AT");
  if (text != nullptr) set_fault(Fault::die, std::strtoull(text, nullptr, 10));
  return text != nullptr;
}();

enum class Change { takes_space, takes_none, syncs };

/// Called before each change; false: fail it with errno set.
bool may_change(Change change) {
  std::uint64_t number = change_count.fetch_add(1) + 1;
  std::uint64_t at = fault_at.load();
  if (at == 0 || number < at) return true;
  constexpr int killed = 137;
  if (fault_kind.load() == Fault::die) _exit(killed);
  const bool is_full = fault_kind.load() == Fault::full;
  if (change != (is_full ? Change::takes_space : Change::syncs)) return true;
  errno = is_full ? ENOSPC : EIO;
  return false;
}

tl::unexpected<Error> system_failure(const std::string& what) {
  return fail(net::system_error(errno, what));
}

std::string quoted(const std::string& name) {
  constexpr std::size_t shown = 120;
  return "\"" + percent_encode(std::string_view(name).substr(0, shown)) + "\"";
}

}  // namespace

void set_fault(Fault fault, std::uint64_t n) {
  fault_kind = fault;
  fault_at = n == 0 ? 0 : change_count + n;
}

std::uint64_t changes() {
  return change_count;
}

void set_syncing(bool syncing) {
  is_syncing = syncing;
}

// ---- reading ------------------------------------------------------------------------------------

Result<Fd> open_folder(int at, const std::string& path) {
  return net::open_beneath(at, path, O_RDONLY | O_DIRECTORY);
}

Result<Fd> open_file(int at, const std::string& path) {
  return net::open_file_beneath(at, path);
}

Result<struct stat> status_of(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return system_failure("stat an open file");
  return status;
}

Extent data_from(int fd, std::uint64_t at, std::uint64_t size) {
  const off_t data = ::lseek(fd, static_cast<off_t>(at), SEEK_DATA);
  if (data < 0) return errno == ENXIO ? Extent{size, size} : Extent{at, size};
  const off_t hole = ::lseek(fd, data, SEEK_HOLE);
  const auto begin = std::min(static_cast<std::uint64_t>(data), size);
  return {begin, hole < 0 ? size : std::min(static_cast<std::uint64_t>(hole), size)};
}

Result<struct stat> status_at(int at, const std::string& name) {
  struct stat status {};
  if (::fstatat(at, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
    return system_failure("stat " + quoted(name));
  return status;
}

std::int64_t nanoseconds(const struct timespec& time) {
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

Status read_at(int fd, std::uint64_t offset, std::span<std::byte> buffer) {
  while (!buffer.empty()) {
    ssize_t got = ::pread(fd, buffer.data(), buffer.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_failure("read");
    if (got == 0) return fail(ErrorCode::corrupt, "a file is shorter than it was");
    buffer = buffer.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
  return {};
}

Result<std::string> read_all(int at, const std::string& path, std::size_t limit) {
  ZED_TRY(auto fd, open_file(at, path));
  ZED_TRY(auto status, status_of(fd.get()));
  std::size_t size = static_cast<std::size_t>(status.st_size);
  if (size > limit) return fail(ErrorCode::corrupt, quoted(path) + " is larger than it can be");
  std::string text(size, '\0');
  ZED_CHECK(read_at(fd.get(), 0, std::as_writable_bytes(std::span(text.data(), text.size()))));
  return text;
}

Status for_each_name(int folder, const std::function<Status(const std::string&)>& visit) {
  // A descriptor of its own: reading moves the position.
  int fd = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  std::unique_ptr<DIR, int (*)(DIR*)> stream(fd >= 0 ? ::fdopendir(fd) : nullptr, ::closedir);
  if (!stream) return system_failure("list a folder");
  while (true) {
    errno = 0;
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr) break;
    std::string name = entry->d_name;
    if (name != "." && name != "..") ZED_CHECK(visit(name));
  }
  if (errno != 0) return system_failure("list a folder");
  return {};
}

// ---- changing -----------------------------------------------------------------------------------

namespace {

Fd create_at(int at, const std::string& name, mode_t mode) {
  return Fd(::openat(at, name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
}

}  // namespace

Result<Fd> create_file(int at, const std::string& name, mode_t mode) {
  Fd fd;
  if (may_change(Change::takes_space)) fd = create_at(at, name, mode);
  if (!fd) return system_failure("create " + quoted(name));
  return fd;
}

Result<Fd> open_for_writing(int at, const std::string& name, bool truncate) {
  Fd fd;
  int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | (truncate ? O_TRUNC : 0);
  if (may_change(Change::takes_space)) fd.reset(::openat(at, name.c_str(), flags, 0600));
  if (!fd) return system_failure("open " + quoted(name) + " for writing");
  return fd;
}

Status write_at(int fd, std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (!may_change(Change::takes_space)) return system_failure("write");
    ssize_t put = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return system_failure("write");
    bytes = bytes.subspan(static_cast<std::size_t>(put));
    offset += static_cast<std::uint64_t>(put);
  }
  return {};
}

Status set_size(int fd, std::uint64_t size) {
  if (!may_change(Change::takes_none) || ::ftruncate(fd, static_cast<off_t>(size)) != 0)
    return system_failure("set the size of a file");
  return {};
}

Status make_folder(int at, const std::string& name, mode_t mode) {
  if (!may_change(Change::takes_space) || ::mkdirat(at, name.c_str(), mode) != 0)
    return system_failure("make folder " + quoted(name));
  return {};
}

Status make_symlink(const std::string& target, int at, const std::string& name) {
  if (!may_change(Change::takes_space) || ::symlinkat(target.c_str(), at, name.c_str()) != 0)
    return system_failure("make symlink " + quoted(name));
  return {};
}

Status link(int from_at, const std::string& from, int to_at, const std::string& to) {
  if (may_change(Change::takes_space) && ::linkat(from_at, from.c_str(), to_at, to.c_str(), 0) == 0)
    return {};
  if (errno == EMLINK || errno == EPERM || errno == EXDEV)
    return fail(ErrorCode::unsupported, "no second name can be made for " + quoted(from));
  return system_failure("link " + quoted(to));
}

Status rename(int at, const std::string& from, const std::string& to) {
  if (!may_change(Change::takes_space) || ::renameat(at, from.c_str(), at, to.c_str()) != 0)
    return system_failure("rename " + quoted(from) + " to " + quoted(to));
  return {};
}

Status set_mode(int fd, mode_t mode) {
  if (!may_change(Change::takes_none) || ::fchmod(fd, mode) != 0)
    return system_failure("set the mode of a file");
  return {};
}

Status set_mtime(int fd, std::int64_t nanoseconds_since_epoch) {
  constexpr std::int64_t second = 1'000'000'000;
  std::int64_t rest = ((nanoseconds_since_epoch % second) + second) % second;
  struct timespec times[2]{};
  times[0].tv_nsec = UTIME_OMIT;
  times[1].tv_sec = static_cast<time_t>((nanoseconds_since_epoch - rest) / second);
  times[1].tv_nsec = static_cast<long>(rest);
  // A time that this file system cannot hold is kept by the index alone.
  if (!may_change(Change::takes_none) || (::futimens(fd, times) != 0 && errno != EINVAL))
    return system_failure("set the time of a file");
  return {};
}

Status set_owner(int fd, const struct stat& like) {
  if (::geteuid() != 0) return {};
  ZED_TRY(auto now, status_of(fd));
  if (now.st_uid == like.st_uid && now.st_gid == like.st_gid) return {};
  if (!may_change(Change::takes_none) || ::fchown(fd, like.st_uid, like.st_gid) != 0)
    return system_failure("set the owner of a file");
  return {};
}

Status sync(int fd) {
  if (!may_change(Change::syncs) || (is_syncing && net::sync_file(fd) != 0))
    return system_failure("fsync");
  return {};
}

Status sync_data(int fd) {
  if (!may_change(Change::syncs) || (is_syncing && net::sync_data(fd) != 0))
    return system_failure("fdatasync");
  return {};
}

void begin_writing(int fd, std::uint64_t offset, std::uint64_t size) {
  if (is_syncing) system::begin_writing(fd, offset, size);
}

Status flush(int fd) {
  if (system::write_back(fd) != 0 && errno != EINVAL && errno != EROFS)
    return system_failure("write back a file");
  return {};
}

Status sync_all(int fd) {
  if (!may_change(Change::syncs) || (is_syncing && system::sync_all(fd) != 0))
    return system_failure("sync a file system");
  return {};
}

Result<NewFile> create_sharing(int from, int at, const std::string& name, mode_t mode) {
  if (!may_change(Change::takes_space)) return system_failure("create " + quoted(name));
  if (Fd whole = system::clone_as(from, at, name)) {
    ZED_CHECK(set_mode(whole.get(), mode));
    return NewFile{std::move(whole), true};
  }
  NewFile made{create_at(at, name, mode)};
  if (!made.file) return system_failure("create " + quoted(name));
  if (!may_change(Change::takes_space)) return system_failure("reflink");
  made.shares = system::share_blocks(from, made.file.get());
  bool cannot = errno == EOPNOTSUPP || errno == ENOTTY || errno == EXDEV || errno == EINVAL ||
                errno == ENOSYS;
  if (!made.shares && !cannot) return system_failure("reflink");
  return made;
}

namespace {

/// Copies [begin, end) in the kernel if it can, else through a buffer.
Status copy_range(int from, int to, std::uint64_t begin, std::uint64_t end) {
  constexpr std::size_t block = std::size_t{8} << 20;
  std::unique_ptr<std::byte[]> buffer;
  while (begin < end) {
    std::size_t size = static_cast<std::size_t>(std::min<std::uint64_t>(block, end - begin));
    if (!buffer) {
      if (!may_change(Change::takes_space)) return system_failure("copy");
      ssize_t copied = system::copy_inside(from, to, begin, size);
      if (copied > 0) {
        begin += static_cast<std::uint64_t>(copied);
        continue;
      }
      if (copied < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EIO))
        return system_failure("copy");
      buffer = std::make_unique<std::byte[]>(block);
    }
    ssize_t got = ::pread(from, buffer.get(), size, static_cast<off_t>(begin));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_failure("read");
    if (got == 0) break;  // the file became shorter meanwhile
    ZED_CHECK(write_at(to, begin, {buffer.get(), static_cast<std::size_t>(got)}));
    begin += static_cast<std::uint64_t>(got);
  }
  return {};
}

}  // namespace

Status copy(int from, int to) {
  ZED_TRY(auto status, status_of(from));
  std::uint64_t size = static_cast<std::uint64_t>(status.st_size);
  std::uint64_t at = 0;
  while (at < size) {
    const Extent data = data_from(from, at, size);
    ZED_CHECK(copy_range(from, to, data.begin, data.end));
    at = data.end;
  }
  return set_size(to, size);
}

Status remove_file(int at, const std::string& name) {
  bool gone =
      may_change(Change::takes_none) && (::unlinkat(at, name.c_str(), 0) == 0 || errno == ENOENT);
  if (!gone) return system_failure("remove " + quoted(name));
  return {};
}

Status remove_tree(int at, const std::string& name) {
  Fd folder(::openat(at, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder && errno == EACCES && ::fchmodat(at, name.c_str(), 0700, 0) == 0)
    folder.reset(::openat(at, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder && errno == ENOENT) return {};
  if (!folder && (errno == ENOTDIR || errno == ELOOP)) return remove_file(at, name);
  if (!folder) return system_failure("remove folder " + quoted(name));
  (void)::fchmod(folder.get(), 0700);  // snapshots' folders are readonly
  std::vector<std::string> names;
  ZED_CHECK(for_each_name(folder.get(), [&names](const std::string& inside) -> Status {
    names.push_back(inside);
    return {};
  }));
  for (const std::string& inside : names)
    ZED_CHECK(remove_tree(folder.get(), inside));
  bool gone = may_change(Change::takes_none) &&
              (::unlinkat(at, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT);
  if (!gone) return system_failure("remove folder " + quoted(name));
  return {};
}

Status replace_file(int at, const std::string& name, const std::string& new_name,
                    std::span<const std::byte> bytes) {
  ZED_TRY(auto fd, open_for_writing(at, new_name, true));
  ZED_CHECK(write_at(fd.get(), 0, bytes));
  ZED_CHECK(sync(fd.get()));
  ZED_CHECK(rename(at, new_name, name));
  return sync(at);
}

// ---- abilities ----------------------------------------------------------------------------------

namespace {

Result<bool> try_reflink(int folder) {
  const std::string from = ".reflink-a";
  const std::string to = ".reflink-b";
  ZED_TRY(auto a, open_for_writing(folder, from, true));
  ZED_CHECK(write_at(a.get(), 0, std::as_bytes(std::span("x", 1))));
  ZED_CHECK(remove_file(folder, to));
  ZED_TRY(auto made, create_sharing(a.get(), folder, to, 0600));
  ZED_CHECK(remove_file(folder, from));
  ZED_CHECK(remove_file(folder, to));
  return made.shares;
}

}  // namespace

Result<Abilities> probe(int folder) {
  auto about = system::file_system_of(folder);
  if (!about) return system_failure("look at the file system");
  Abilities abilities;
  abilities.name = about->name;
  abilities.tracks_changes = about->tracks_changes;
  ZED_TRY(abilities.reflinks, try_reflink(folder));
  return abilities;
}

std::int64_t tick_nanoseconds() {
  constexpr std::int64_t least = 10'000'000;
  return std::max(least, 2 * system::stamp_resolution());
}

std::int64_t now_nanoseconds() {
  struct timespec now {};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return nanoseconds(now);
}

void wait_until_past(std::int64_t ctime_ns) {
  std::int64_t missing = ctime_ns + tick_nanoseconds() + 1 - now_nanoseconds();
  if (missing <= 0 || missing > 2 * tick_nanoseconds()) return;
  struct timespec rest {};
  rest.tv_nsec = static_cast<long>(missing);
  ::nanosleep(&rest, nullptr);
}

}  // namespace zed::store::disk
