#pragma once
// Commands of the system behind one interface, so that everything above it can be tested without a
// pool. Arguments are arrays: no shell ever sees a name or a value.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace zed::store::zfs {

using Arguments = std::vector<std::string>;

struct Output {
  bool ok = false;  ///< it exited with 0
  std::string out;
  std::string err;  ///< its first 64 KiB
  int status = -1;  ///< with what it exited; -1: a signal ended it
};

/// A command at the other end of a pipe. Not thread-safe. Destroying it closes the pipe, which ends
/// `zfs send` and lets `zfs recv -s` keep what has arrived; one that does not end within a minute
/// is killed.
class Child {
public:
  virtual ~Child() = default;
  /// Of a command that writes: up to buffer.size() bytes, 0 at its end. Errors: `io`.
  virtual Result<std::size_t> read(std::span<std::byte> buffer) = 0;
  /// To a command that reads: all of it. Errors: `unavailable` if it has stopped reading; finish()
  /// says why.
  virtual Status write(std::span<const std::byte> bytes) = 0;
  /// Closes the pipe and waits for its end. Errors: `timeout`, `io`.
  virtual Result<Output> finish() = 0;
  /// Ends it at once; a read() on another thread returns. Nothing but the destructor may follow.
  virtual void kill() = 0;
};

/// Thread-safe.
class Commands {
public:
  virtual ~Commands() = default;
  /// Runs it to its end with `input` as standard input. Errors: `unsupported` (no such program),
  /// `timeout` (killed after ten minutes: a suspended pool answers nothing), `io`.
  virtual Result<Output> run(const Arguments& arguments, std::string_view input) = 0;
  enum class Pipe { from_it, to_it };
  virtual Result<std::unique_ptr<Child>> start(const Arguments& arguments, Pipe pipe) = 0;
};

/// With LC_ALL=C, found in the system's folders for administrators' programs.
std::unique_ptr<Commands> make_system_commands();

}  // namespace zed::store::zfs
