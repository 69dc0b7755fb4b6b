#pragma once
// Folders for what only we may see: state, keys, sockets.

#include <filesystem>

#include "base/result.hpp"

namespace zed::net {

/// Makes a folder, and what is missing above it, that only its owner may enter. One that is there
/// is closed to others. Errors: `io`, `no_space`.
Status make_private_folder(const std::filesystem::path& folder);

}  // namespace zed::net
