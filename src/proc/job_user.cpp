#include "proc/job_user.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <vector>

#include "base/text.hpp"
#include "net/beneath.hpp"

namespace zed::proc {
namespace {

using net::Fd;
using net::system_error;

constexpr int deepest = 128;  // as snapshots have it

Status give_one(int folder, const std::string& name, const struct stat& status,
                const JobUser& user) {
  const bool is_given = status.st_uid == user.uid && status.st_gid == user.gid;
  if (is_given || (S_ISREG(status.st_mode) && status.st_nlink > 1)) return {};
  if (::fchownat(folder, name.c_str(), user.uid, user.gid, AT_SYMLINK_NOFOLLOW) == 0 ||
      errno == ENOENT)
    return {};
  return fail(system_error(errno, "give \"" + percent_encode(name) + "\" to " + user.name));
}

Result<std::vector<std::string>> names_in(int folder) {
  int own = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  std::unique_ptr<DIR, int (*)(DIR*)> entries(own >= 0 ? ::fdopendir(own) : nullptr, ::closedir);
  if (!entries) return fail(system_error(errno, "look into a job's folder"));
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(entries.get())) {
    std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(std::move(name));
  }
  return names;
}

Status give_inside(int folder, const JobUser& user, int depth) {
  if (depth > deepest)
    return fail(ErrorCode::invalid, "a job's folder is nested deeper than 128 folders");
  ZED_TRY(auto names, names_in(folder));
  for (const std::string& name : names) {
    struct stat status {};
    if (::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    ZED_CHECK(give_one(folder, name, status, user));
    if (!S_ISDIR(status.st_mode)) continue;
    ZED_TRY(auto inside, net::open_beneath(folder, name, O_RDONLY | O_DIRECTORY));
    ZED_CHECK(give_inside(inside.get(), user, depth + 1));
  }
  return {};
}

}  // namespace

Result<JobUser> find_job_user(const std::string& name) {
  std::vector<char> space(16384);
  struct passwd entry {};
  struct passwd* found = nullptr;
  int error = ::getpwnam_r(name.c_str(), &entry, space.data(), space.size(), &found);
  if (error != 0) return fail(system_error(error, "look up user " + name));
  if (found == nullptr)
    return fail(ErrorCode::not_found, "there is no user \"" + name + "\" to run jobs as",
                "make it (useradd --system --no-create-home " + name +
                    "), or name another: `run_as:` of the node in the cluster file");
  if (entry.pw_uid == 0)
    return fail(ErrorCode::refused, "\"" + name + "\" is uid 0, and jobs never run as root",
                "name an ordinary user");
  return JobUser{name, entry.pw_dir, entry.pw_uid, entry.pw_gid};
}

Result<std::optional<JobUser>> user_of_jobs(const std::optional<std::string>& run_as) {
  if (::geteuid() == 0) {
    ZED_TRY(auto user, find_job_user(run_as.value_or(default_job_user)));
    return std::optional(std::move(user));
  }
  if (!run_as) return std::optional<JobUser>();
  ZED_TRY(auto user, find_job_user(*run_as));
  if (user.uid == ::geteuid()) return std::optional<JobUser>();
  return fail(ErrorCode::refused,
              "the agent of this node is not root, so it cannot run jobs as " + *run_as,
              "run the agent as root, or remove `run_as:` of this node");
}

Status give_to(int folder, const JobUser& user) {
  struct stat status {};
  if (::fstat(folder, &status) != 0) return fail(system_error(errno, "stat a job's folder"));
  const bool is_given = status.st_uid == user.uid && status.st_gid == user.gid;
  // Others on this machine have no business in it.
  if (!is_given && (::fchown(folder, user.uid, user.gid) != 0 || ::fchmod(folder, 0700) != 0))
    return fail(system_error(errno, "give a job's folder to " + user.name));
  return give_inside(folder, user, 1);
}

}  // namespace zed::proc
