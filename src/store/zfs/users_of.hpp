#pragma once
// Who uses the files below a mount point: what a person needs to know where OpenZFS only says
// "busy".

#include <string>

namespace zed::store::zfs {

/// "python3 (pid 4711), sh (pid 12)": processes with a working directory, an open file or a mapped
/// file there, the first five; empty if none is seen (one of the kernel's own may be it).
std::string users_of(const std::string& mount_point);

}  // namespace zed::store::zfs
