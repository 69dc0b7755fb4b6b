#pragma once
// One attempt on disk, under <node state>/attempts/<attempt>/:
//
//   launch.json      all that the supervisor needs; durable before any process exists
//   supervisor.json  who supervises (its identity), written once its control socket listens
//   exit.json        how it ended; durable before anyone hears of it
//   cgroup           path of the control group that its processes are in, if they have one
//
// Each is written once. One that a loss of power left torn is taken for none: nobody was told of
// it. The folder goes when the controller has acknowledged the end.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "env/attempts.hpp"
#include "net/files.hpp"
#include "proc/identity.hpp"

namespace zed::proc {

/// A launch request with everything of this machine filled in.
struct Launch {
  env::LaunchRequest request;
  std::string directory;                           ///< the job's live dataset: working directory
  std::map<std::string, std::string> environment;  ///< all of it; nothing else is inherited
  std::string control_socket;                      ///< between agent and supervisor
  std::optional<std::int64_t> uid;                 ///< whose processes they are; none: our own
  std::optional<std::int64_t> gid;
  std::string setup_folder;  ///< of its setup's key (proc/setup_folder.hpp); empty: it has none
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("request", self.request);
    visit("directory", self.directory);
    visit("environment", self.environment);
    visit("control_socket", self.control_socket);
    visit("uid", self.uid);
    visit("gid", self.gid);
    visit("setup_folder", self.setup_folder);
  }
};

class AttemptFolder {
public:
  explicit AttemptFolder(std::filesystem::path path) : path_(std::move(path)) {}
  /// The folder of that attempt under `attempts`.
  static AttemptFolder of(const std::filesystem::path& attempts, const JobId& job,
                          const Generation& generation);

  const std::filesystem::path& path() const { return path_; }

  /// Makes the folder if need be. Durable when it returns.
  Status write_launch(const Launch& launch) const;
  /// Survives the end of any process; after a loss of power it has no meaning.
  Status write_supervisor(const ProcessIdentity& identity) const;
  Status write_exit(const ExitRecord& exit) const;
  /// Survives as write_supervisor() does.
  Status write_cgroup(const std::filesystem::path& path) const;
  /// Errors: `not_found`, `corrupt`.
  Result<Launch> read_launch() const;
  Result<ProcessIdentity> read_supervisor() const;
  Result<ExitRecord> read_exit() const;
  Result<std::filesystem::path> read_cgroup() const;
  Status remove() const;

private:
  std::filesystem::path path_;
};

/// All attempts that are on disk. Folders without a readable launch record are reported in the log
/// and left alone.
std::vector<AttemptFolder> attempt_folders(const std::filesystem::path& attempts);

using net::read_file;
using net::write_file_durably;

}  // namespace zed::proc
