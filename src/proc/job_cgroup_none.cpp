// macOS and FreeBSD have no control groups: a job's processes are found as descendants, and by
// their environment.
#include "proc/job_cgroup.hpp"

namespace zed::proc {

std::optional<JobCgroup> JobCgroup::make(const std::string&) {
  return std::nullopt;
}

std::optional<JobCgroup> JobCgroup::find(const std::filesystem::path&) {
  return std::nullopt;
}

Status JobCgroup::kill() const {
  return fail(ErrorCode::unsupported, "this system has no control groups");
}

bool JobCgroup::is_populated() const {
  return false;
}

std::optional<long> JobCgroup::out_of_memory_kills() const {
  return std::nullopt;
}

bool JobCgroup::remove() const {
  return true;
}

}  // namespace zed::proc
