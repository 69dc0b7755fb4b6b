#include "gpu/tree.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/text.hpp"
#include "gpu/words.hpp"
#include "net/fd.hpp"

namespace zed::gpu {
namespace {

constexpr std::size_t longest_file = std::size_t{64} << 10;
constexpr std::size_t most_names = 4096;

}  // namespace

std::filesystem::path Tree::at(const std::string& path) const {
  return root_ / std::filesystem::path(path).relative_path();
}

std::optional<std::string> Tree::text(const std::string& path) const {
  net::Fd file(::open(at(path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  std::string text;
  std::array<char, 4096> buffer;
  while (text.size() < longest_file) {
    ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return std::string(trim(text));
}

bool Tree::is_denied(const std::string& path) const {
  net::Fd file(::open(at(path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  return !file && (errno == EACCES || errno == EPERM);
}

std::optional<std::int64_t> Tree::number(const std::string& path) const {
  auto found = text(path);
  return found ? whole_number(*found) : std::nullopt;
}

std::optional<std::uint64_t> Tree::hex(const std::string& path) const {
  auto found = text(path);
  return found ? hexadecimal(*found) : std::nullopt;
}

std::string Tree::link_name(const std::string& path) const {
  std::error_code error;
  auto target = std::filesystem::read_symlink(at(path), error);
  if (!error) return target.filename();
  auto written = text(path);
  if (!written || written->find('/') == std::string::npos) return {};
  return std::filesystem::path(*written).filename();
}

std::vector<std::string> Tree::names(const std::string& folder) const {
  std::vector<std::string> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(at(folder), error), end;
       !error && entry != end && found.size() < most_names; entry.increment(error))
    found.push_back(entry->path().filename());
  std::sort(found.begin(), found.end());
  return found;
}

bool Tree::exists(const std::string& path) const {
  std::error_code error;
  return std::filesystem::exists(std::filesystem::symlink_status(at(path), error));
}

HostMemory host_memory(const Tree& tree) {
  HostMemory memory;
  auto text = tree.text("/proc/meminfo");
  if (!text) return memory;
  for (std::string_view line : lines_of(*text)) {
    std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    std::string_view value = trim(line.substr(colon + 1));
    auto size = size_of(value);
    if (!size) continue;
    if (line.starts_with("MemTotal:")) memory.total = size->value;
    if (line.starts_with("MemAvailable:")) memory.available = size->value;
  }
  return memory;
}

}  // namespace zed::gpu
