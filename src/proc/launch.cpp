#include "proc/launch.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/describe.hpp"
#include "base/json.hpp"
#include "base/log.hpp"
#include "net/fd.hpp"

namespace zed::proc {
namespace {

using net::Fd;
using net::system_error;

Status write_all(int fd, const std::string& text, const std::string& what) {
  std::size_t written = 0;
  while (written < text.size()) {
    ssize_t n = ::write(fd, text.data() + written, text.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(system_error(errno, what));
    written += static_cast<std::size_t>(n);
  }
  return {};
}

template <class T> Status write_record(const std::filesystem::path& path, const T& record) {
  return write_file_durably(path, to_json_pretty(to_value(record)));
}

template <class T> Result<T> read_record(const std::filesystem::path& path) {
  ZED_TRY(std::string text, read_file(path));
  ZED_TRY(Value value, parse_json(text));
  auto record = from_value<T>(value);
  if (!record) return fail(std::move(record).error().with("read " + path.string()));
  return record;
}

}  // namespace

Status write_file_durably(const std::filesystem::path& path, const std::string& text) {
  std::string what = "write " + path.string();
  std::filesystem::path temporary = path;
  temporary += ".new";
  {
    Fd file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!file) return fail(system_error(errno, what));
    ZED_CHECK(write_all(file.get(), text, what));
    if (::fsync(file.get()) != 0) return fail(system_error(errno, what));
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) return fail(system_error(errno, what));
  Fd folder(::open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder || ::fsync(folder.get()) != 0) return fail(system_error(errno, what));
  return {};
}

Result<std::string> read_file(const std::filesystem::path& path, Bytes limit) {
  std::string what = "read " + path.string();
  Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return fail(system_error(errno, what));
  std::string text;
  std::array<char, 16384> buffer{};
  for (;;) {
    ssize_t n = ::read(file.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(system_error(errno, what));
    if (n == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(n));
    if (static_cast<std::int64_t>(text.size()) > limit.value)
      return fail(ErrorCode::invalid,
                  what + ": longer than " + std::to_string(limit.value) + " bytes");
  }
}

AttemptFolder AttemptFolder::of(const std::filesystem::path& attempts, const JobId& job,
                                const Generation& generation) {
  return AttemptFolder(attempts / (job.str() + "-" + generation.str()));
}

Status AttemptFolder::write_launch(const Launch& launch) const {
  std::error_code error;
  std::filesystem::create_directories(path_, error);
  if (error) return fail(ErrorCode::io, "create " + path_.string() + ": " + error.message());
  return write_record(path_ / "launch.json", launch);
}
Status AttemptFolder::write_supervisor(const ProcessIdentity& identity) const {
  return write_record(path_ / "supervisor.json", identity);
}
Status AttemptFolder::write_exit(const ExitRecord& exit) const {
  return write_record(path_ / "exit.json", exit);
}
Result<Launch> AttemptFolder::read_launch() const {
  return read_record<Launch>(path_ / "launch.json");
}
Result<ProcessIdentity> AttemptFolder::read_supervisor() const {
  return read_record<ProcessIdentity>(path_ / "supervisor.json");
}
Result<ExitRecord> AttemptFolder::read_exit() const {
  return read_record<ExitRecord>(path_ / "exit.json");
}

Status AttemptFolder::remove() const {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
  if (error) return fail(ErrorCode::io, "remove " + path_.string() + ": " + error.message());
  return {};
}

std::vector<AttemptFolder> attempt_folders(const std::filesystem::path& attempts) {
  std::vector<AttemptFolder> folders;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(attempts, error)) {
    if (!entry.is_directory(error)) continue;
    AttemptFolder folder(entry.path());
    auto launch = folder.read_launch();
    if (launch)
      folders.push_back(std::move(folder));
    else
      log_warning("attempt left alone: " + launch.error().describe());
  }
  return folders;
}

}  // namespace zed::proc
