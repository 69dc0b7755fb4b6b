#pragma once
// What is to be said of OpenZFS on this machine before an agent uses it: whether it is there, which
// one, its pools, and what this user may do with them.

#include <filesystem>
#include <string>
#include <vector>

#include "core/finding.hpp"
#include "store/zfs/command.hpp"

namespace zed::store::zfs {

struct DoctorQuestion {
  std::string pool;           ///< the agent's, or a dataset in it ("tank/zed"); empty: not said
  bool is_wanted = false;     ///< the agent is to use it: that it is not usable is a failure
  bool privileged = true;     ///< root
  std::string user = "root";  ///< whose rights `zfs allow` is asked for
  std::vector<std::string> groups;   ///< that user's
  std::filesystem::path root = "/";  ///< where /dev, /sys and /lib/modules are looked at
  std::string kernel;                ///< release, as `uname -r` prints it
};

/// Asks the commands and looks; changes nothing.
std::vector<Finding> examine_zfs(Commands& commands, const DoctorQuestion& question);

/// What a user needs to hold replicas with an agent that is not root's (`zfs allow`).
const std::vector<std::string>& replica_permissions();
/// The permissions that `zfs allow POOL` (its output) gives that user on that dataset itself, by
/// name, by one of the groups, or to everyone; sets are taken apart. Pure.
std::vector<std::string> allowed(const std::string& output, const std::string& user,
                                 const std::vector<std::string>& groups);

}  // namespace zed::store::zfs
