#pragma once
// ZED_SOCKET: where a job asks its agent for checkpoints (docs/job-protocol.md). One socket an
// attempt; it survives reconnects of the job and restarts of the agent.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <sys/types.h>

#include "env/attempts.hpp"
#include "net/loop.hpp"

namespace zed::proc {

/// What a job's hello is answered with.
struct JobGreeting {
  std::string job;
  std::int64_t attempt = 1;
  Generation generation;
  std::string checkpoint;  ///< newest, "epoch-15"; may be empty
  CheckpointPolicy policy;
  std::filesystem::path directory;  ///< paths of checkpoint requests are relative to it
};

struct JobSocketHandlers {
  std::function<void(std::uint64_t connection)> connected;
  std::function<void(std::uint64_t connection)> disconnected;
  std::function<void(std::uint64_t connection, env::CheckpointRequest)> checkpoint;
  std::function<void(std::uint64_t connection)> stopped;
};

class JobSocket {
public:
  /// Listens on `path`, mode 0600, owned by `owner` if given; only that user (or ours) may connect.
  /// `next_connection` numbers connections across all sockets of an agent.
  static Result<std::unique_ptr<JobSocket>> open(net::Loop& loop, const std::filesystem::path& path,
                                                 std::optional<uid_t> owner,
                                                 std::function<JobGreeting()> greeting,
                                                 std::uint64_t& next_connection,
                                                 JobSocketHandlers handlers);
  ~JobSocket();

  bool has(std::uint64_t connection) const;
  void ask(std::uint64_t connection, env::Ask ask, Instant deadline, const std::string& reason);
  void answer(std::uint64_t connection, const env::CheckpointReply& reply);

private:
  struct Core;
  explicit JobSocket(std::shared_ptr<Core> core);
  std::shared_ptr<Core> core_;
};

/// Whether a path of a checkpoint request is inside the job's folder and exists there, without
/// following links out of it. Errors: `invalid`, `not_found`.
Status check_job_path(const std::filesystem::path& directory, const std::string& path);

}  // namespace zed::proc
