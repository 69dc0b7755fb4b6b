#pragma once
// Bringing files of this machine into a new dataset.

#include "core/plan.hpp"
#include "env/store.hpp"

namespace zed::bin {

/// Copies the file or folder, snapshots it and makes it readonly. Done already (the snapshot's id
/// is there): returns it. A dataset left behind by an import that was cut off is begun anew.
/// Blocks. Errors: `not_found` (the path), `exists` (another dataset of that name), `no_space`,
/// `io`.
Result<Snapshot> import_files(env::Store& store, const ImportFiles& import);

/// Copies the files of a snapshot into the live files of a dataset; those of the same name are
/// written over. Blocks. Errors: `not_found`, `no_space`, `io`.
Status unpack_code(env::Store& store, const DatasetName& dataset, const Input& code);

}  // namespace zed::bin
