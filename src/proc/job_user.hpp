#pragma once
// Whose processes a job's are. An agent that runs as root never runs a job as uid 0: it becomes an
// ordinary user first, and what lies in the job's folder is given to that user. An agent of an
// ordinary user runs jobs as itself. A development fleet (`zedctl dev up`) runs everything as the
// person who started it, root too.

#include <optional>
#include <string>

#include <sys/types.h>

#include "base/result.hpp"

namespace zed::proc {

/// The user that jobs of a root agent are, unless the node's `run_as` names another; made when the
/// package is installed.
inline constexpr char default_job_user[] = "zed-job";

struct JobUser {
  std::string name;
  std::string home;
  uid_t uid = 0;
  gid_t gid = 0;
};

/// Looks a user up. Errors: `not_found`, `refused` for uid 0.
Result<JobUser> find_job_user(const std::string& name);

/// The user that a job is run as; none: as we are. `run_as`: what the cluster file says of this
/// node. Errors: `refused` if we are not root and it names another user than us; find_job_user()'s.
Result<std::optional<JobUser>> user_of_jobs(const std::optional<std::string>& run_as);

/// Gives a folder, closed to others, and what is in it to the user. Symlinks are given, never
/// followed; a file with more than one name that is not the user's already is left alone: another
/// name of it may lie where the user must not write. Errors: `io`, `invalid` (nested deeper than
/// 128).
Status give_to(int folder, const JobUser& user);

}  // namespace zed::proc
