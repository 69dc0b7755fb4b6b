#pragma once
// What `zed-agent run` and `zed-controller run` have in common on the command line.

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.hpp"
#include "net/endpoint.hpp"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace zed::bin {

struct DaemonOptions {
  std::string state;        ///< empty: default_state()
  std::string name;         ///< empty: what its certificate says
  std::string cookie_file;  ///< empty: `cookie` in the state folder, made if it is missing
  std::string listen;       ///< empty: everywhere beneath TLS, else 127.0.0.1
  std::uint16_t port = 0;
  bool plain = false;  ///< TCP without TLS, to anywhere
  bool verbose = false;

  /// What the help says of the options that are not the same for both.
  struct Help {
    const char* state;
    const char* name;
    const char* port;
  };
  void add_to(CLI::App& command, const Help& help);

  /// As read_cookie(). `folder` is the state folder.
  Result<std::string> cookie(const std::filesystem::path& folder) const;
  std::string address_to_listen_on(bool beneath_tls) const;
  /// Of plain TCP. Warns in the log if it is to be everywhere.
  net::Exposure exposure() const;
};

/// Starts the log of a daemon that was called with these options.
void configure_log_of(const std::string& program, const DaemonOptions& options);

/// The exit status after arguments that could not be read: 0 if only help was asked for, which is
/// printed; else 1, and standard error says what is wrong and which help tells more.
int refuse_arguments(const CLI::App& app, const std::string& program, const CLI::ParseError& error);

/// The exit status of a program that ends with `status`; an error is said on standard error.
int report(const std::string& program, const Status& status);

}  // namespace zed::bin
