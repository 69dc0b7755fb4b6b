#pragma once
// A person's look into the files of a copy: lists, pieces of files, metrics. Nothing is changed,
// symlinks that a job left are never followed, and every answer fits in a message.

#include "core/question.hpp"
#include "env/store.hpp"

namespace zed::store {

/// One page. Folders are listed before what is in them; the order is by components. A page ends
/// after 1,000 entries, 150 KiB of names or 256 MiB of files read for their digest.
/// Errors: `not_found` (dataset, snapshot or path), `invalid` (a path that leaves the dataset),
/// `io`.
Result<FileList> list_files(env::Store& store, const ListFiles& question);

/// At most file_piece_limit bytes from `offset` on; none beyond the end. Errors: as list_files, and
/// `invalid` for what is no regular file.
Result<FilePiece> read_file(env::Store& store, const ReadFile& question);

/// Errors: as list_files; a copy without metrics has an empty page. Lines that do not parse are
/// left out, as docs/job-protocol.md says. Of more than 16 MiB only the newest are read.
Result<MetricsPage> read_metrics(env::Store& store, const ReadMetrics& question);

/// Keeps the first, the last and the extremes between: at most `most` (2 or more) of the indexes of
/// `values`, ascending.
std::vector<std::size_t> thinned(const std::vector<double>& values, std::size_t most);

}  // namespace zed::store
