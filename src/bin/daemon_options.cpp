#include "bin/daemon_options.hpp"

#include <cstdio>

#include <CLI/CLI.hpp>

#include "base/log.hpp"
#include "bin/daemon.hpp"

namespace zed::bin {

void DaemonOptions::add_to(CLI::App& command, const Help& help) {
  command.add_option("--state", state, help.state);
  command.add_option("--name", name, help.name);
  command.add_option("--cookie-file", cookie_file, "the cluster's cookie, mode 0600");
  command.add_option("--listen", listen, "address to listen on (all, with certificates)");
  command.add_option("--port", port, help.port);
  command.add_flag("--dangerously-allow-plain-tcp", plain,
                   "TCP without TLS to any machine: for closed test networks only");
  command.add_flag("--verbose", verbose, "log more");
}

Result<std::string> DaemonOptions::cookie(const std::filesystem::path& folder) const {
  const bool is_own = cookie_file.empty();
  return read_cookie(is_own ? folder / "cookie" : std::filesystem::path(cookie_file), is_own);
}

std::string DaemonOptions::address_to_listen_on(bool beneath_tls) const {
  if (!listen.empty()) return listen;
  return beneath_tls ? "0.0.0.0" : "127.0.0.1";
}

net::Exposure DaemonOptions::exposure() const {
  if (!plain) return net::Exposure::loopback_only;
  log_warning("--dangerously-allow-plain-tcp: whoever reaches this machine's ports can read and "
              "change what the fleet says");
  return net::Exposure::plain_everywhere;
}

void configure_log_of(const std::string& program, const DaemonOptions& options) {
  configure_log(program, options.verbose ? LogLevel::debug : LogLevel::info);
}

int refuse_arguments(const CLI::App& app, const std::string& program,
                     const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) return app.exit(error);
  const auto commands = app.get_subcommands();
  const auto words = app.remaining();
  const bool unknown = commands.empty() && !words.empty();
  const std::string called =
      commands.empty() ? program : program + " " + commands.front()->get_name();
  const std::string what = unknown ? "there is no " + words.front() : error.what();
  std::fprintf(stderr, "%s: %s\n  next: %s --help\n", program.c_str(), what.c_str(),
               called.c_str());
  return 1;
}

int report(const std::string& program, const Status& status) {
  if (status) return 0;
  std::fprintf(stderr, "%s: %s\n", program.c_str(), status.error().describe().c_str());
  return 1;
}

}  // namespace zed::bin
