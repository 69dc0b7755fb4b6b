#pragma once
// The thin shell around the agent's state machine: turns what happens on this machine into its
// events (agent_shell.cpp) and performs its effects (agent_effects.cpp).

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "agent/agent.hpp"
#include "agent/effects.hpp"
#include "bin/certificate_keeper.hpp"
#include "bin/daemon.hpp"
#include "bin/links.hpp"
#include "bin/node_files.hpp"
#include "env/gpus.hpp"
#include "env/store.hpp"
#include "net/loop.hpp"
#include "net/workers.hpp"
#include "proc/attempts.hpp"
#include "proc/job_commands.hpp"
#include "proc/job_socket.hpp"
#include "store/zfs/host_send.hpp"
#include "stream/transfers.hpp"

namespace zed::bin {

struct AgentConfig {
  NodeName name;
  std::filesystem::path program;       ///< of supervisors: zed-supervise or zed-agent
  std::filesystem::path state_folder;  ///< gets a link `node` to the node's own files
  std::filesystem::path run_folder;    ///< sockets; short, since a socket's path is
  NodeFacts facts;
  /// Jobs run as whoever runs the agent, root too: for development fleets (proc/job_user.hpp).
  bool jobs_as_self = false;
  std::vector<ControllerAddress> controllers;
  std::optional<ControllerAddress> standby;  ///< dialled while none of `controllers` is there
  bool follows = false;                      ///< goes where the fleet says that its controller is
  beam::NodeOptions beam;
  stream::TransferOptions transfers;
  /// Of a machine that has joined; null: plain, on this machine.
  std::shared_ptr<net::Tls> tls;
  std::uint16_t http_port = 0;  ///< of controllers, with `tls`
  std::string address;          ///< by which others reach this machine; empty: found out
  std::string ssh = "ssh";      ///< the program that reaches machines without an agent
};

class AgentShell {
public:
  /// Opens everything and tells the state machine that it has started. Blocks on the disk. Errors
  /// name what could not be opened.
  static Result<std::unique_ptr<AgentShell>> start(net::Loop& loop, AgentConfig config,
                                                   env::Store& store, env::Gpus& gpus);
  ~AgentShell();

private:
  struct Performer;
  using Key = std::pair<JobId, Generation>;

  AgentShell(net::Loop& loop, AgentConfig config, env::Store& store, env::Gpus& gpus,
             NodeFiles files);
  Status open();
  Status begin();
  void take(agent::Event event);
  void perform(const agent::Effect& effect);
  void tick();
  void probe_gpus();
  void probe_in(Millis wait);
  bool has_slept();
  void launch(const agent::LaunchAttempt& effect);
  void send_to_host(const agent::StartHostSend& effect);
  Status let_jobs_in() const;
  void open_certificate_keeper();
  /// The launch that waits for the attempt's first word has it.
  void settle_launch(const JobId& job, const Generation& generation);
  Status open_job_socket(const proc::Launch& launch);
  proc::JobSocket* socket_of(agent::JobConnection connection);

  net::Loop& loop_;
  AgentConfig config_;
  env::Store& store_;
  env::Gpus& gpus_;
  NodeFiles files_;
  SystemIds ids_;
  agent::State state_;
  proc::JobCommands commands_;  ///< outlives the workers that tend them
  net::WorkerPool store_workers_;
  net::WorkerPool file_worker_;  ///< one thread: node files are written in order
  net::WorkerPool launch_workers_;
  net::WorkerPool question_workers_;
  net::WorkerPool probe_worker_;
  std::map<StepId, std::shared_ptr<store::HostSend>> host_sends_;
  net::WorkerPool host_workers_;  ///< one thread each while it lasts
  net::Timer tick_timer_;
  net::Timer probe_timer_;
  bool probing_ = false;
  int early_probes_ = 12;      ///< still to come soon, until one has found a GPU
  std::int64_t slept_ms_ = 0;  ///< of the machine, since it started
  std::optional<proc::Attempts> attempts_;
  std::unique_ptr<stream::Transfers> transfers_;
  std::unique_ptr<ControllerLinks> links_;
  std::optional<CertificateKeeper> certificates_;
  std::map<Key, std::unique_ptr<proc::JobSocket>> job_sockets_;
  std::map<Key, agent::EffectId> starting_;
  std::map<Key, agent::EffectId> freezing_;
  std::uint64_t next_job_connection_ = 0;
};

}  // namespace zed::bin
