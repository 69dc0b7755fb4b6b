#include "bin/agent_shell.hpp"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.hpp"
#include "base/text.hpp"
#include "bin/import.hpp"
#include "bin/joined.hpp"
#include "bin/machine.hpp"
#include "bin/questions.hpp"
#include "net/system.hpp"
#include "proc/job_log.hpp"
#include "proc/job_user.hpp"
#include "proc/setup_folder.hpp"
#include "store/files/sha256.hpp"

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

/// The variable by which a vendor's runtime is told which GPUs it may see.
const char* visibility_variable(GpuVendor vendor) {
  switch (vendor) {
  case GpuVendor::nvidia: return "CUDA_VISIBLE_DEVICES";
  case GpuVendor::amd: return "ROCR_VISIBLE_DEVICES";
  case GpuVendor::intel: return "ZE_AFFINITY_MASK";
  case GpuVendor::apple:
  case GpuVendor::simulated:
  case GpuVendor::other: return nullptr;
  }
  return nullptr;
}

/// What stands for a setup on this node: two jobs of the same one share what it installs. What Zed
/// itself says to a job is no part of it, or no two would.
std::string setup_key(const env::LaunchRequest& request, const std::string& user) {
  std::string text = request.setup->command;
  for (const std::string& part : {request.content ? request.content->str() : "", user})
    text += '\0' + part;
  for (const auto& [name, value] : request.env)
    if (!name.starts_with("ZED_")) text.append(1, '\0').append(name).append("=").append(value);
  return store::hex_of(store::sha256(std::as_bytes(std::span(text)))).substr(0, 32);
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

/// One overload an effect.
struct AgentShell::Performer {
  AgentShell& shell;

  void operator()(const agent::SayToController& e) const { shell.links_->say(e.link, e.message); }
  void operator()(const agent::CloseLink& e) const { shell.links_->close(e.link); }

  void operator()(const agent::CallStore& e) const {
    using Reply = Result<env::StoreReply>;
    auto work = [&store = shell.store_, request = e.request] {
      return env::perform(store, request);
    };
    auto done = [self = &shell, id = e.id](Reply reply) {
      self->take(agent::StoreReturned{id, std::move(reply)});
    };
    off_loop<Reply>(shell.store_workers_, std::move(work), done);
  }

  void operator()(const agent::LaunchAttempt& e) const { shell.launch(e); }
  // An order to a supervisor that is gone is lost: the end of its attempt is on its way.
  void operator()(const agent::StopProcesses& e) const {
    (void)shell.attempts_->order(e.job, e.generation, proc::StopOrder{e.mode});
  }
  void operator()(const agent::ExtendLease& e) const {
    (void)shell.attempts_->order(e.job, e.generation, proc::LeaseOrder{e.lease});
  }
  void operator()(const agent::FreezeProcesses& e) const {
    auto sent = shell.attempts_->order(e.job, e.generation, proc::FreezeOrder{e.frozen});
    if (e.id == 0) return;
    if (sent)
      shell.freezing_[{e.job, e.generation}] = e.id;
    else
      shell.loop_.post([self = &shell, id = e.id, sent] {
        self->take(agent::ProcessesFrozen{id, sent});
      });
  }
  void operator()(const agent::ForgetAttempt& e) const {
    shell.job_sockets_.erase({e.job, e.generation});
    shell.attempts_->forget(e.job, e.generation);
  }

  void operator()(const agent::AskJob& e) const {
    if (auto* socket = shell.socket_of(e.connection))
      socket->ask(e.connection, e.ask, e.deadline, e.reason);
  }
  void operator()(const agent::AnswerJob& e) const {
    if (auto* socket = shell.socket_of(e.connection)) socket->answer(e.connection, e.reply);
  }

  void operator()(const agent::StartTransfer& e) const {
    bool sends = e.role == agent::StartTransfer::Role::send;
    shell.transfers_->start({e.step, sends, e.ticket, e.dataset_changes});
  }
  void operator()(const agent::StartHostSend& e) const { shell.send_to_host(e); }
  void operator()(const agent::CancelTransfer& e) const {
    auto to_host = shell.host_sends_.find(e.step);
    if (to_host != shell.host_sends_.end()) return to_host->second->cancel();
    shell.transfers_->cancel(e.step);
  }

  void operator()(const agent::ImportPath& e) const {
    auto report = [self = &shell, step = e.step](Bytes done, Bytes total, Bytes rate) {
      self->loop_.post([self, step, done, total, rate] {
        self->take(agent::TransferProgressed{step, done, total, rate});
      });
    };
    auto work = [&store = shell.store_, import = e.import, report] {
      return import_files(store, import, report);
    };
    auto done = [self = &shell, step = e.step](Result<Snapshot> result) {
      self->take(agent::ImportEnded{step, std::move(result)});
    };
    off_loop<Result<Snapshot>>(shell.store_workers_, std::move(work), done);
  }

  void operator()(const agent::UnpackCode& e) const {
    auto work = [&store = shell.store_, dataset = e.dataset, code = e.code] {
      return unpack_code(store, dataset, code);
    };
    auto done = [self = &shell, id = e.id](Status result) {
      self->take(agent::CodeUnpacked{id, std::move(result)});
    };
    off_loop<Status>(shell.store_workers_, std::move(work), done);
  }

  void operator()(const agent::SaveNodeState& e) const {
    write([e](NodeFiles& files) { return files.save(e.highest_term, e.journal_second); },
          [self = &shell, id = e.id](Status result) {
            self->take(agent::NodeStateSaved{id, std::move(result)});
          });
  }
  void operator()(const agent::StoreJournalCopy& e) const {
    write([records = e.records](NodeFiles& files) { return files.store_copy(records); },
          [self = &shell, id = e.id](Status result) {
            self->take(agent::JournalCopyStored{id, std::move(result)});
          });
  }

  void operator()(const agent::FetchLog& e) const {
    auto work = [&store = shell.store_, request = e.request]() -> Result<LogPage> {
      ZED_TRY(auto live, store.open_live(request.dataset));
      ZED_TRY(LogPage page, proc::read_log(live, request.offset));
      page.request = request.request;
      return page;
    };
    auto done = [self = &shell, id = e.id](Result<LogPage> result) {
      self->take(agent::LogRead{id, std::move(result)});
    };
    off_loop<Result<LogPage>>(shell.store_workers_, std::move(work), done);
  }

  void operator()(const agent::AnswerQuestion& e) const {
    auto work = [self = &shell, question = e.question, now = shell.loop_.clocks().monotonic] {
      return answer_question(self->store_, self->commands_, self->files_.attempts(), question, now);
    };
    auto done = [self = &shell, id = e.id](Result<NodeReply> result) {
      self->take(agent::QuestionAnswered{id, std::move(result)});
    };
    off_loop<Result<NodeReply>>(shell.question_workers_, std::move(work), done);
  }

  /// Blocking work, its result handed to `done` on the loop; a full queue is such a result too.
  template <class T, class Work, class Done>
  void off_loop(net::WorkerPool& workers, Work work, Done done) const {
    if (auto posted = workers.run<T>(std::move(work), done); !posted)
      shell.loop_.post([done, posted] { done(fail(posted.error())); });
  }

  template <class Work, class Done> void write(Work work, Done done) const {
    auto on_files = [&files = shell.files_, work = std::move(work)] { return work(files); };
    off_loop<Status>(shell.file_worker_, std::move(on_files), done);
  }
};

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
  attempts.started = [this](const JobId& job, const Generation& generation) {
    auto starting = starting_.extract({job, generation});
    if (!starting.empty()) take(agent::AttemptStarted{starting.mapped(), {}});
  };
  attempts.exited = [this](const JobId& job, const Generation& generation, const ExitRecord& exit) {
    auto starting = starting_.extract({job, generation});
    if (!starting.empty()) take(agent::AttemptStarted{starting.mapped(), {}});
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
  if (config_.tls)
    certificates_.emplace(loop_, IdentityFiles(config_.state_folder), config_.tls,
                          config_.renew_at);
  return {};
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
  has_slept();
  tick();
  probe_gpus();
  return {};
}

void AgentShell::take(agent::Event event) {
  for (const agent::Effect& effect : agent::on(state_, event, loop_.clocks()))
    std::visit(Performer{*this}, effect);
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
  bool busy = !state_.held_gpus().empty() || config_.facts.simulated;
  probe_in(busy ? probe_busy : probe_idle);
  take(agent::MemoryMeasured{free_memory(), {}, power_source("/")});
  if (probing_) return;  // one that hangs is given up by itself, in its own time
  using Probed = Result<std::vector<Gpu>>;
  auto done = [this](Probed probed) {
    probing_ = false;
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

/// Whose processes the job's are; its folder is theirs then.
Status AgentShell::choose_user(proc::Launch& launch) const {
  if (config_.jobs_as_self) return {};
  ZED_TRY(auto user, proc::user_of_jobs(launch.request.run_as));
  if (!user) return {};
  launch.uid = user->uid;
  launch.gid = user->gid;
  launch.environment["HOME"] = user->home;
  launch.environment["USER"] = user->name;
  net::Fd folder(::open(launch.directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return fail(net::system_error(errno, "open " + launch.directory));
  return proc::give_to(folder.get(), *user);
}

/// Where its setup keeps what it installs, and that it is found there by name.
Status AgentShell::prepare_setup(proc::Launch& launch) const {
  if (!launch.request.setup) return {};
  std::optional<proc::JobUser> user;
  if (launch.uid) {
    ZED_TRY(user, proc::user_of_jobs(launch.request.run_as));
  }
  auto& environment = launch.environment;
  const auto setups = config_.state_folder / "setup";
  const auto folder = setups / setup_key(launch.request, user ? user->name : "");
  ZED_CHECK(proc::make_setup_folder(folder, user));
  proc::drop_unused_setups(setups);
  launch.setup_folder = folder.string();
  environment["ZED_SETUP_DIR"] = (folder / "files").string();
  environment["PATH"] = proc::setup_search_path(folder, environment["PATH"]);
  return {};
}

Result<proc::Launch> AgentShell::prepare(const env::LaunchRequest& request) {
  proc::Launch launch;
  launch.request = request;
  ZED_TRY(auto live, store_.open_live(request.attempt.dataset));
  launch.directory = live.string();
  auto input_path = [this](const Input& input) -> Result<std::string> {
    ZED_TRY(Dataset dataset, store_.inspect(input.dataset));
    const Snapshot* snapshot = dataset.find(input.snapshot);
    if (snapshot == nullptr)
      return fail(ErrorCode::not_found, "the snapshot of " + input.dataset.str() +
                                            " that this job needs is not here any more");
    ZED_TRY(auto path, store_.snapshot_path({input.dataset, snapshot->name}));
    return path.string();
  };
  auto& environment = launch.environment;
  for (const char* inherited : {"PATH", "HOME", "LANG", "TMPDIR", "USER"})
    if (const char* value = std::getenv(inherited)) environment[inherited] = value;
  ZED_CHECK(choose_user(launch));
  for (const auto& [name, value] : request.env)
    environment[name] = value;
  environment["ZED_JOB_DIR"] = launch.directory;
  environment["ZED_JOB_ID"] = request.attempt.job.str();
  if (request.model) {
    ZED_TRY(environment["ZED_MODEL_DIR"], input_path(*request.model));
  }
  std::vector<std::string> data;
  for (const Input& input : request.data) {
    ZED_TRY(std::string path, input_path(input));
    data.push_back(std::move(path));
  }
  if (!data.empty()) environment["ZED_DATA_DIR"] = join(data, ":");
  if (const char* variable = visibility_variable(request.vendor)) {
    std::vector<std::string> names;
    for (const std::string& uuid : request.visible_gpus)
      names.push_back(gpus_.visible_name(uuid));
    environment[variable] = join(names, ",");
  }
  std::string mark = request.attempt.job.str().substr(0, 8) + "-" +
                     std::to_string(request.attempt.generation.term.number) + "-" +
                     std::to_string(request.attempt.generation.counter);
  launch.control_socket = config_.run_folder / ("s-" + mark);
  environment["ZED_SOCKET"] = config_.run_folder / ("j-" + mark);
  ZED_CHECK(prepare_setup(launch));
  return launch;
}

void AgentShell::launch(const agent::LaunchAttempt& effect) {
  Key key{effect.launch.attempt.job, effect.launch.attempt.generation};
  auto failed = [this, key](const Error& error) {
    auto starting = starting_.extract(key);
    if (!starting.empty()) take(agent::AttemptStarted{starting.mapped(), fail(error)});
  };
  auto prepared = [this, failed](Result<proc::Launch> launch) {
    if (!launch) return failed(launch.error());
    if (auto opened = open_job_socket(*launch); !opened) return failed(opened.error());
    attempts_->launch(std::move(*launch), [failed](Status started) {
      if (!started) failed(started.error());
    });
  };
  starting_[key] = effect.id;
  auto work = [this, request = effect.launch] { return prepare(request); };
  if (auto posted = store_workers_.run<Result<proc::Launch>>(std::move(work), prepared); !posted)
    loop_.post([failed, posted] { failed(posted.error()); });
}

void AgentShell::send_to_host(const agent::StartHostSend& effect) {
  const StepId step = effect.step;
  auto send =
      std::make_shared<store::HostSend>(store_, store::zfs::make_system_commands(), config_.ssh);
  host_sends_[step] = send;
  auto report = [this, step](Bytes done, Bytes total, Bytes rate) {
    loop_.post([this, step, done, total, rate] {
      take(agent::TransferProgressed{step, done, total, rate});
    });
  };
  auto work = [send, wanted = effect.send, report] { return send->run(wanted, report); };
  auto done = [this, step](Result<store::HostSent> result) {
    host_sends_.erase(step);
    using Ended = Result<agent::TransferOutcome>;
    take(agent::TransferEnded{step, result ? Ended({result->moved, std::nullopt})
                                           : Ended(fail(result.error()))});
  };
  if (auto posted = host_workers_.run<Result<store::HostSent>>(std::move(work), done); !posted)
    loop_.post([done, posted] { done(fail(posted.error())); });
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
