#pragma once
// A folder of a snapshot's files as the source of a `files` stream.

#include <memory>
#include <string>

#include "store/dir/disk.hpp"
#include "store/files/sender.hpp"

namespace zed::store {

/// `files` is the open folder; it stays open for as long as the source lives.
std::unique_ptr<ContentSource> make_folder_source(disk::Fd files);

/// SHA-256 of exactly entry.size bytes of that file. Errors: as disk::read_at.
Result<Digest> digest_of(int files, const Entry& entry);

}  // namespace zed::store
