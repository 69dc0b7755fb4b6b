#include "bin/daemon.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/text.hpp"
#include "net/files.hpp"
#include "net/system.hpp"
#include "proc/identity.hpp"
#include "proc/launch.hpp"

namespace zed::bin {

std::array<std::uint8_t, 16> SystemIds::next() {
  std::array<std::uint8_t, 16> bytes{};
  net::fill_random(std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

Result<std::string> read_cookie(const std::filesystem::path& file, bool make_if_missing) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) {
    if (errno != ENOENT || !make_if_missing)
      return fail(net::system_error(errno, "read the cookie " + file.string()));
    std::string cookie = hex_of(SystemIds().next());
    ZED_CHECK(proc::write_file_durably(file, cookie + "\n"));
    return cookie;
  }
  if ((info.st_mode & 077) != 0)
    return fail(ErrorCode::refused, "others may read the cookie " + file.string(),
                "chmod 600 " + file.string());
  ZED_TRY(std::string text, proc::read_file(file, kibibytes(4)));
  std::string cookie(trim(text.substr(0, text.find('\n'))));
  if (cookie.empty() || cookie.size() > 255)
    return fail(ErrorCode::invalid, "the cookie in " + file.string() + " is not 1 to 255 bytes");
  return cookie;
}

std::uint64_t raise_open_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) == 0) return limit.rlim_cur;
  // macOS calls its hard limit endless and takes no more than OPEN_MAX.
  constexpr rlim_t macos_most = 10'240;
  limit.rlim_cur = std::max(before, std::min(macos_most, limit.rlim_max));
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : before;
}

Result<PidFile> PidFile::take(const std::filesystem::path& folder) {
  std::filesystem::path path = folder / "pid.json";
  auto owner = net::read_record<proc::ProcessIdentity>(path);
  if (owner && owner->pid != ::getpid() && proc::is_alive(*owner))
    return fail(ErrorCode::busy,
                folder.string() + " is in use by process " + std::to_string(owner->pid),
                "stop it first, or give this one another --state folder");
  auto self = proc::identity_of(::getpid());
  if (!self) return fail(ErrorCode::io, "cannot read who this process is");
  ZED_CHECK(net::write_record(path, *self));
  return PidFile(path);
}

PidFile::~PidFile() {
  std::error_code error;
  if (!path_.empty()) std::filesystem::remove(path_, error);
}

}  // namespace zed::bin
