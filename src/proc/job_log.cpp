#include "proc/job_log.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <map>
#include <system_error>

#include "base/text.hpp"

namespace zed::proc {
namespace {

using net::Fd;
using net::system_error;

constexpr std::size_t longest_line = 16 * 1024;
constexpr std::size_t page_bytes = 64 * 1024;
constexpr std::size_t time_width = 24;  // "2024-04-13T10:00:00.000Z"

struct Segment {
  std::filesystem::path path;
  std::int64_t size = 0;
};

std::filesystem::path segment_path(const std::filesystem::path& folder, std::int64_t start) {
  std::array<char, 32> name{};
  std::snprintf(name.data(), name.size(), "%020lld.log", static_cast<long long>(start));
  return folder / name.data();
}

/// Segments by the offset of their first byte.
Result<std::map<std::int64_t, Segment>> segments_of(const std::filesystem::path& folder) {
  std::map<std::int64_t, Segment> segments;
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  if (error == std::errc::no_such_file_or_directory) return segments;
  if (error) return fail(ErrorCode::io, "read " + folder.string() + ": " + error.message());
  for (const auto& entry : entries) {
    std::string name = entry.path().filename().string();
    std::int64_t start = 0;
    auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), start);
    if (bad != std::errc{} || std::string_view(end) != ".log") continue;
    auto size = static_cast<std::int64_t>(entry.file_size(error));
    if (!error) segments[start] = {entry.path(), size};
  }
  return segments;
}

Result<std::string> read_range(const std::filesystem::path& path, std::int64_t from,
                               std::size_t limit) {
  // A job may put anything in its own folder: never follow a link, never block on a pipe.
  Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) return fail(system_error(errno, "read " + path.string()));
  std::string text(limit, '\0');
  ssize_t n = ::pread(file.get(), text.data(), limit, from);
  if (n < 0) return fail(system_error(errno, "read " + path.string()));
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

Result<std::int64_t> offset_from_end(const std::map<std::int64_t, Segment>& segments,
                                     std::int64_t lines) {
  const auto& [start, segment] = *segments.rbegin();
  std::int64_t from = std::max<std::int64_t>(0, segment.size - std::int64_t{page_bytes});
  ZED_TRY(std::string text, read_range(segment.path, from, page_bytes));
  std::size_t whole = text.rfind('\n') + 1;
  std::size_t at = start_of_last_lines(std::string_view(text).substr(0, whole), lines);
  if (at == 0 && from > 0) at = text.find('\n') + 1;  // not in the middle of a line
  return start + from + static_cast<std::int64_t>(at);
}

}  // namespace

Result<JobLogWriter> JobLogWriter::open(std::filesystem::path folder, JobLogLimits limits) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return fail(ErrorCode::io, "create " + folder.string() + ": " + error.message());
  ZED_TRY(auto segments, segments_of(folder));
  JobLogWriter writer;
  writer.folder_ = std::move(folder);
  writer.limits_ = limits;
  if (segments.empty()) {
    ZED_CHECK(writer.begin_segment());
    return writer;
  }
  const auto& [start, segment] = *segments.rbegin();
  writer.segment_start_ = start;
  writer.end_ = start + segment.size;
  writer.file_.reset(::open(segment.path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW));
  if (!writer.file_) return fail(system_error(errno, "open " + segment.path.string()));
  ZED_TRY(std::string last, segment.size > 0 ? read_range(segment.path, segment.size - 1, 1)
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
  if (::fdatasync(file_.get()) != 0) return fail(system_error(errno, "sync the job's log"));
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
  std::filesystem::path path = segment_path(folder_, end_);
  file_.reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!file_) return fail(system_error(errno, "open " + path.string()));
  segment_start_ = end_;
  return drop_old_segments();
}

Status JobLogWriter::drop_old_segments() {
  ZED_TRY(auto segments, segments_of(folder_));
  std::int64_t total = 0;
  for (const auto& entry : segments)
    total += entry.second.size;
  while (total > limits_.total.value && segments.size() > 2) {
    auto oldest = std::next(segments.begin());
    total -= oldest->second.size;
    std::error_code error;
    std::filesystem::remove(oldest->second.path, error);
    if (error) return fail(ErrorCode::io, "remove an old log segment: " + error.message());
    segments.erase(oldest);
  }
  return {};
}

Result<LogPage> read_log(const std::filesystem::path& folder, std::int64_t offset) {
  ZED_TRY(auto segments, segments_of(folder));
  if (segments.empty()) return fail(ErrorCode::not_found, "there is no log in " + folder.string());
  LogPage page;
  if (offset < 0) {
    ZED_TRY(page.offset, offset_from_end(segments, -offset));
  } else {
    page.offset = offset;
  }
  page.end = page.offset;
  auto at = segments.upper_bound(page.offset);
  if (at != segments.begin()) --at;
  if (page.offset >= at->first + at->second.size && std::next(at) != segments.end()) {
    ++at;
    page.offset = at->first;
  }
  std::int64_t within = std::max<std::int64_t>(0, page.offset - at->first);
  ZED_TRY(std::string text, read_range(at->second.path, within, page_bytes));
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
