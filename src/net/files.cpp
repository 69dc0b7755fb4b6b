#include "net/files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "net/system.hpp"

namespace zed::net {

Status write_all(int fd, std::string_view text, const std::string& what) {
  while (!text.empty()) {
    ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(system_error(errno, what));
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

Status sync_folder_of(const std::filesystem::path& path) {
  const auto parent = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  Fd folder(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder || sync_file(folder.get()) != 0)
    return fail(system_error(errno, "sync the folder of " + path.string()));
  return {};
}

Status write_file(const std::filesystem::path& path, std::string_view text, Endures endures) {
  std::string what = "write " + path.string();
  std::filesystem::path temporary = path;
  temporary += ".new";
  Fd file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file) return fail(system_error(errno, what));
  ZED_CHECK(write_all(file.get(), text, what));
  if (endures == Endures::power && sync_file(file.get()) != 0)
    return fail(system_error(errno, what));
  if (::rename(temporary.c_str(), path.c_str()) != 0) return fail(system_error(errno, what));
  if (endures == Endures::power) return sync_folder_of(path);
  // A journalling file system makes the file's name durable with the file.
  if (endures == Endures::power_once_written && sync_file(file.get()) != 0)
    return fail(system_error(errno, what));
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

}  // namespace zed::net
