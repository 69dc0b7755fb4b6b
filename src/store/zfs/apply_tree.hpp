#pragma once
// Turns live files that equal a `files` stream's base into what the stream brought, in place: only
// blocks that differ are written, so that on a copy-on-write file system the new snapshot shares
// all others with the one before.

#include "store/dir/disk.hpp"
#include "store/files/receiver.hpp"

namespace zed::store::zfs {

/// `live`, `base` (the base snapshot's files; -1: none, then `live` is emptied first) and `staged`
/// (a folder of numbered files) are open folders. May be begun again after it was cut off, once
/// `live` equals the base again. Nothing is synced: the snapshot that follows does.
Status apply_in_place(const Arrival& arrival, int base, int staged, int live);

}  // namespace zed::store::zfs
