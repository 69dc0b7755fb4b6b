#pragma once
// Opening names below a folder that somebody else writes to, a job for instance: no symlink is
// followed on the way and nothing outside of the folder is reached, however often it is rearranged
// meanwhile. By openat2 (RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS; Linux 5.6), else one component at a
// time.

#include <string>

#include <sys/types.h>

#include "base/result.hpp"
#include "net/fd.hpp"

namespace zed::net {

/// `path` is relative to the open folder `at`; `flags` as open(2)'s, O_CLOEXEC is added. Errors:
/// `not_found`, `io` (a symlink, or a file where a folder should be), `invalid` (an absolute path,
/// an empty component, "." or "..").
Result<Fd> open_beneath(int at, const std::string& path, int flags, mode_t mode = 0);

/// A regular file for reading. A pipe or device that was put there does not block and is `io`.
Result<Fd> open_file_beneath(int at, const std::string& path);

/// Opens a folder and makes what is missing of it, one component after another, with this mode.
Result<Fd> make_folder_beneath(int at, const std::string& path, mode_t mode);

}  // namespace zed::net
