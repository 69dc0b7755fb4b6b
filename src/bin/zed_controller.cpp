// zed-controller: one per fleet, on any machine.

#include <signal.h>

#include <cstdio>
#include <filesystem>

#include <CLI/CLI.hpp>

#include "base/log.hpp"
#include "bin/controller_shell.hpp"
#include "bin/daemon_options.hpp"
#include "bin/identity_files.hpp"
#include "bin/init.hpp"
#include "http/admit.hpp"
#include "journal/journal.hpp"
#include "net/signals.hpp"
#include "proc/launch.hpp"

namespace {

using namespace zed;

struct RunOptions : bin::DaemonOptions {
  std::string machine;
  std::string socket;
  std::uint16_t http_port = 4372;
  double lost_after_s = 30;
  std::string agent_state;  ///< takeover: whose copy of the journal
  std::vector<std::string> hosts;
  std::string passphrase_file;
  std::string authority;
  bool revoke_issued = false;
  bool force = false;
};

struct InitOptions {
  std::string state;
  std::string name;
  std::vector<std::string> hosts;
  std::string passphrase_file;
  std::string authority;
  bool revoke_issued = false;
};

std::filesystem::path state_of(const std::string& given) {
  return given.empty() ? bin::default_state("controller") : std::filesystem::path(given);
}

Status init(const InitOptions& options) {
  ZED_TRY(const std::string passphrase,
          bin::read_passphrase(options.passphrase_file, options.authority.empty()));
  const std::filesystem::path state = state_of(options.state);
  const std::string name = options.name.empty() ? bin::machine_name() : options.name;
  ZED_TRY(const std::string authority, bin::init_fleet({state, name, options.hosts, passphrase,
                                                        options.authority, options.revoke_issued}));
  std::printf("the fleet's certificate authority: %s\n"
              "keep a copy of %s and the passphrase elsewhere\n"
              "start the controller: zed-controller run%s\n",
              authority.c_str(), (state / "pki/ca-key.pem").c_str(),
              options.state.empty() ? "" : (" --state " + options.state).c_str());
  return {};
}

Status issue(const InitOptions& options) {
  ZED_TRY(const std::string passphrase, bin::read_passphrase(options.passphrase_file, false));
  const std::filesystem::path state = state_of(options.state);
  if (!options.revoke_issued) {
    ZED_CHECK(bin::issue_anew(state, passphrase));
    std::printf("new issuing certificate; restart the controller\n");
    return {};
  }
  // A running one would write its registry over ours.
  ZED_TRY(auto pid_file, bin::PidFile::take(state));
  ZED_CHECK(bin::issue_anew(state, passphrase, true));
  std::printf("new issuing certificate; what former ones signed is refused once the controller "
              "runs\neach machine and person joins anew: zedctl token create\n");
  return {};
}

/// With certificates it is what they say, and people come by TLS too.
Status use_identity(const RunOptions& options, bin::ControllerConfig& config) {
  const bin::IdentityFiles files(config.state);
  if (!files.has_identity()) return {};
  ZED_TRY(const auto tls, files.load_tls());
  const auto own = tls->own();
  if (!own || own->identity.role != pki::Role::controller)
    return fail(ErrorCode::refused, files.folder().string() + " holds no controller's certificate",
                "zed-controller init makes one");
  if (!options.name.empty() && options.name != own->identity.host())
    return fail(ErrorCode::invalid,
                "the certificate here is that of " + own->identity.node + ", not of " +
                    options.name,
                "leave out --name");
  config.identity = files;
  config.beam.name = own->identity.node;
  config.beam.listen.host = options.address_to_listen_on(true);
  http::TcpDoor door;
  door.endpoint = {config.beam.listen.host, options.http_port};
  ZED_TRY(door.token, http::load_or_make_token(config.state / "operator.token"));
  ZED_TRY(door.view_token, http::load_or_make_token(config.state / "viewer.token"));
  config.http.tcp = std::move(door);
  return {};
}

/// The host part of its Erlang name: its certificate's, the given one, this machine's.
std::string own_name(const RunOptions& options, const bin::ControllerConfig& config) {
  if (config.identity) return config.beam.name.substr(config.beam.name.find('@') + 1);
  return options.name.empty() ? bin::machine_name() : options.name;
}

Result<bin::ControllerConfig> config_of(const RunOptions& options) {
  bin::ControllerConfig config;
  config.state = std::filesystem::absolute(options.state);
  ZED_CHECK(use_identity(options, config));
  ZED_TRY(auto name, NodeName::parse(own_name(options, config)));
  if (!config.identity && !options.plain)
    log_info("no certificates in " + options.state +
             ": only this machine is served; for others: zed-controller init");
  if (!options.machine.empty()) {
    ZED_TRY(config.machine, NodeName::parse(options.machine));
  }
  config.beam.name = "zed_controller@" + name.str();
  ZED_TRY(config.beam.cookie, options.cookie(config.state));
  if (!config.identity) config.beam.listen.host = options.address_to_listen_on(false);
  config.beam.listen.port = options.port;
  config.beam.exposure = options.exposure();
  config.beam.epmd = beam::Epmd::register_if_running;
  config.http.socket_path =
      options.socket.empty() ? (config.state / "controller.sock").string() : options.socket;
  if (options.lost_after_s < 1 || options.lost_after_s > 86'400)
    return fail(ErrorCode::invalid, "--lost-after is not 1 to 86400 seconds");
  config.lost_after = Millis{static_cast<std::int64_t>(options.lost_after_s * 1000)};
  return config;
}

/// The journal of a takeover begins as the copy that the agent of this machine holds.
Status fetch_copy(const RunOptions& options) {
  std::filesystem::path journal = std::filesystem::path(options.state) / "journal";
  if (std::filesystem::exists(journal))
    return fail(ErrorCode::exists, options.state + " has a journal already",
                "run it with `zed-controller run`, or take over into an empty folder");
  auto copy = std::filesystem::path(options.agent_state) / "node" / "journal-copy";
  auto text = proc::read_file(copy, gibibytes(1));
  const std::filesystem::path damaged = copy.string() + ".damaged";
  if (!text && text.error().code == ErrorCode::not_found && std::filesystem::exists(damaged))
    return fail(ErrorCode::corrupt,
                "the journal's copy here was damaged, and no controller has sent it anew: " +
                    damaged.string(),
                "a controller's machine that still starts has the journal itself; or a backup");
  if (!text)
    return fail(std::move(text).error().hinted(
        "take over on the node that `zedctl status` named as holding the journal's copy"));
  ZED_CHECK(journal::parse_journal(*text));
  return proc::write_file_durably(journal, *text);
}

/// A takeover's certificates, and what its machine is called.
Status become_controller(RunOptions& options) {
  ZED_TRY(
      const auto node,
      bin::take_over_identity({options.state, options.agent_state, options.name, options.hosts,
                               options.passphrase_file, options.authority, options.revoke_issued}));
  if (options.machine.empty() && node) options.machine = *node;
  return {};
}

/// Each agent is an open file of this process.
void make_room_for_agents() {
  const std::uint64_t files = bin::raise_open_files();
  if (files >= bin::enough_open_files) return;
  log_warning("this process may have only " + std::to_string(files) +
              " files open, and each agent takes one; raise it: ulimit -Hn, or LimitNOFILE= of its "
              "service");
}

Status run(RunOptions options, bool takes_over) {
  make_room_for_agents();
  ZED_CHECK(bin::make_private_folder(options.state));
  ZED_TRY(auto pid_file, bin::PidFile::take(options.state));
  if (takes_over) ZED_CHECK(become_controller(options));
  ZED_TRY(auto config, config_of(options));
  if (takes_over) {
    ZED_CHECK(fetch_copy(options));
    config.takeover = bin::Takeover{seconds(5), options.force};
  }
  net::Loop loop;
  Status ended;
  std::string socket = config.http.socket_path;
  ZED_TRY(auto shell, bin::ControllerShell::start(loop, std::move(config), [&](Error why) {
            ended = fail(std::move(why));
            loop.stop();
          }));
  ZED_TRY(auto signals,
          net::Signals::watch(loop, {SIGTERM, SIGINT}, [&loop](int) { loop.stop(); }));
  log_info("controller ready, clients at " + socket);
  loop.run();
  if (!ended) return ended;
  log_info("controller stops; jobs go on");
  return {};
}

void add_options(CLI::App& command, RunOptions& options) {
  options.add_to(command, {"folder of the journal",
                           "its Erlang node is zed_controller@NAME; after init: by its certificate",
                           "port for agents and shells; 0: any"});
  command.add_option("--machine", options.machine, "the node on this machine, if it has an agent");
  command.add_option("--socket", options.socket, "UNIX socket for clients");
  command.add_option("--http-port", options.http_port,
                     "port for zedctl and joins from other machines; 0: any");
  command.add_option("--lost-after", options.lost_after_s,
                     "seconds of silence until a node is lost");
}

void add_revocation(CLI::App& command, bool& revoke_issued) {
  command.add_flag("--revoke-issued", revoke_issued,
                   "somebody else may have the issuing certificate: believe nothing that was "
                   "signed until now; machines and people join anew");
}

void add_authority(CLI::App& command, std::string& authority, bool& revoke_issued) {
  command.add_option("--authority", authority,
                     "go on with the authority of this copy of a controller's pki folder");
  add_revocation(command, revoke_issued);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"The controller of a Zed fleet"};
  app.require_subcommand(1);
  RunOptions options;
  CLI::App* run_command = app.add_subcommand("run", "serve the fleet");
  CLI::App* takeover_command =
      app.add_subcommand("takeover", "go on from the journal's copy, on the machine that has it");
  options.port = 4371;
  for (CLI::App* command : {run_command, takeover_command})
    add_options(*command, options);
  takeover_command->add_option("--agent-state", options.agent_state, "the --state of its agent")
      ->required();
  add_authority(*takeover_command, options.authority, options.revoke_issued);
  takeover_command->add_option("--host", options.hosts,
                               "a name or address by which others reach it; may be repeated");
  takeover_command->add_option("--passphrase-file", options.passphrase_file,
                               "the authority's, its first line; else it is asked");
  takeover_command->add_flag("--force", options.force,
                             "although agents name another machine as the one with the copy");
  InitOptions init_options;
  CLI::App* init_command = app.add_subcommand("init", "make a fleet's certificate authority");
  CLI::App* issue_command = app.add_subcommand("issue", "make a new issuing certificate");
  for (CLI::App* command : {init_command, issue_command}) {
    command->add_option("--state", init_options.state, "folder of the controller");
    command->add_option("--passphrase-file", init_options.passphrase_file,
                        "its first line; else it is asked");
  }
  init_command->add_option("--name", init_options.name, "of the controller (this machine's name)");
  add_authority(*init_command, init_options.authority, init_options.revoke_issued);
  add_revocation(*issue_command, init_options.revoke_issued);
  init_command->add_option("--host", init_options.hosts,
                           "a name or address by which others reach it; may be repeated");
  CLI::App* version_command = app.add_subcommand("version", "print the version");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return bin::refuse_arguments(app, "zed-controller", error);
  }

  if (*version_command) {
    std::printf("zed-controller %s\n", ZED_VERSION);
    return 0;
  }
  bin::configure_log_of("zed-controller", options);
  options.state = state_of(options.state).string();
  auto status = init_command->parsed()    ? init(init_options)
                : issue_command->parsed() ? issue(init_options)
                                          : run(options, takeover_command->parsed());
  return bin::report("zed-controller", status);
}
