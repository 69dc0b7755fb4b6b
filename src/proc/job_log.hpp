#pragma once
// The log of a job: what its processes wrote, a line each, with the time, in `.zed/log/` of the
// job's dataset, so that it travels and rolls back with it.
//
//   .zed/log/00000000000000000000.log   lines "2024-04-13T10:00:00.000Z o text"
//   .zed/log/00000000000008388637.log   named by the offset of its first byte in the whole log
//
// o: standard output, e: standard error, z: a word of Zed's own. A line over 16 KiB is broken up.
// The folder is the job's: no symlink in it is followed and nothing outside of it is written.
// Beyond 64 MiB the oldest segments but the first go: the start of a log says what was run, its end
// what went wrong. Offsets count on; a reader that asks for what is gone is taken to what is there.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/units.hpp"
#include "core/message.hpp"
#include "net/fd.hpp"

namespace zed::proc {

enum class LogSource : char { output = 'o', error = 'e', zed = 'z' };

struct JobLogLimits {
  Bytes segment = mebibytes(8);
  Bytes total = mebibytes(64);
};

/// Appends. One writer a job: its supervisor. Not thread-safe.
class JobLogWriter {
public:
  /// Opens the log in the job's folder (made if need be) at its end; a torn last line is ended
  /// first. Whatever the job does to `.zed` afterwards, lines go to the folder that was opened.
  /// Errors: `io` (also a symlink where the log should be), `no_space`.
  static Result<JobLogWriter> open(const std::filesystem::path& job_folder,
                                   JobLogLimits limits = {});

  /// Bytes as they came from a pipe; lines are put together across calls, one source at a time.
  Status append(LogSource source, std::string_view bytes, WallTime now);
  /// Writes lines that have not ended yet as if they had. The closing snapshot makes them durable.
  Status finish(WallTime now);

private:
  Status write_line(LogSource source, std::string_view text, WallTime now);
  Status begin_segment();
  Status drop_old_segments();
  std::string& partial(LogSource source) { return source == LogSource::error ? error_ : output_; }

  net::Fd folder_;
  JobLogLimits limits_;
  net::Fd file_;
  std::int64_t segment_start_ = 0;
  std::int64_t end_ = 0;
  std::string output_;  ///< unfinished line of standard output
  std::string error_;
};

/// Lines of the log in a job's folder, from `offset` on (negative: that many from the end), about
/// 64 KiB of them at the most. A line that is still being written is not there yet. Errors:
/// `not_found` if there is no log, `io`.
Result<LogPage> read_log(const std::filesystem::path& job_folder, std::int64_t offset);

}  // namespace zed::proc
