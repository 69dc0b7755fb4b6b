#include "bin/agent_shell.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/log.hpp"
#include "bin/import.hpp"
#include "bin/joined.hpp"
#include "bin/machine.hpp"
#include "net/system.hpp"

namespace zed::bin {
namespace {

constexpr Millis tick_every = Millis{250};
// A probe costs the driver some work and us a process: often only while a job may break a GPU.
constexpr Millis probe_busy = seconds(10);
constexpr Millis probe_idle = seconds(60);
constexpr Millis sleep_that_counts = seconds(2);

/// Where a store keeps a dataset may change; a takeover finds the journal's copy by this name.
Status link_to(const std::filesystem::path& target, const std::filesystem::path& name) {
  std::error_code error;
  std::filesystem::path temporary = name;
  temporary += ".new";
  std::filesystem::remove(temporary, error);
  std::filesystem::create_symlink(std::filesystem::absolute(target), temporary, error);
  if (!error) std::filesystem::rename(temporary, name, error);
  if (error) return fail(ErrorCode::io, "link " + name.string() + ": " + error.message());
  return {};
}

/// Where the node keeps what is its own: a dataset, which is there whoever mounts the pool next.
/// Who may not mount (an ordinary user on OpenZFS) keeps it in the state folder instead.
Result<std::filesystem::path> own_folder(env::Store& store, const AgentConfig& config) {
  if (!store.info().may_mount) {
    log_info("only root may mount: this agent holds copies and runs no jobs");
    std::filesystem::path folder = config.state_folder / "own";
    ZED_CHECK(make_private_folder(folder));
    return folder;
  }
  ZED_TRY(auto dataset, DatasetName::parse("zed/node"));
  Status made = store.create(dataset, {{property::type, "node"}});
  if (!made && made.error().code != ErrorCode::exists) return fail(std::move(made).error());
  return store.open_live(dataset);
}

}  // namespace

AgentShell::AgentShell(net::Loop& loop, AgentConfig config, env::Store& store, env::Gpus& gpus,
                       NodeFiles files)
    : loop_(loop), config_(std::move(config)), store_(store), gpus_(gpus), files_(std::move(files)),
      state_(ids_), store_workers_(loop, 8, 4096), file_worker_(loop, 1, 4096),
      launch_workers_(loop, 4, 4096), question_workers_(loop, 4, 256), probe_worker_(loop, 1, 1),
      host_workers_(loop, 4, 64), tick_timer_(loop), probe_timer_(loop) {}

AgentShell::~AgentShell() {
  // Their threads are waited for, and what they send goes on at the next run.
  for (const auto& entry : host_sends_)
    entry.second->cancel();
}

Result<std::unique_ptr<AgentShell>> AgentShell::start(net::Loop& loop, AgentConfig config,
                                                      env::Store& store, env::Gpus& gpus) {
  ZED_CHECK(finish_imports(store));
  ZED_TRY(auto folder, own_folder(store, config));
  ZED_TRY(NodeFiles files, NodeFiles::open(folder, NodeId{SystemIds().next()}));
  ZED_CHECK(link_to(folder, config.state_folder / "node"));
  std::unique_ptr<AgentShell> shell(
      new AgentShell(loop, std::move(config), store, gpus, std::move(files)));
  ZED_CHECK(shell->open());
  ZED_CHECK(shell->begin());
  return shell;
}

Status AgentShell::open() {
  ZED_CHECK(make_private_folder(config_.run_folder));
  ZED_CHECK(let_jobs_in());
  proc::AttemptHandlers attempts;
  attempts.setting_up = [this](const JobId& job, const Generation& generation) {
    take(agent::SetupBegan{job, generation});
    settle_launch(job, generation);
  };
  attempts.started = [this](const JobId& job, const Generation& generation) {
    settle_launch(job, generation);
    take(agent::JobBegan{job, generation});
  };
  attempts.exited = [this](const JobId& job, const Generation& generation, const ExitRecord& exit) {
    settle_launch(job, generation);
    job_sockets_.erase({job, generation});
    commands_.end(job, generation);
    take(agent::AttemptExited{job, generation, exit});
    // It may be a GPU's fault: known before anything starts on it again.
    if (exit.kind != ExitRecord::Kind::success) probe_gpus();
  };
  attempts.frozen = [this](const JobId& job, const Generation& generation, bool) {
    auto freezing = freezing_.extract({job, generation});
    if (!freezing.empty()) take(agent::ProcessesFrozen{freezing.mapped(), {}});
  };
  attempts.supervisor_lost = [this](const JobId& job, const Generation& generation) {
    take(agent::SupervisorLost{job, generation});
  };
  attempts_.emplace(loop_, launch_workers_, config_.program, files_.attempts(),
                    std::move(attempts));

  stream::TransferHandlers transfers;
  transfers.progressed = [this](const StepId& step, Bytes done, Bytes total, Bytes rate) {
    take(agent::TransferProgressed{step, done, total, rate});
  };
  transfers.ended = [this](const StepId& step, Result<stream::Outcome> result) {
    using Ended = Result<agent::TransferOutcome>;
    take(agent::TransferEnded{step, result ? Ended({result->moved, result->snapshot})
                                           : Ended(fail(result.error()))});
  };
  ZED_TRY(transfers_,
          stream::Transfers::open(loop_, store_, config_.transfers, std::move(transfers)));
  net::Endpoint data = transfers_->endpoint();
  if (!config_.address.empty()) data.host = config_.address;
  const bool knows = !config_.controllers.empty();
  config_.facts.data_address =
      knows ? reachable_address(data, config_.controllers.front().endpoint) : data.str();
  if (config_.tls) open_certificate_keeper();
  return {};
}

void AgentShell::settle_launch(const JobId& job, const Generation& generation) {
  const auto starting = starting_.extract({job, generation});
  if (!starting.empty()) take(agent::AttemptStarted{starting.mapped(), {}});
}

void AgentShell::open_certificate_keeper() {
  KeeperOptions options{
      IdentityFiles(config_.state_folder), config_.tls, config_.beam.cookie, {}, config_.follows};
  for (const ControllerAddress& controller : config_.controllers)
    options.doors.push_back({controller.endpoint.host, config_.http_port});
  if (config_.standby) options.doors.push_back({config_.standby->endpoint.host, config_.http_port});
  KeeperHandlers handlers;
  handlers.revoked = [this](const std::set<std::string>& serials) {
    if (links_) links_->drop_revoked(serials);
  };
  handlers.moved = [this](const JoinRecord& record) {
    if (links_)
      links_->follow({record.controller, {record.host, record.distribution_port}},
                     standby_of(record));
  };
  certificates_.emplace(loop_, std::move(options), std::move(handlers));
}

Status AgentShell::begin() {
  agent::Started started;
  started.node = files_.record().node;
  started.name = config_.name;
  started.facts = config_.facts;
  started.gpus = gpus_.known();  // the first probe may take its time; nothing waits for it
  started.highest_term = files_.record().highest_term;
  started.journal_second = files_.record().journal_second;
  started.journal_copy_seq = files_.journal_copy_seq();
  started.journal_copy_term = files_.journal_copy_term();
  started.attempts = attempts_->find();
  std::vector<env::FoundAttempt> found = started.attempts;
  take(std::move(started));
  for (const env::FoundAttempt& attempt : found) {
    auto launch = proc::AttemptFolder::of(files_.attempts(), attempt.launch.attempt.job,
                                          attempt.launch.attempt.generation)
                      .read_launch();
    if (attempt.exit || !launch) continue;
    if (auto opened = open_job_socket(*launch); !opened) log_warning(opened.error().describe());
    attempts_->adopt(attempt);
  }
  LinkHandlers handlers;
  handlers.connected = [this](LinkId link) { take(agent::ControllerConnected{link}); };
  handlers.said = [this](LinkId link, ControllerMessage message) {
    take(agent::ControllerSaid{link, std::move(message)});
  };
  handlers.gone = [this](LinkId link) { take(agent::ControllerGone{link}); };
  auto links = ControllerLinks::open(loop_, config_.beam, config_.controllers, std::move(handlers));
  if (!links) return fail(std::move(links).error());
  links_ = std::move(*links);
  if (config_.follows) links_->follow(config_.controllers.front(), config_.standby);
  has_slept();
  tick();
  probe_gpus();
  return {};
}

void AgentShell::take(agent::Event event) {
  for (const agent::Effect& effect : agent::on(state_, event, loop_.clocks()))
    perform(effect);
}

void AgentShell::tick() {
  commands_.sweep(loop_.clocks().monotonic);
  take(agent::Tick{});
  // Sleep may have taken a GPU along, or brought one back.
  if (has_slept()) probe_gpus();
  tick_timer_.start(tick_every, [this] { tick(); });
}

/// Whether the machine was asleep since the last call.
bool AgentShell::has_slept() {
  const std::int64_t slept = (net::clock_through_sleep() - net::clock_while_awake()).value;
  return slept - std::exchange(slept_ms_, slept) > sleep_that_counts.value;
}

void AgentShell::probe_in(Millis wait) {
  probe_timer_.start(wait, [this] { probe_gpus(); });
}

void AgentShell::probe_gpus() {
  const bool busy = !state_.held_gpus().empty() || config_.facts.simulated;
  // At boot a driver may be loaded after us.
  const bool early = early_probes_ > 0;
  probe_in(busy || early ? probe_busy : probe_idle);
  take(agent::MemoryMeasured{free_memory(), {}, power_source("/")});
  if (probing_) return;  // one that hangs is given up by itself, in its own time
  using Probed = Result<std::vector<Gpu>>;
  auto done = [this](Probed probed) {
    probing_ = false;
    const bool found = probed && !probed->empty();
    early_probes_ = found ? 0 : std::max(0, early_probes_ - 1);
    if (!probed) return log_warning(probed.error().describe());
    take(agent::GpusProbed{std::move(*probed)});
    take(agent::MemoryMeasured{free_memory(), gpus_.loads(), power_source("/")});
  };
  probing_ = probe_worker_.run<Probed>([&gpus = gpus_] { return gpus.probe(); }, done).has_value();
}

/// Jobs of another user pass through these folders to their own; they cannot list them.
Status AgentShell::let_jobs_in() const {
  if (config_.jobs_as_self || ::geteuid() != 0) return {};
  for (const auto& folder : {config_.state_folder, config_.run_folder})
    if (::chmod(folder.c_str(), 0711) != 0)
      return fail(net::system_error(errno, "let jobs through " + folder.string()));
  return {};
}

Status AgentShell::open_job_socket(const proc::Launch& launch) {
  Key key{launch.request.attempt.job, launch.request.attempt.generation};
  proc::JobGreeting greeting;
  greeting.job = launch.request.job_name.str();
  greeting.attempt = launch.request.attempt.number;
  greeting.generation = key.second;
  greeting.checkpoint =
      launch.environment.count("ZED_CHECKPOINT") > 0 ? launch.environment.at("ZED_CHECKPOINT") : "";
  greeting.directory = launch.directory;
  proc::JobSocketHandlers handlers;
  handlers.connected = [this, key](std::uint64_t connection) {
    take(agent::JobConnected{connection, key.first, key.second});
  };
  handlers.disconnected = [this](std::uint64_t connection) {
    take(agent::JobDisconnected{connection});
  };
  handlers.checkpoint = [this, key](std::uint64_t connection, env::CheckpointRequest request) {
    take(agent::CheckpointAsked{connection, key.first, std::move(request)});
  };
  handlers.stopped = [this](std::uint64_t connection) { take(agent::JobStopped{connection}); };
  std::optional<uid_t> owner;
  if (launch.uid) owner = static_cast<uid_t>(*launch.uid);
  ZED_TRY(auto socket,
          proc::JobSocket::open(
              loop_, launch.environment.at("ZED_SOCKET"), owner, [greeting] { return greeting; },
              next_job_connection_, std::move(handlers)));
  job_sockets_[key] = std::move(socket);
  return {};
}

proc::JobSocket* AgentShell::socket_of(agent::JobConnection connection) {
  for (const auto& [key, socket] : job_sockets_)
    if (socket->has(connection)) return socket.get();
  return nullptr;
}

}  // namespace zed::bin
