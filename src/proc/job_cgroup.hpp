#pragma once
// A control group (cgroup v2) for the processes of one attempt, where this machine lets us make
// one: whatever they do, they stay in it, so it ends all of them at once, and it counts what the
// kernel killed for want of memory. Without one the supervisor finds them as its descendants, and
// the agent by their environment.

#include <filesystem>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "net/fd.hpp"

namespace zed::proc {

class JobCgroup {
public:
  /// Makes the group below our own, or takes one of that name that is there. None: this machine has
  /// no cgroup v2, or it is not ours to change.
  static std::optional<JobCgroup> make(const std::string& name);
  /// One that an earlier process made. None: it is gone, or the path is none of ours.
  static std::optional<JobCgroup> find(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  /// Writing "0" here moves the writer into the group (safe between fork and exec).
  int join_descriptor() const { return procs_.get(); }

  /// SIGKILL to all that is in it, what is forked meanwhile included. Errors: `unsupported` before
  /// Linux 5.14, `io`.
  Status kill() const;
  /// Whether any process is in it.
  bool is_populated() const;
  /// Processes that the kernel killed for want of memory; none where that is not counted.
  std::optional<long> out_of_memory_kills() const;
  /// Succeeds only when nothing is in it any more.
  bool remove() const;

private:
  explicit JobCgroup(std::filesystem::path path);
  std::filesystem::path path_;
  net::Fd procs_;
};

}  // namespace zed::proc
