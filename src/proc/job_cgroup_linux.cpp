#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>

#include "proc/job_cgroup.hpp"

namespace zed::proc {
namespace {

constexpr char mark[] = "zed-job-";

/// Where cgroup v2 is mounted, alone or beside v1.
std::optional<std::filesystem::path> mount_point() {
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    // "id parent device root MOUNTPOINT options … - TYPE source options" (proc(5)).
    std::size_t separator = line.find(" - ");
    if (separator == std::string::npos || line.compare(separator + 3, 8, "cgroup2 ") != 0) continue;
    std::istringstream fields(line);
    std::string id, parent, device, root, point;
    fields >> id >> parent >> device >> root >> point;
    return point;
  }
  return std::nullopt;
}

std::optional<std::filesystem::path> own_group() {
  auto mount = mount_point();
  if (!mount) return std::nullopt;
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("0::/", 0) == 0) return *mount / line.substr(4);
  return std::nullopt;
}

std::optional<long> number_in(const std::filesystem::path& path, const std::string& name) {
  std::ifstream file(path);
  std::string key;
  long value = 0;
  while (file >> key >> value)
    if (key == name) return value;
  return std::nullopt;
}

}  // namespace

JobCgroup::JobCgroup(std::filesystem::path path)
    : path_(std::move(path)),
      procs_(::open((path_ / "cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC)) {}

std::optional<JobCgroup> JobCgroup::make(const std::string& name) {
  auto own = own_group();
  if (!own) return std::nullopt;
  std::filesystem::path path = *own / (mark + name);
  if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) return std::nullopt;
  return find(path);
}

std::optional<JobCgroup> JobCgroup::find(const std::filesystem::path& path) {
  auto mount = mount_point();
  const bool is_ours = mount && path.string().rfind(mount->string() + "/", 0) == 0 &&
                       path.filename().string().rfind(mark, 0) == 0 &&
                       path.lexically_normal() == path;
  if (!is_ours) return std::nullopt;
  JobCgroup group(path);
  if (!group.procs_) return std::nullopt;
  return group;
}

Status JobCgroup::kill() const {
  net::Fd file(::open((path_ / "cgroup.kill").c_str(), O_WRONLY | O_CLOEXEC));
  if (!file && errno == ENOENT)
    return fail(ErrorCode::unsupported, "this kernel cannot kill a cgroup");
  if (!file || ::write(file.get(), "1", 1) != 1)
    return fail(net::system_error(errno, "kill what is in " + path_.string()));
  return {};
}

bool JobCgroup::is_populated() const {
  return number_in(path_ / "cgroup.events", "populated").value_or(0) != 0;
}

std::optional<long> JobCgroup::out_of_memory_kills() const {
  return number_in(path_ / "memory.events", "oom_kill");
}

bool JobCgroup::remove() const {
  return ::rmdir(path_.c_str()) == 0 || errno == ENOENT;
}

}  // namespace zed::proc
