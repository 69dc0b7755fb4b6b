#pragma once
// Starting a program by posix_spawn, which copies nothing of this process.

#include <spawn.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.hpp"
#include "net/fd.hpp"

namespace zed::net {

/// How one program is started. It begins with no signal blocked; its descriptors are what give()
/// and give_null() say, and those of ours that are not closed on exec.
class Spawn {
public:
  Spawn();
  ~Spawn();
  Spawn(const Spawn&) = delete;
  Spawn& operator=(const Spawn&) = delete;

  /// The program has our `from` as its descriptor `to`. Done in the order of the calls: what would
  /// overwrite the `from` of another comes after it.
  void give(const Fd& from, int to);
  /// It has /dev/null there: to read as descriptor 0, to write as any other.
  void give_null(int to);
  /// It leads a process group of its own, so that it can be killed with all that it starts.
  void lead_group();
  /// It dies of SIGPIPE, as programs expect to, where this process ignores that signal.
  void die_of_sigpipe();

  /// `program` is a path, `command` its argv; with our environment or another. Errors: those of
  /// posix_spawn and of what was asked for above, with `what` ("start zfs").
  Result<pid_t> start(const std::string& what, const std::string& program,
                      std::vector<std::string> command);
  Result<pid_t> start(const std::string& what, const std::string& program,
                      std::vector<std::string> command, std::vector<std::string> environment);

private:
  Result<pid_t> start(const std::string& what, const std::string& program,
                      std::vector<std::string> command, char* const* environment);
  /// Remembers the first of these, an errno or 0.
  void note(int error);

  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
  short flags_ = POSIX_SPAWN_SETSIGMASK;
  int failure_ = 0;
};

}  // namespace zed::net
