#pragma once
// The processes of one attempt: a training run that makes epochs over virtual time, writes its
// files where its dataset is mounted, asks for checkpoints and ends, well or badly.
//
// Its files carry its history. `state` has one line an epoch, naming the timeline and the
// generation that made it; `weights-N` is a digest of the state up to epoch N. So a folder or a
// snapshot in which two timelines met, or which is torn, shows it.

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "env/attempts.hpp"
#include "sim/random.hpp"

namespace zed::sim {

class World;

/// How a job behaves, drawn from the seed for each job; the same for all of its attempts.
struct JobBehaviour {
  std::int64_t epochs = 8;
  Millis epoch_time = seconds(2);
  std::int64_t checkpoint_every = 1;  ///< epochs
  bool connects = true;               ///< speaks to its agent at all
  bool ignores_terminate = false;     ///< only SIGKILL ends it
  Millis grandchildren_hold{0};       ///< processes that outlive the first one
  std::int64_t failures = 0;          ///< its first attempts exit with 1 after a while
  std::int64_t waits_for_answer_ms = 5000;
};

JobBehaviour draw_behaviour(std::uint64_t seed, std::string_view job_name);

/// One line of `state`.
struct EpochLine {
  std::int64_t epoch = 0;
  std::string timeline;
  std::string generation;
  friend bool operator==(const EpochLine&, const EpochLine&) = default;
};
std::string write_state(const std::vector<EpochLine>& lines);
/// Nothing if the text is no state that a job wrote.
std::optional<std::vector<EpochLine>> read_state(const std::string& text);
/// What `weights-<epoch>` holds for a state of these lines.
std::string weights_of(const std::vector<EpochLine>& lines, std::int64_t epoch);

class SimJob : public std::enable_shared_from_this<SimJob> {
public:
  SimJob(World& world, std::size_t machine, env::LaunchRequest launch, std::uint64_t number);

  const env::LaunchRequest& launch() const { return launch_; }
  /// Whether any process of it is left: what holds the GPUs.
  bool alive() const { return alive_; }
  std::optional<std::uint64_t> connection() const { return connection_; }

  void begin();
  /// Its agent is (again) there to be spoken to; a request without an answer is repeated.
  void connect();
  void agent_gone() { connection_.reset(); }
  void answer(const env::CheckpointReply& reply);
  void ask(env::Ask ask, Instant deadline);
  /// SIGTERM, and SIGKILL after the grace.
  void terminate(StopMode mode);
  void freeze(bool frozen);
  void extend_lease(Millis lease);
  /// The supervisor was killed: the first process dies with it, the shell kills the rest.
  void lose_supervisor();
  /// The machine went down.
  void vanish() { alive_ = false; }
  bool supervisor_alive() const { return supervisor_alive_; }

private:
  void later(Millis delay, std::string_view what, void (SimJob::*next)());
  void run_epoch();
  void end_epoch();
  void ask_for_checkpoint();
  void send_request();
  void after_checkpoint();
  void give_up_waiting(std::uint64_t request);
  bool write_files();
  void exit_with(ExitRecord::Kind kind, std::int64_t code, std::string words);
  void reap();
  void kill_now();
  void check_lease();
  void time_out();
  void stop_by_itself(ExitRecord::Kind kind, std::string words);

  World& world_;
  std::size_t machine_;
  env::LaunchRequest launch_;
  std::uint64_t number_;
  JobBehaviour behaviour_;
  Random random_;
  bool alive_ = true;
  bool running_ = true;  ///< the first process is there
  bool supervisor_alive_ = true;
  bool frozen_ = false;
  bool resume_when_thawed_ = false;
  bool stop_asked_ = false;
  bool checkpoint_asked_ = false;
  bool work_remains_ = false;  ///< it stopped because it was asked to
  std::optional<StopMode> terminated_;
  std::optional<Instant> lease_until_;
  std::optional<std::uint64_t> connection_;
  std::optional<std::uint64_t> waiting_for_;  ///< request number
  env::CheckpointRequest request_;            ///< the last one
  std::uint64_t next_request_ = 1;
  std::vector<EpochLine> lines_;
  std::int64_t fails_at_epoch_ = -1;
  ExitRecord exit_;
  Instant began_;
};

}  // namespace zed::sim
