// zed-controller: one per fleet, on any machine.

#include <signal.h>

#include <cstdio>
#include <filesystem>

#include <CLI/CLI.hpp>

#include "base/log.hpp"
#include "bin/controller_shell.hpp"
#include "net/signals.hpp"

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

Status run(const RunOptions& options) {
  ZED_CHECK(bin::make_private_folder(options.state));
  ZED_TRY(auto pid_file, bin::PidFile::take(options.state));
  ZED_TRY(auto config, config_of(options));
  net::Loop loop;
  bool stepped_down = false;
  std::string socket = config.http.socket_path;
  ZED_TRY(auto shell, bin::ControllerShell::start(loop, std::move(config), [&] {
            stepped_down = true;
            loop.stop();
          }));
  ZED_TRY(auto signals,
          net::Signals::watch(loop, {SIGTERM, SIGINT}, [&loop](int) { loop.stop(); }));
  log_info("controller ready, clients at " + socket);
  loop.run();
  if (stepped_down)
    return fail(ErrorCode::stale, "another controller has taken over",
                "remove this one's --state folder before starting it here again");
  log_info("controller stops; jobs go on");
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"The controller of a Zed fleet"};
  app.require_subcommand(1);
  RunOptions options;
  CLI::App* run_command = app.add_subcommand("run", "serve the fleet");
  run_command->add_option("--state", options.state, "folder of the journal")->required();
  run_command->add_option("--name", options.name, "its Erlang node is zed_controller@NAME")
      ->required();
  run_command->add_option("--machine", options.machine,
                          "the node on this machine, if it has an agent");
  run_command->add_option("--socket", options.socket, "UNIX socket for clients");
  run_command->add_option("--cookie-file", options.cookie_file, "the cluster's cookie, mode 0600");
  run_command->add_option("--listen", options.listen, "address to listen on");
  run_command->add_option("--port", options.port, "port for agents and shells; 0: any");
  run_command->add_option("--lost-after", options.lost_after_s,
                          "seconds of silence until a node is lost");
  run_command->add_flag("--verbose", options.verbose, "log more");
  CLI::App* version_command = app.add_subcommand("version", "print the version");
  CLI11_PARSE(app, argc, argv);

  if (*version_command) {
    std::printf("zed-controller %s\n", ZED_VERSION);
    return 0;
  }
  configure_log("zed-controller", options.verbose ? LogLevel::debug : LogLevel::info);
  auto status = run(options);
  if (status) return 0;
  std::fprintf(stderr, "zed-controller: %s\n", status.error().describe().c_str());
  return 1;
}
