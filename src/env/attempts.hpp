#pragma once
// What an attempt needs to be started, and what is found of attempts after an agent's restart. The
// processes themselves are proc/'s; the agent's state machine only sees these values.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/gpu.hpp"
#include "core/job.hpp"
#include "core/plan.hpp"

namespace zed::env {

/// What is done once before a job's command, on a node and for a content.
struct Setup {
  std::string command;  ///< for /bin/sh -c, in the job's folder
  std::string node;     ///< identity of this node
  Millis timeout;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("command", self.command);
    visit("node", self.node);
    visit("timeout", self.timeout);
  }
  friend bool operator==(const Setup&, const Setup&) = default;
};

/// Everything a supervisor must know to run one attempt. Durable under zed/node/attempts/ before
/// the first process exists.
struct LaunchRequest {
  Attempt attempt;
  JobName job_name;
  std::vector<std::string> argv;
  std::map<std::string, std::string> env;  ///< the job's own and ZED_* alike, except paths
  std::optional<Input> model;              ///< becomes ZED_MODEL_DIR
  std::vector<Input> data;                 ///< becomes ZED_DATA_DIR
  std::optional<Input> code;               ///< what was unpacked; held like the others
  std::optional<CheckpointId> content;     ///< Job::content
  std::optional<Setup> setup;
  std::vector<std::string> visible_gpus;  ///< CUDA_VISIBLE_DEVICES or the vendor's counterpart
  GpuVendor vendor = GpuVendor::other;
  Millis grace = seconds(10);       ///< SIGTERM to SIGKILL
  std::optional<Millis> time_left;  ///< stop after this much running time
  std::optional<Millis> lease;      ///< exclusive: stop when not extended for this long
  std::optional<std::string> run_as;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("attempt", self.attempt);
    visit("job_name", self.job_name);
    visit("argv", self.argv);
    visit("env", self.env);
    visit("model", self.model);
    visit("data", self.data);
    visit("code", self.code);
    visit("content", self.content);
    visit("setup", self.setup);
    visit("visible_gpus", self.visible_gpus);
    visit("vendor", self.vendor);
    visit("grace", self.grace);
    visit("time_left", self.time_left);
    visit("lease", self.lease);
    visit("run_as", self.run_as);
  }
  friend bool operator==(const LaunchRequest&, const LaunchRequest&) = default;
};

/// An attempt that an earlier run of the agent left behind.
struct FoundAttempt {
  LaunchRequest launch;
  bool supervisor_alive = false;   ///< it can be adopted
  std::optional<ExitRecord> exit;  ///< already ended
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("launch", self.launch);
    visit("supervisor_alive", self.supervisor_alive);
    visit("exit", self.exit);
  }
  friend bool operator==(const FoundAttempt&, const FoundAttempt&) = default;
};

/// What a job asked over its socket (docs/job-protocol.md), parsed and bounded.
struct CheckpointRequest {
  std::uint64_t number = 0;  ///< unique in its generation, chosen by the client
  Generation generation;
  Instant deadline;  ///< on this machine's monotonic clock
  std::optional<std::int64_t> epoch;
  std::optional<std::int64_t> step;
  std::map<std::string, double> metrics;
  std::vector<std::string> paths;  ///< relative to the job's folder; existence checked by the shell
};

struct CheckpointReply {
  std::uint64_t number = 0;
  Result<Snapshot> result = fail(ErrorCode::internal, "no answer");
  std::uint64_t seq = 0;
  Millis took;
};

enum class Ask { checkpoint, stop };
constexpr auto enum_names(Ask) {
  return std::array<std::string_view, 2>{"checkpoint", "stop"};
}

}  // namespace zed::env
