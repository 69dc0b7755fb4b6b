// zed-agent: one per machine.

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include <CLI/CLI.hpp>

#include "base/log.hpp"
#include "bin/agent_gpus.hpp"
#include "bin/agent_shell.hpp"
#include "bin/daemon_options.hpp"
#include "bin/doctor.hpp"
#include "bin/init.hpp"
#include "bin/joined.hpp"
#include "bin/machine_facts.hpp"
#include "bin/probe_command.hpp"
#include "net/signals.hpp"
#include "net/system.hpp"
#include "proc/job_user.hpp"
#include "proc/launch.hpp"
#include "proc/supervisor.hpp"
#include "store/dir/dir_store.hpp"
#include "store/zfs/zfs_store.hpp"

namespace {

using namespace zed;

struct RunOptions : bin::DaemonOptions {
  std::string pool = "tank";
  std::string store = "dir";
  std::string gpus = "auto";
  std::string run_folder;
  std::string address;  ///< by which others reach this machine
  std::string ssh = "ssh";
  std::vector<std::string> controllers;
  std::vector<std::string> labels;
  std::uint16_t data_port = 4373;
  bool not_dialable = false;
  bool jobs_as_self = false;
  std::int64_t transfer_patience_s = 60;
};

/// The small program beside this one; if it is not there, this one can do it too.
Result<std::filesystem::path> supervisor_program() {
  ZED_TRY(const auto own, net::own_program());
  auto small = own.parent_path() / "zed-supervise";
  return ::access(small.c_str(), X_OK) == 0 ? small : own;
}

struct JoinOptions {
  std::string state;
  std::string controller;
  std::string token;
  std::string token_file;
};

std::filesystem::path state_of(const std::string& given) {
  return given.empty() ? bin::default_state("agent") : std::filesystem::path(given);
}

Status join(const JoinOptions& options) {
  std::string token = options.token;
  if (token.empty()) {
    ZED_TRY(token, proc::read_file(options.token_file, kibibytes(4)));
  }
  ZED_TRY(const std::string name,
          bin::join_fleet({state_of(options.state), options.controller, token}));
  std::printf("%s has joined; start its agent: zed-agent%s\n", name.c_str(),
              options.state.empty() ? "" : (" run --state " + options.state).c_str());
  return {};
}

void add_join(CLI::App& command, JoinOptions& options) {
  command.add_option("CONTROLLER", options.controller, "HOST or HOST:PORT (4372)")->required();
  auto* token = command.add_option("--token", options.token, "made by zedctl token create");
  command.add_option("--token-file", options.token_file, "a file that holds it")->excludes(token);
  command.add_option("--state", options.state, "folder of everything this node keeps");
}

void add_run(CLI::App& command, RunOptions& options) {
  options.port = 4370;
  options.add_to(command,
                 {"folder of everything this node keeps", "the node's name, unless it has joined",
                  "port for controllers; 0: any"});
  command.add_option("--pool", options.pool, "name of the pool");
  command.add_option("--store", options.store,
                     "zfs (OpenZFS, --pool names it) or dir (any file system)");
  command.add_option("--gpus", options.gpus,
                     "auto: those of this machine; else a simulated profile, or none");
  command.add_option("--controller", options.controllers, "NAME@HOST:PORT; may be repeated");
  command.add_option("--run-folder", options.run_folder, "folder of sockets (short path)");
  command.add_option("--data-port", options.data_port, "port for transfers; 0: any");
  command
      .add_option("--transfer-patience", options.transfer_patience_s,
                  "seconds that a transfer waits for its other end (60); more where disks are slow")
      ->check(CLI::Range(1, 86400));
  command.add_option("--label", options.labels, "a label that jobs may require");
  command.add_flag("--not-dialable", options.not_dialable, "other nodes cannot reach this one");
  command.add_flag("--jobs-as-self", options.jobs_as_self,
                   "run jobs as this user even if it is root: for development fleets");
  command.add_option("--address", options.address, "by which other machines reach this one");
  command.add_option("--ssh", options.ssh, "program that reaches machines without an agent (ssh)");
}

Result<bin::AgentConfig> config_of(const RunOptions& options) {
  bin::AgentConfig config;
  std::filesystem::path state = std::filesystem::absolute(options.state);
  ZED_TRY(auto joined, bin::load_joined(state));
  if (options.name.empty() && !joined)
    return fail(ErrorCode::invalid, "this machine has joined no fleet yet, and no --name is given",
                "zed-agent join HOST --token TOKEN; zedctl token create makes one");
  if (!options.name.empty()) {
    ZED_TRY(config.name, NodeName::parse(options.name));
  }
  config.state_folder = state;
  ZED_TRY(config.program, supervisor_program());
  config.run_folder = options.run_folder.empty() ? (state / "run").string() : options.run_folder;
  for (const std::string& text : options.controllers) {
    ZED_TRY(auto controller, bin::ControllerAddress::parse(text));
    config.controllers.push_back(std::move(controller));
  }
  config.facts = bin::machine_facts();
  config.facts.pool = options.pool;
  config.facts.simulated = bin::are_simulated(options.gpus);
  config.facts.labels = options.labels;
  config.facts.dialable = !options.not_dialable;
  config.jobs_as_self = options.jobs_as_self;
  if (joined) ZED_CHECK(bin::use(*joined, config));
  config.beam.name = "zed@" + config.name.str();
  ZED_TRY(config.beam.cookie, options.cookie(state));
  const std::string listen = options.address_to_listen_on(joined.has_value());
  config.address = options.address;
  config.ssh = options.ssh;
  config.beam.listen = {listen, options.port};
  config.transfers.listen = {listen, options.data_port};
  config.transfers.silence = seconds(options.transfer_patience_s);
  config.transfers.meeting = seconds(options.transfer_patience_s);
  config.beam.exposure = options.exposure();
  config.transfers.exposure = config.beam.exposure;
  return config;
}

Result<std::unique_ptr<env::Store>> open_store(const RunOptions& options) {
  if (options.store == "zfs") return store::open_zfs_store(options.pool);
  if (options.store == "dir")
    return store::open_dir_store(std::filesystem::path(options.state) / "pool", options.pool);
  return fail(ErrorCode::invalid, "there is no store \"" + options.store + "\"",
              "--store zfs (a pool of OpenZFS) or --store dir (any file system)");
}

Status run(const RunOptions& options) {
  bin::raise_open_files();
  ZED_CHECK(bin::make_private_folder(options.state));
  ZED_TRY(auto pid_file, bin::PidFile::take(options.state));
  ZED_TRY(auto config, config_of(options));
  if (auto user = proc::user_of_jobs({}); !user && !config.jobs_as_self)
    log_warning("no job can start here: " + user.error().describe());
  ZED_TRY(auto store, open_store(options));
  const env::StoreInfo about = store->info();
  config.facts.store = about.kind;
  config.facts.may_run_jobs = about.may_mount;
  ZED_TRY(auto gpus, bin::open_gpus(options.gpus, config));
  net::Loop loop;
  std::string name = config.name.str();
  ZED_TRY(auto shell, bin::AgentShell::start(loop, std::move(config), *store, *gpus));
  ZED_TRY(auto signals,
          net::Signals::watch(loop, {SIGTERM, SIGINT}, [&loop](int) { loop.stop(); }));
  log_info("node " + name + " is ready");
  loop.run();
  log_info("node " + name + " stops; its jobs go on");
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"The agent of one machine in a Zed fleet"};
  app.require_subcommand(0, 1);
  app.footer("Without a command it runs, as the member of a fleet that it has become by join.");
  RunOptions options;
  JoinOptions join_options;
  CLI::App* join_command = app.add_subcommand("join", "make this machine one of a fleet");
  add_join(*join_command, join_options);
  CLI::App* run_command = app.add_subcommand("run", "serve this machine");
  add_run(*run_command, options);
  std::string folder;
  CLI::App* supervise_command =
      app.add_subcommand("supervise", "run one attempt (used by the agent)");
  supervise_command->add_option("folder", folder)->required();
  bin::ProbeCommand probe;
  CLI::App* probe_command = app.add_subcommand("probe", "print the GPUs of this machine");
  probe.add_to(*probe_command);
  bin::DoctorCommand doctor;
  CLI::App* doctor_command =
      app.add_subcommand("doctor", "say what is wrong with this machine, and what to type");
  doctor.add_to(*doctor_command);
  CLI::App* version_command = app.add_subcommand("version", "print the version");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return bin::refuse_arguments(app, "zed-agent", error);
  }

  if (*version_command) {
    std::printf("zed-agent %s\n", ZED_VERSION);
    return 0;
  }
  if (*probe_command) return probe.run();
  if (*doctor_command) return doctor.run();
  if (*supervise_command) {
    const auto own = net::own_program();
    if (const auto program = supervisor_program(); program && own && *program != *own)
      ::execl(program->c_str(), program->c_str(), "supervise", folder.c_str(), nullptr);
    configure_log("zed-agent supervise", LogLevel::info);
    return proc::supervise(proc::AttemptFolder(folder));
  }
  bin::configure_log_of("zed-agent", options);
  if (*join_command) return bin::report("zed-agent", join(join_options));
  options.state = state_of(options.state).string();
  return bin::report("zed-agent", run(options));
}
