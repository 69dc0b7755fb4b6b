#pragma once
// The agent's side of supervisors: starts them, finds them again after a restart, passes orders on,
// and hears how attempts end. Handlers run on the loop's thread.

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "env/attempts.hpp"
#include "net/loop.hpp"
#include "net/workers.hpp"
#include "proc/control.hpp"
#include "proc/launch.hpp"

namespace zed::proc {

struct AttemptHandlers {
  /// The job's setup runs or waits for its turn: `started` follows when it is done.
  std::function<void(const JobId&, const Generation&)> setting_up;
  /// The job's first process runs. Not called if the start failed: then `exited` follows.
  std::function<void(const JobId&, const Generation&)> started;
  /// All processes are gone, exit.json is durable. Exactly once an attempt and run of the agent.
  std::function<void(const JobId&, const Generation&, const ExitRecord&)> exited;
  /// All of its processes are frozen, or run again.
  std::function<void(const JobId&, const Generation&, bool frozen)> frozen;
  /// The supervisor was killed; what it left is being killed, `exited` follows.
  std::function<void(const JobId&, const Generation&)> supervisor_lost;
};

class Attempts {
public:
  /// `program` is called with "supervise" and an attempt's folder; `folder` is <node
  /// state>/attempts.
  Attempts(net::Loop& loop, net::WorkerPool& workers, std::filesystem::path program,
           std::filesystem::path folder, AttemptHandlers handlers);
  ~Attempts();

  /// What earlier runs left behind. Blocks (reads the disk); for the start of a program. Attempts
  /// whose supervisor is alive are adopted by the next call of adopt().
  std::vector<env::FoundAttempt> find() const;
  /// Watches the supervisor of a found attempt again, or if it is gone without an exit record ends
  /// what is left of it.
  void adopt(const env::FoundAttempt& found);

  /// Writes the launch record, then starts the supervisor; `done` says whether it is running.
  void launch(Launch launch, std::function<void(Status)> done);
  /// Errors: `not_found` if no supervisor of that attempt is connected, `busy`.
  Status order(const JobId& job, const Generation& generation, const Order& order);
  void forget(const JobId& job, const Generation& generation);

private:
  struct Watched;
  struct Core;
  std::shared_ptr<Core> core_;
};

}  // namespace zed::proc
