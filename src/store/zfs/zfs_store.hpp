#pragma once
// A Store on OpenZFS (2.1 or later), through its command line. What its rules are is in
// env/store.hpp; what was learned about OpenZFS on the way is where the code needs it.

#include <memory>
#include <string>

#include "env/store.hpp"
#include "store/zfs/command.hpp"

namespace zed::store {

/// Opens the store under `root`: a pool ("tank") or a dataset that exists ("tank/zed"), and
/// finishes what a receive left at a crash. A process without root's rights can hold replicas only
/// (info().may_mount), as `zfs allow` permits. Streams that it made must be destroyed before it.
/// Errors: `invalid` (no legal name), `not_found` (no such pool), `unsupported` (no OpenZFS, or one
/// older than 2.1), `busy` (open in another process), `io`.
Result<std::unique_ptr<env::Store>> open_zfs_store(const std::string& root);
/// The same with other commands than the system's; for tests. `privileged`: as root.
Result<std::unique_ptr<env::Store>>
open_zfs_store(const std::string& root, std::unique_ptr<zfs::Commands> commands, bool privileged);

}  // namespace zed::store
