#pragma once
// Every change that the dir store makes to a file system, one function each, so that a test can
// stop the process, or fill the disk, before any one of them. Names are single components below an
// open folder and symlinks are never followed: a job may write what it likes into its folder.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include <sys/stat.h>

#include "base/result.hpp"
#include "net/fd.hpp"

namespace zed::store::disk {

using net::Fd;

// ---- faults -------------------------------------------------------------------------------------

enum class Fault {
  die,   ///< the process ends at once, as by kill -9
  full,  ///< this and each later change that needs space fails with ENOSPC
  sync,  ///< this and each later change that is an fsync of any kind fails with EIO
};
/// The n-th change from now on (1: the next). 0 ends the fault. The environment variable
/// ZED_STORE_DIE_AT=n sets Fault::die at start. For tests; not thread-safe.
void set_fault(Fault fault, std::uint64_t n);
/// Changes so far.
std::uint64_t changes();
/// false: syncs return at once, which only a loss of power could tell. For tests.
void set_syncing(bool syncing);

// ---- reading ------------------------------------------------------------------------------------

/// `path` may have several components; symlinks are not followed (net/beneath.hpp). Errors:
/// `not_found`, `io` (a symlink or file where a folder should be), `invalid`.
Result<Fd> open_folder(int at, const std::string& path);
/// A regular file for reading, the same way.
Result<Fd> open_file(int at, const std::string& path);
/// The whole file. Errors: `corrupt` beyond `limit` bytes.
Result<std::string> read_all(int at, const std::string& path, std::size_t limit);
/// Exactly the buffer. Errors: `corrupt` if the file ends before.
Status read_at(int fd, std::uint64_t offset, std::span<std::byte> buffer);
Result<struct stat> status_of(int fd);
/// Bytes [begin, end) of a file that are not known to be a hole.
struct Extent {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};
/// The first such bytes from `at` on and before `size`, the file's size: {size, size} if the rest
/// is a hole. All the rest where the file system cannot tell. Moves the descriptor's position.
Extent data_from(int fd, std::uint64_t at, std::uint64_t size);
/// Of the name itself, not of what a symlink points to.
Result<struct stat> status_at(int at, const std::string& name);
std::int64_t nanoseconds(const struct timespec& time);
/// Calls `visit` with each name in a folder but "." and "..", in no order.
Status for_each_name(int folder, const std::function<Status(const std::string&)>& visit);

// ---- changing -----------------------------------------------------------------------------------

/// Fails if it exists.
Result<Fd> create_file(int at, const std::string& name, mode_t mode);
/// Opens it for writing, empty or as it was, makes it if it is not there.
Result<Fd> open_for_writing(int at, const std::string& name, bool truncate);
Status write_at(int fd, std::uint64_t offset, std::span<const std::byte> bytes);
Status set_size(int fd, std::uint64_t size);
Status make_folder(int at, const std::string& name, mode_t mode);
Status make_symlink(const std::string& target, int at, const std::string& name);
/// A second name of a file. Errors: as the others, and `unsupported` where no more links may be.
Status link(int from_at, const std::string& from, int to_at, const std::string& to);
Status rename(int at, const std::string& from, const std::string& to);
Status set_mode(int fd, mode_t mode);
Status set_mtime(int fd, std::int64_t nanoseconds);
/// Only a root agent changes owners, and only where they differ.
Status set_owner(int fd, const struct stat& like);
Status sync(int fd);
/// A file's content and size.
Status sync_data(int fd);
/// Tells the kernel to begin writing these bytes, so that a later sync has less to wait for. A
/// hint: whether it helps shows in nothing but time.
void begin_writing(int fd, std::uint64_t offset, std::uint64_t size);
/// Writes a file's changed pages back, so that the next store to any of them moves its ctime.
Status flush(int fd);
/// Everything on this file system.
Status sync_all(int fd);
struct NewFile {
  Fd file;
  bool shares = false;  ///< the content of the other file, without blocks of its own; else empty
};
/// A new file that shares the blocks of `from` where the file system can (reflink, clone). Fails if
/// it exists.
Result<NewFile> create_sharing(int from, int at, const std::string& name, mode_t mode);
/// Copies the content, holes kept as holes.
Status copy(int from, int to);
/// Succeeds if it is not there.
Status remove_file(int at, const std::string& name);
/// With all that is in it. Succeeds if it is not there.
Status remove_tree(int at, const std::string& name);
/// Writes beside, syncs, renames over, syncs the folder.
Status replace_file(int at, const std::string& name, const std::string& new_name,
                    std::span<const std::byte> bytes);

/// What this file system can do.
struct Abilities {
  bool reflinks = false;
  /// Whether each change of a file moves its ctime, stores through a map included (design section
  /// 9). Where that is not known, files are always copied.
  bool tracks_changes = false;
  std::string name;  ///< "ext4"
};
Result<Abilities> probe(int folder);
/// Two times closer than this may be one to the file system.
std::int64_t tick_nanoseconds();
/// The clock that stamps files.
std::int64_t now_nanoseconds();
/// Until every later change gets a ctime later than `ctime_ns`. Returns at once if that is past,
/// or further in the future than a tick (the clock was set back).
void wait_until_past(std::int64_t ctime_ns);

}  // namespace zed::store::disk
