#pragma once
// A real BEAM as a child process, run beside our loop.

#include <memory>
#include <string>
#include <vector>

#include "net/loop.hpp"

namespace zed::interop {

/// Whether the program is on the PATH.
bool is_installed(const std::string& program);

struct Outcome {
  bool ended = false;  ///< false: killed at the limit
  int exit_code = -1;
  std::string output;  ///< stdout and stderr
};

/// A child process whose output is gathered by a thread of its own. Killed when destroyed.
class Child {
public:
  explicit Child(std::vector<std::string> argv);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  int pid() const { return pid_; }
  /// Runs the loop until the child has ended, or kills it at the limit.
  Outcome wait(net::Loop& loop, Millis limit);
  /// What it has printed so far.
  std::string output() const;

private:
  struct Shared;
  int pid_ = -1;
  std::shared_ptr<Shared> shared_;
};

}  // namespace zed::interop
