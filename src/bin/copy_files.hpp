#pragma once
// Copies what an import takes into the live files of a dataset.

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"
#include "modelio/source_files.hpp"

namespace zed::bin {

/// At most once a second. `rate` is bytes per second since the last report.
using ReportCopied = std::function<void(Bytes done, Bytes total, Bytes rate)>;

struct CopyOptions {
  bool hash = false;
  ReportCopied report;  ///< may be empty
};

/// Files of the same name are written over. Shares blocks with the source where the file system can
/// (reflink). With `hash`, the SHA-256 as hexadecimal digits: of the one file, or of the lines
/// "<sha256 of the file>  <its name>" of all files by name, as `sha256sum` writes them; else "".
/// Blocks. Errors: `no_space`, `io`, `busy` (a file changed while it was copied).
Result<std::string> copy_files(const std::vector<modelio::SourceEntry>& entries,
                               const std::filesystem::path& target, const CopyOptions& options);

/// The SHA-256 of a file as hexadecimal digits. Blocks. Errors: `not_found`, `io`.
Result<std::string> digest_of_file(const std::filesystem::path& path);

}  // namespace zed::bin
