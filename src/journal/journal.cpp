#include "journal/journal.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iterator>

#include "base/frame.hpp"
#include "base/log.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "net/files.hpp"
#include "net/system.hpp"

namespace zed::journal {
namespace {

using net::Fd;
using net::sync_folder_of;
using net::system_error;
using net::write_all;

constexpr std::string_view magic = "zed-journal 1 ";

Result<Fd> write_new(const std::filesystem::path& path, const std::string& text) {
  std::string what = "write " + path.string();
  std::filesystem::path temporary = path;
  temporary += ".new";
  Fd file(::open(temporary.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600));
  if (!file) return fail(system_error(errno, what));
  ZED_CHECK(write_all(file.get(), text, what));
  if (net::sync_file(file.get()) != 0) return fail(system_error(errno, what));
  if (::rename(temporary.c_str(), path.c_str()) != 0) return fail(system_error(errno, what));
  ZED_CHECK(sync_folder_of(path));
  return file;
}

Result<Fd> take_lock(const std::filesystem::path& path) {
  std::filesystem::path lock = path;
  lock += ".lock";
  Fd file(::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file) return fail(system_error(errno, "open " + lock.string()));
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0)
    return fail(ErrorCode::busy, "the journal " + path.string() + " is in use by another process",
                "stop the other zed-controller first");
  return file;
}

}  // namespace

Result<Contents> parse_journal(std::string_view text) {
  auto damaged = [](std::size_t at, const std::string& what) {
    return fail(ErrorCode::corrupt, what + " at byte " + std::to_string(at),
                "the copy on the second node may be whole: zed-controller takeover there");
  };
  std::size_t line_end = text.find('\n');
  if (!text.starts_with(magic) || line_end == std::string_view::npos)
    return damaged(0, "this is no zed journal");
  std::string_view number = text.substr(magic.size(), line_end - magic.size());
  Contents contents;
  const auto first = parse_number<decltype(contents.last_seq)>(number);
  if (!first) return damaged(magic.size(), "the journal's first number cannot be read");
  contents.last_seq = *first;
  std::size_t at = line_end + 1;
  while (at < text.size()) {
    auto record = record_at(text.substr(at), longest_record);
    if (!record) {
      if (holds_a_record_after(text.substr(at), longest_record))
        return damaged(at, "a damaged record");
      break;
    }
    contents.records.emplace_back(*record);
    ++contents.last_seq;
    at += frame_size + record->size();
  }
  contents.whole_bytes = at;
  return contents;
}

std::string format_journal(std::uint64_t last_seq, const std::vector<std::string>& records) {
  std::string text(magic);
  text += std::to_string(last_seq - records.size()) + "\n";
  for (const std::string& record : records)
    text += framed(record);
  return text;
}

Result<Journal::Opened> Journal::open(std::filesystem::path path) {
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  if (error)
    return fail(ErrorCode::io, "create " + path.parent_path().string() + ": " + error.message());
  Opened opened;
  Journal& journal = opened.journal;
  journal.path_ = path;
  ZED_TRY(journal.lock_, take_lock(path));
  if (!std::filesystem::exists(path, error)) {
    std::string text = format_journal(0, {});
    ZED_TRY(journal.file_, write_new(path, text));
    journal.size_ = static_cast<std::int64_t>(text.size());
    return opened;
  }
  std::ifstream stream(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  auto contents = parse_journal(text);
  if (!contents) return fail(std::move(contents).error().with("open journal " + path.string()));
  journal.file_.reset(::open(path.c_str(), O_RDWR | O_APPEND | O_CLOEXEC));
  if (!journal.file_) return fail(system_error(errno, "open journal " + path.string()));
  journal.size_ = static_cast<std::int64_t>(contents->whole_bytes);
  if (contents->whole_bytes < text.size()) {
    log_warning(path.string() +
                " ends with a record that was torn by a crash, and never counted: " +
                plural(text.size() - contents->whole_bytes, "byte") + " cut off at byte " +
                std::to_string(contents->whole_bytes));
    if (::ftruncate(journal.file_.get(), journal.size_) != 0 ||
        net::sync_file(journal.file_.get()) != 0)
      return fail(system_error(errno, "cut the torn tail of " + path.string()));
  }
  journal.last_seq_ = contents->last_seq;
  opened.records = std::move(contents->records);
  return opened;
}

Status Journal::append(std::uint64_t first_seq, std::span<const std::string> records) {
  ZED_ASSERT(first_seq == last_seq_ + 1);
  std::string text;
  for (const std::string& record : records) {
    if (record.size() > longest_record || record.find('\n') != std::string::npos)
      return fail(ErrorCode::invalid, "a journal record is longer than 8 MiB or not one line");
    text += framed(record);
  }
  std::string what = "append to journal " + path_.string();
  Status written = write_all(file_.get(), text, what);
  if (written && net::sync_data(file_.get()) != 0) written = fail(system_error(errno, what));
  if (!written) {
    // What stands there now must not be read back as durable; if even this fails, the next append
    // fails too, and the start after it finds a torn tail.
    [[maybe_unused]] int cut = ::ftruncate(file_.get(), size_);
    return written;
  }
  size_ += static_cast<std::int64_t>(text.size());
  last_seq_ += records.size();
  return {};
}

Status Journal::replace(std::uint64_t last_seq, const std::vector<std::string>& records) {
  std::string text = format_journal(last_seq, records);
  ZED_TRY(file_, write_new(path_, text));
  size_ = static_cast<std::int64_t>(text.size());
  last_seq_ = last_seq;
  return {};
}

}  // namespace zed::journal
