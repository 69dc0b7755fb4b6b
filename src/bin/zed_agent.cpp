// zed-agent: one per machine.

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include <CLI/CLI.hpp>

#include "base/log.hpp"
#include "bin/agent_gpus.hpp"
#include "bin/agent_shell.hpp"
#include "bin/machine_facts.hpp"
#include "bin/probe_command.hpp"
#include "net/signals.hpp"
#include "proc/supervisor.hpp"
#include "store/dir/dir_store.hpp"
#include "store/zfs/zfs_store.hpp"

namespace {

using namespace zed;

struct RunOptions {
  std::string state;
  std::string name;
  std::string pool = "tank";
  std::string store = "dir";
  std::string gpus = "auto";
  std::string cookie_file;
  std::string run_folder;
  std::string listen = "127.0.0.1";
  std::vector<std::string> controllers;
  std::vector<std::string> labels;
  std::uint16_t port = 4370;
  std::uint16_t data_port = 4373;
  bool not_dialable = false;
  bool jobs_as_self = false;
  bool verbose = false;
};

std::filesystem::path own_program() {
  return std::filesystem::read_symlink("/proc/self/exe");
}

/// The small program beside this one; if it is not there, this one can do it too.
std::filesystem::path supervisor_program() {
  auto small = own_program().parent_path() / "zed-supervise";
  return ::access(small.c_str(), X_OK) == 0 ? small : own_program();
}

Result<bin::AgentConfig> config_of(const RunOptions& options) {
  bin::AgentConfig config;
  ZED_TRY(config.name, NodeName::parse(options.name));
  std::filesystem::path state = std::filesystem::absolute(options.state);
  config.state_folder = state;
  config.program = supervisor_program();
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
  config.beam.name = "zed@" + config.name.str();
  bool own_cookie = options.cookie_file.empty();
  std::filesystem::path cookie = options.cookie_file;
  ZED_TRY(config.beam.cookie, bin::read_cookie(own_cookie ? state / "cookie" : cookie, own_cookie));
  config.beam.listen = {options.listen, options.port};
  config.transfers.listen = {options.listen, options.data_port};
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
  ZED_CHECK(bin::make_private_folder(options.state));
  ZED_TRY(auto pid_file, bin::PidFile::take(options.state));
  ZED_TRY(auto config, config_of(options));
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

int report(const Status& status) {
  if (status) return 0;
  std::fprintf(stderr, "zed-agent: %s\n", status.error().describe().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"The agent of one machine in a Zed fleet"};
  app.require_subcommand(1);
  RunOptions options;
  CLI::App* run_command = app.add_subcommand("run", "serve this machine");
  run_command->add_option("--state", options.state, "folder of everything this node keeps")
      ->required();
  run_command->add_option("--name", options.name, "the node's name in the fleet")->required();
  run_command->add_option("--pool", options.pool, "name of the pool");
  run_command->add_option("--store", options.store,
                          "zfs (OpenZFS, --pool names it) or dir (any file system)");
  run_command->add_option("--gpus", options.gpus,
                          "auto: those of this machine; else a simulated profile, or none");
  run_command->add_option("--controller", options.controllers, "NAME@HOST:PORT; may be repeated");
  run_command->add_option("--cookie-file", options.cookie_file, "the cluster's cookie, mode 0600");
  run_command->add_option("--run-folder", options.run_folder, "folder of sockets (short path)");
  run_command->add_option("--listen", options.listen, "address to listen on");
  run_command->add_option("--port", options.port, "port for controllers; 0: any");
  run_command->add_option("--data-port", options.data_port, "port for transfers; 0: any");
  run_command->add_option("--label", options.labels, "a label that jobs may require");
  run_command->add_flag("--not-dialable", options.not_dialable,
                        "other nodes cannot reach this one");
  run_command->add_flag("--jobs-as-self", options.jobs_as_self,
                        "run jobs as this user even if it is root: for development fleets");
  run_command->add_flag("--verbose", options.verbose, "log more");
  std::string folder;
  CLI::App* supervise_command =
      app.add_subcommand("supervise", "run one attempt (used by the agent)");
  supervise_command->add_option("folder", folder)->required();
  bin::ProbeCommand probe;
  CLI::App* probe_command = app.add_subcommand("probe", "print the GPUs of this machine");
  probe.add_to(*probe_command);
  CLI::App* version_command = app.add_subcommand("version", "print the version");
  CLI11_PARSE(app, argc, argv);

  if (*version_command) {
    std::printf("zed-agent %s\n", ZED_VERSION);
    return 0;
  }
  if (*probe_command) return probe.run();
  if (*supervise_command) {
    const std::string program = supervisor_program().string();
    if (program != own_program())
      ::execl(program.c_str(), program.c_str(), "supervise", folder.c_str(), nullptr);
    configure_log("zed-agent supervise", LogLevel::info);
    return proc::supervise(proc::AttemptFolder(folder));
  }
  configure_log("zed-agent", options.verbose ? LogLevel::debug : LogLevel::info);
  return report(run(options));
}
