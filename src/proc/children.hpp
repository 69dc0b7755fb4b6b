#pragma once
// What starting and watching children takes of the system: signals and ends of processes as
// something to poll for (signalfd and pidfds on Linux, children_linux.cpp; kqueues elsewhere,
// children_kqueue.cpp), and what a child does before it becomes its program.

#include <initializer_list>
#include <vector>

#include <sys/types.h>

#include "base/result.hpp"
#include "net/fd.hpp"

namespace zed::proc {

/// Signals that are polled for and do nothing else to this process. One a process; what it starts
/// must unblock them.
class SignalWatch {
public:
  /// Before there are threads. Errors: `io`, `busy` (no more descriptors).
  Status open(std::initializer_list<int> signals);
  /// Readable once one has come.
  int descriptor() const { return fd_.get(); }
  /// Which have come since the last call, some perhaps twice; never waits.
  std::vector<int> take();

private:
  net::Fd fd_;
};

/// Becomes readable once the process, a child of ours that has not been reaped, has ended. None
/// where the system refuses (no more descriptors).
net::Fd watch_end(pid_t child);

/// Between fork and exec (async-signal-safe): from now on this process gets SIGKILL when `parent`,
/// its parent, ends; to be called after the last change of the uid, which clears it. False:
/// refused, errno says why. macOS has no such thing: there whoever finds the parent gone ends what
/// it left (Attempts).
bool end_with(pid_t parent);

}  // namespace zed::proc
