#pragma once
// The embedded store: datasets as folders under one root, for a machine without ZFS.

#include <filesystem>
#include <memory>
#include <string>

#include "env/store.hpp"

namespace zed::store {

/// Opens the store in `root`, or makes an empty one of that pool name there (one that exists keeps
/// its name). Only one process at a time has it open. Errors: `busy` (open elsewhere, naming the
/// pid), `corrupt` (no or a damaged catalog), `unsupported` (a newer format), `io`.
Result<std::unique_ptr<env::Store>> open_dir_store(const std::filesystem::path& root,
                                                   const std::string& pool);

}  // namespace zed::store
