#pragma once
// What the `setup` of jobs leaves on a node, and how it is known that it need not run again.
//
//   <setups>/<key>/files    $ZED_SETUP_DIR: shared by all jobs of that key, the job user's
//   <setups>/<key>/done     it left nothing in its job's folder, so it is done for all of them
//   <setups>/<key>/turn     locked by the attempt that runs it
//   <setups>/<key>/use      locked, shared, by each attempt that was set up so; touched at its
//   start <job's folder>/.zed/setup   lines "<node> <key>": it left files there, so it is done for
//   this
//                               job on that node; a rollback takes the mark back with the files
//
// A key stands for the command, the code, the environment and the user. Inside the room and of the
// agent's shell.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "net/fd.hpp"
#include "proc/job_user.hpp"
#include "proc/launch.hpp"

namespace zed::proc {

/// Folders of keys that are kept on a node although no attempt uses them, the last used ones.
inline constexpr std::size_t most_unused_setups = 32;

/// Makes what is missing of one key's folder; its files become the user's, or stay ours. Errors:
/// `io`, `no_space`.
Status make_setup_folder(const std::filesystem::path& folder, const std::optional<JobUser>& user);

/// What PATH becomes for whoever is set up there: programs that setup installed come first.
std::string setup_search_path(const std::filesystem::path& folder, const std::string& path);

/// Removes the folders of keys that were not used lately, as far as they are more than
/// `most_unused`. One that an attempt uses stays. Blocks; what cannot be removed is logged.
void drop_unused_setups(const std::filesystem::path& setups,
                        std::size_t most_unused = most_unused_setups);

/// One attempt's way through its setup. For the supervisor; blocks for as long as it takes to look
/// at the job's folder.
class SetupTurn {
public:
  /// Keeps the key's folder from being dropped for as long as this lives. Errors: `io`; `not_found`
  /// (it was dropped: the next attempt makes it anew).
  static Result<SetupTurn> open(const Launch& launch);

  /// Whether it was done before, on this node and for this folder's files.
  bool is_done() const;
  /// Whether nobody else runs this key's setup; nobody else will until leave(), or the end of this.
  bool take();
  void leave();
  /// Right before it runs: how the job's folder looks without it.
  void begin();
  /// After its success: from now on it is done. Errors: `io`, `no_space`.
  Status finish();

private:
  /// What tells whether anything in a job's folder changed, `.zed` left out; none: there is too
  /// much in it to look at.
  std::optional<std::uint64_t> look() const;
  Status mark_job() const;
  std::string mark() const { return node_ + " " + folder_.filename().string(); }

  std::filesystem::path folder_;
  std::string node_;
  net::Fd job_;
  net::Fd use_;
  net::Fd turn_;
  std::optional<std::uint64_t> before_;
};

}  // namespace zed::proc
