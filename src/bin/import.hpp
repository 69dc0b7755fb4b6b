#pragma once
// Bringing files of this machine into a new dataset.

#include "bin/copy_files.hpp"
#include "core/plan.hpp"
#include "core/question.hpp"
#include "env/store.hpp"

namespace zed::bin {

/// Copies the file or folder, snapshots it and makes it readonly. Done already (the snapshot's id
/// is there): returns it. A dataset left behind by an import that was cut off is begun anew. Models
/// and data get the property `sha256` (copy_files() says of what); models the properties that their
/// files tell (model/properties.hpp), under those that the import gives. Blocks. Errors:
/// `not_found` (the path, a part of a model), `exists` (another dataset of that name), `invalid`
/// and `corrupt` (a model's files are broken), `no_space`, `io`, `busy` (a file changed meanwhile).
Result<Snapshot> import_files(env::Store& store, const ImportFiles& import,
                              const ReportCopied& report = {});

/// Submitted code: into `zed/code/<content>`, unless that is there. Called by import_files() for
/// what goes into `zed/code`. Errors: those, and `busy` (the folder changes all the time).
Result<Snapshot> import_code(env::Store& store, const ImportFiles& import,
                             const ReportCopied& report = {});

/// Does what is left of imports that were cut off after their snapshot: the datasets become
/// readonly and are no longer marked. Called before anything else uses the store. One that cannot
/// be finished is logged and left as it is, to be tried again at the next start. Blocks. Errors:
/// Store::list()'s.
Status finish_imports(env::Store& store);

/// What the live files of a dataset tell of the model that they are. Nothing is copied; links are
/// not followed. Blocks. Errors: `not_found`, `io`, `unsupported` (they cannot be opened here);
/// headers that cannot be read are no error (ModelFacts::unread).
Result<ModelFacts> examine_model(env::Store& store, const DatasetName& dataset);

/// Copies the files of a snapshot into the live files of a dataset; those of the same name are
/// written over. Blocks. Errors: `not_found`, `no_space`, `io`.
Status unpack_code(env::Store& store, const DatasetName& dataset, const Input& code);

}  // namespace zed::bin
