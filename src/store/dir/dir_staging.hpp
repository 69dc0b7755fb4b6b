#pragma once
// The staging area of a receive: a folder (dir/layout.hpp) of numbered files.

#include <memory>

#include "store/dir/disk.hpp"
#include "store/files/receiver.hpp"

namespace zed::store {

/// `folder` is open and exists.
std::unique_ptr<Staging> make_dir_staging(disk::Fd folder);

}  // namespace zed::store
