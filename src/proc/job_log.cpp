#include "proc/job_log.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <limits>
#include <map>
#include <memory>
#include <optional>

#include "base/text.hpp"
#include "net/beneath.hpp"

namespace zed::proc {
namespace {

using net::Fd;
using net::system_error;

constexpr std::size_t longest_line = 16 * 1024;
constexpr std::size_t page_bytes = 64 * 1024;
constexpr std::size_t time_width = 24;  // "2024-04-13T10:00:00.000Z"

constexpr char place[] = ".zed/log";

/// Opens a job's folder, of which nothing but the name is trusted.
Result<Fd> open_job_folder(const std::filesystem::path& job_folder) {
  Fd folder(::open(job_folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return fail(system_error(errno, "open the job's folder " + job_folder.string()));
  return folder;
}

std::string segment_name(std::int64_t start) {
  std::array<char, 32> name{};
  std::snprintf(name.data(), name.size(), "%020lld.log", static_cast<long long>(start));
  return name.data();
}

/// The number in a segment's name.
std::optional<std::int64_t> start_of(std::string_view name) {
  std::int64_t start = 0;
  auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), start);
  bool ours = bad == std::errc{} && std::string_view(end) == ".log" && name == segment_name(start);
  return ours ? std::optional(start) : std::nullopt;
}

/// Sizes of the segments, by the offset of their first byte. Only regular files count.
using Segments = std::map<std::int64_t, std::int64_t>;

Result<Segments> segments_of(int folder) {
  // A descriptor of its own: reading moves the position.
  int own = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  std::unique_ptr<DIR, int (*)(DIR*)> entries(own >= 0 ? ::fdopendir(own) : nullptr, ::closedir);
  if (!entries) return fail(system_error(errno, "read the job's log"));
  Segments segments;
  while (const dirent* entry = ::readdir(entries.get())) {
    auto start = start_of(entry->d_name);
    struct stat status {};
    if (!start || ::fstatat(folder, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (S_ISREG(status.st_mode)) segments[*start] = status.st_size;
  }
  return segments;
}

Result<std::string> read_range(int folder, std::int64_t start, std::int64_t from,
                               std::size_t limit) {
  ZED_TRY(auto file, net::open_file_beneath(folder, segment_name(start)));
  std::string text(limit, '\0');
  ssize_t n = ::pread(file.get(), text.data(), limit, from);
  if (n < 0) return fail(system_error(errno, "read " + segment_name(start)));
  text.resize(static_cast<std::size_t>(n));
  return text;
}

WallTime time_of(std::string_view text) {
  std::tm utc{};
  int ms = 0;
  if (std::sscanf(std::string(text).c_str(), "%d-%d-%dT%d:%d:%d.%dZ", &utc.tm_year, &utc.tm_mon,
                  &utc.tm_mday, &utc.tm_hour, &utc.tm_min, &utc.tm_sec, &ms) != 7)
    return {};
  utc.tm_year -= 1900;
  utc.tm_mon -= 1;
  return {std::int64_t{timegm(&utc)} * 1000 + ms};
}

LogLine line_of(std::string_view written) {
  LogLine line;
  bool framed = written.size() >= time_width + 3 && written[time_width] == ' ';
  if (framed) {
    line.at = time_of(written.substr(0, time_width));
    line.error_stream = written[time_width + 1] == 'e';
    written.remove_prefix(time_width + 3);
  }
  line.text = is_valid_utf8(written) ? std::string(written) : percent_encode(written);
  return line;
}

/// Where a page begins that shows the last `lines` lines of this text, at most `page_bytes` long.
std::size_t start_of_last_lines(std::string_view text, std::int64_t lines) {
  std::size_t start = text.size();
  while (lines-- > 0 && start > 0) {
    std::size_t previous = start >= 2 ? text.rfind('\n', start - 2) : std::string_view::npos;
    start = previous == std::string_view::npos ? 0 : previous + 1;
  }
  return start;
}

Result<std::int64_t> offset_from_end(int folder, const Segments& segments, std::int64_t lines) {
  const auto& [start, size] = *segments.rbegin();
  std::int64_t from = std::max<std::int64_t>(0, size - std::int64_t{page_bytes});
  ZED_TRY(std::string text, read_range(folder, start, from, page_bytes));
  std::size_t whole = text.rfind('\n') + 1;
  std::size_t at = start_of_last_lines(std::string_view(text).substr(0, whole), lines);
  if (at == 0 && from > 0) at = text.find('\n') + 1;  // not in the middle of a line
  return start + from + static_cast<std::int64_t>(at);
}

}  // namespace

Result<JobLogWriter> JobLogWriter::open(const std::filesystem::path& job_folder,
                                        JobLogLimits limits) {
  JobLogWriter writer;
  writer.limits_ = limits;
  ZED_TRY(auto job, open_job_folder(job_folder));
  auto folder = net::make_folder_beneath(job.get(), place, 0755);
  if (!folder) return fail(std::move(folder).error().with("open the job's log"));
  writer.folder_ = std::move(*folder);
  ZED_TRY(auto segments, segments_of(writer.folder_.get()));
  if (segments.empty()) {
    ZED_CHECK(writer.begin_segment());
    return writer;
  }
  const auto& [start, size] = *segments.rbegin();
  writer.segment_start_ = start;
  writer.end_ = start + size;
  ZED_TRY(writer.file_, net::open_beneath(writer.folder_.get(), segment_name(start),
                                          O_WRONLY | O_APPEND | O_NONBLOCK));
  ZED_TRY(std::string last, size > 0 ? read_range(writer.folder_.get(), start, size - 1, 1)
                                     : Result<std::string>(std::string("\n")));
  if (last != "\n" && ::write(writer.file_.get(), "\n", 1) == 1) ++writer.end_;
  return writer;
}

Status JobLogWriter::append(LogSource source, std::string_view bytes, WallTime now) {
  std::string& line = partial(source);
  while (!bytes.empty()) {
    std::size_t room = longest_line - line.size();
    std::size_t end = bytes.substr(0, room).find('\n');
    bool ended = end != std::string_view::npos;
    std::size_t taken = ended ? end : std::min(room, bytes.size());
    line.append(bytes.substr(0, taken));
    bytes.remove_prefix(taken + (ended ? 1 : 0));
    if (!ended && line.size() < longest_line) break;
    ZED_CHECK(write_line(source, line, now));
    line.clear();
  }
  return {};
}

Status JobLogWriter::finish(WallTime now) {
  for (LogSource source : {LogSource::output, LogSource::error}) {
    if (partial(source).empty()) continue;
    ZED_CHECK(write_line(source, partial(source), now));
    partial(source).clear();
  }
  return {};
}

Status JobLogWriter::write_line(LogSource source, std::string_view text, WallTime now) {
  if (end_ - segment_start_ >= limits_.segment.value) ZED_CHECK(begin_segment());
  std::string line = to_iso8601(now);
  line += ' ';
  line += static_cast<char>(source);
  line += ' ';
  line += text;
  line += '\n';
  ssize_t written = ::write(file_.get(), line.data(), line.size());
  if (written < 0) return fail(system_error(errno, "write the job's log"));
  end_ += written;
  return {};
}

Status JobLogWriter::begin_segment() {
  const std::string name = segment_name(end_);
  constexpr int flags = O_WRONLY | O_CREAT | O_EXCL | O_APPEND;
  auto file = net::open_beneath(folder_.get(), name, flags, 0644);
  if (!file && file.error().code == ErrorCode::exists) {
    // Whatever the job put there is not ours.
    ::unlinkat(folder_.get(), name.c_str(), 0);
    file = net::open_beneath(folder_.get(), name, flags, 0644);
  }
  if (!file) return fail(std::move(file).error().with("begin a segment of the job's log"));
  file_ = std::move(*file);
  segment_start_ = end_;
  return drop_old_segments();
}

Status JobLogWriter::drop_old_segments() {
  ZED_TRY(auto segments, segments_of(folder_.get()));
  std::int64_t total = 0;
  for (const auto& entry : segments)
    total += entry.second;
  while (total > limits_.total.value && segments.size() > 2) {
    auto oldest = std::next(segments.begin());
    total -= oldest->second;
    if (::unlinkat(folder_.get(), segment_name(oldest->first).c_str(), 0) != 0 && errno != ENOENT)
      return fail(system_error(errno, "remove an old segment of the job's log"));
    segments.erase(oldest);
  }
  return {};
}

Result<LogPage> read_log(const std::filesystem::path& job_folder, std::int64_t offset) {
  const std::string what = "read the log in " + job_folder.string();
  ZED_TRY(auto job, open_job_folder(job_folder));
  auto opened = net::open_beneath(job.get(), place, O_RDONLY | O_DIRECTORY);
  if (!opened) return fail(std::move(opened).error().with(what));
  const int folder = opened->get();
  ZED_TRY(auto segments, segments_of(folder));
  if (segments.empty()) return fail(ErrorCode::not_found, what + ": there is none");
  LogPage page;
  if (offset < 0) {
    // -INT64_MIN is no number.
    const std::int64_t lines = -std::max(offset, -std::numeric_limits<std::int64_t>::max());
    ZED_TRY(page.offset, offset_from_end(folder, segments, lines));
  } else {
    page.offset = offset;
  }
  page.end = page.offset;
  auto at = segments.upper_bound(page.offset);
  if (at != segments.begin()) --at;
  if (page.offset >= at->first + at->second && std::next(at) != segments.end()) {
    ++at;
    page.offset = at->first;
  }
  std::int64_t within = std::max<std::int64_t>(0, page.offset - at->first);
  std::string text;
  // Beyond the end there is nothing yet.
  if (within <= at->second) {
    ZED_TRY(text, read_range(folder, at->first, within, page_bytes));
  }
  std::size_t begin = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    page.lines.push_back(line_of(std::string_view(text).substr(begin, end - begin)));
    begin = end + 1;
  }
  page.offset = at->first + within;
  page.end = page.offset + static_cast<std::int64_t>(begin);
  return page;
}

}  // namespace zed::proc
