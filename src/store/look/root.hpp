#pragma once
// The folder that a question is about, open. Inside the room only.

#include "env/store.hpp"
#include "net/fd.hpp"

namespace zed::store {

/// Of the snapshot, or with an empty name of the live files.
Result<net::Fd> open_root(env::Store& store, const DatasetName& dataset,
                          const std::string& snapshot);
/// `path` without "." and doubled slashes. Errors: `invalid` if it is absolute or climbs out.
Result<std::string> clean_path(const std::string& path);

}  // namespace zed::store
