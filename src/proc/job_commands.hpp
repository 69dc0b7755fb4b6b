#pragma once
// Commands that people run beside a job: in its folder, with its environment, as its user. They
// live in memory only, end with the agent, with the attempt, or when nobody tends them.

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/units.hpp"
#include "core/question.hpp"
#include "proc/launch.hpp"

namespace zed::proc {

class JobCommands {
public:
  /// Ignores SIGPIPE in this process from now on.
  JobCommands();
  ~JobCommands();
  JobCommands(const JobCommands&) = delete;
  JobCommands& operator=(const JobCommands&) = delete;

  /// Started already under that name: succeeds. `launch` is the attempt's. Blocks for the start of
  /// a process; any thread. Errors: `busy` (16 are running), `invalid`, those of fork and exec.
  Result<CommandState> start(const Launch& launch, const StartCommand& question, Instant now);
  /// Gives input, waits a moment for output, takes it. Any thread. Errors: `not_found`, `invalid`.
  Result<CommandState> tend(const TendCommand& question, Instant now);
  /// Kills what belongs to an attempt that has ended.
  void end(const JobId& job, const Generation& generation);
  /// Kills what nobody has tended for a minute, and forgets what ended that long ago.
  void sweep(Instant now);

private:
  class Running;
  std::shared_ptr<Running> find(const std::string& command);

  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Running>> running_;
};

}  // namespace zed::proc
