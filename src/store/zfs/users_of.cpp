#include "store/zfs/users_of.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/text.hpp"

namespace zed::store::zfs {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_named = 5;
constexpr std::size_t most_maps = std::size_t{1} << 20;

bool is_below(const std::string& path, const std::string& top) {
  return path == top || path.starts_with(top + "/");
}

bool links_below(const fs::path& link, const std::string& top) {
  std::error_code error;
  auto target = fs::read_symlink(link, error);
  return !error && is_below(target.string(), top);
}

bool has_open(const fs::path& process, const std::string& top) {
  std::error_code error;
  for (fs::directory_iterator fd(process / "fd", error), end; !error && fd != end;
       fd.increment(error))
    if (links_below(fd->path(), top)) return true;
  return false;
}

/// A mapped file stays in use after its descriptor is closed.
bool has_mapped(const fs::path& process, const std::string& top) {
  std::ifstream maps(process / "maps");
  std::string line;
  for (std::size_t read = 0; read < most_maps && std::getline(maps, line); read += line.size()) {
    std::size_t path = line.find('/');
    if (path != std::string::npos && is_below(line.substr(path), top)) return true;
  }
  return false;
}

std::string name_of(const fs::path& process) {
  std::ifstream file(process / "comm");
  std::string name;
  std::getline(file, name);
  return percent_encode(name) + " (pid " + process.filename().string() + ")";
}

}  // namespace

std::string users_of(const std::string& mount_point) {
  std::vector<std::string> users;
  std::error_code error;
  for (fs::directory_iterator process("/proc", error), end;
       !error && process != end && users.size() < most_named; process.increment(error)) {
    std::string pid = process->path().filename().string();
    bool is_process =
        std::all_of(pid.begin(), pid.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!is_process) continue;
    const fs::path& path = process->path();
    bool uses = links_below(path / "cwd", mount_point) || links_below(path / "root", mount_point) ||
                has_open(path, mount_point) || has_mapped(path, mount_point);
    if (uses) users.push_back(name_of(path));
  }
  return join(users, ", ");
}

}  // namespace zed::store::zfs
