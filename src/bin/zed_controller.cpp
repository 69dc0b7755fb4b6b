// zed-controller: one per fleet, on any machine.

#include <signal.h>

#include <cstdio>
#include <filesystem>

#include <CLI/CLI.hpp>

#include "base/log.hpp"
#include "bin/controller_shell.hpp"
#include "journal/journal.hpp"
#include "net/signals.hpp"
#include "proc/launch.hpp"

namespace {

using namespace zed;

struct RunOptions {
  std::string state;
  std::string name;
  std::string machine;
  std::string socket;
  std::string cookie_file;
  std::string listen = "127.0.0.1";
  std::uint16_t port = 4371;
  double lost_after_s = 30;
  bool verbose = false;
  std::string agent_state;  ///< takeover: whose copy of the journal
  bool force = false;
};

Result<bin::ControllerConfig> config_of(const RunOptions& options) {
  bin::ControllerConfig config;
  config.state = std::filesystem::absolute(options.state);
  ZED_TRY(auto name, NodeName::parse(options.name));
  if (!options.machine.empty()) {
    ZED_TRY(config.machine, NodeName::parse(options.machine));
  }
  config.beam.name = "zed_controller@" + name.str();
  bool own_cookie = options.cookie_file.empty();
  std::filesystem::path cookie = options.cookie_file;
  ZED_TRY(config.beam.cookie,
          bin::read_cookie(own_cookie ? config.state / "cookie" : cookie, own_cookie));
  config.beam.listen = {options.listen, options.port};
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
  if (!text)
    return fail(std::move(text).error().hinted(
        "take over on the node that `zedctl status` named as holding the journal's copy"));
  ZED_CHECK(journal::parse_journal(*text));
  return proc::write_file_durably(journal, *text);
}

Status run(const RunOptions& options, bool takes_over) {
  ZED_CHECK(bin::make_private_folder(options.state));
  ZED_TRY(auto pid_file, bin::PidFile::take(options.state));
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
  command.add_option("--state", options.state, "folder of the journal")->required();
  command.add_option("--name", options.name, "its Erlang node is zed_controller@NAME")->required();
  command.add_option("--machine", options.machine, "the node on this machine, if it has an agent");
  command.add_option("--socket", options.socket, "UNIX socket for clients");
  command.add_option("--cookie-file", options.cookie_file, "the cluster's cookie, mode 0600");
  command.add_option("--listen", options.listen, "address to listen on");
  command.add_option("--port", options.port, "port for agents and shells; 0: any");
  command.add_option("--lost-after", options.lost_after_s,
                     "seconds of silence until a node is lost");
  command.add_flag("--verbose", options.verbose, "log more");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"The controller of a Zed fleet"};
  app.require_subcommand(1);
  RunOptions options;
  CLI::App* run_command = app.add_subcommand("run", "serve the fleet");
  CLI::App* takeover_command =
      app.add_subcommand("takeover", "go on from the journal's copy, on the machine that has it");
  for (CLI::App* command : {run_command, takeover_command})
    add_options(*command, options);
  takeover_command->add_option("--agent-state", options.agent_state, "the --state of its agent")
      ->required();
  takeover_command->add_flag("--force", options.force,
                             "although agents name another machine as the one with the copy");
  CLI::App* version_command = app.add_subcommand("version", "print the version");
  CLI11_PARSE(app, argc, argv);

  if (*version_command) {
    std::printf("zed-controller %s\n", ZED_VERSION);
    return 0;
  }
  configure_log("zed-controller", options.verbose ? LogLevel::debug : LogLevel::info);
  auto status = run(options, takeover_command->parsed());
  if (status) return 0;
  std::fprintf(stderr, "zed-controller: %s\n", status.error().describe().c_str());
  return 1;
}
