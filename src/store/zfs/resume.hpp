#pragma once
// Going on with another machine's interrupted zfs stream. `zfs send -t` looks the snapshot up under
// the name that it had at the first sender; the kernel knows it by guid only, so a replica under
// any name can go on by libzfs_core's own call (loaded when it is first needed: the tools' ABI is
// stable there, and nowhere else).

#include <memory>
#include <string>

#include "store/zfs/command.hpp"
#include "store/zfs/output.hpp"

namespace zed::store::zfs {

/// `snapshot` and `from` ("" for a full stream) are full names. The stream is read from the Child.
/// Errors: `unsupported` where there is no libzfs_core.so.3.
Result<std::unique_ptr<Child>> resume_send(const std::string& snapshot, const std::string& from,
                                           const ResumePoint& point);

}  // namespace zed::store::zfs
