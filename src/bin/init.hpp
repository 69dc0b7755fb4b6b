#pragma once
// `zed-controller init` and `issue`, `zed-agent join`: what is done once, by a person.

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "net/endpoint.hpp"

namespace zed::bin {

/// /var/lib/zed/<program> for root, else $XDG_STATE_HOME/zed/<program> (~/.local/state).
std::filesystem::path default_state(const std::string& program);
/// The machine's own name, without a domain.
std::string machine_name();

/// From a file (its first line), or asked on the terminal without echo, `twice` to be sure. Errors:
/// `invalid` (empty, or the two differ), `refused` if there is neither file nor terminal.
Result<std::string> read_passphrase(const std::string& file, bool twice);

struct InitOptions {
  std::filesystem::path state;
  std::string name;                ///< the controller is zed_controller@<name>
  std::vector<std::string> hosts;  ///< names and addresses beside it, by which others reach it
  std::string passphrase;
  /// A copy of another controller's pki folder, whose authority this one takes over; empty: none.
  std::filesystem::path authority = {};
};
/// Makes the fleet's certificate authority, its issuing certificate and the controller's own.
/// Returns the authority's fingerprint. Errors: `exists` if there is one already.
Result<std::string> init_fleet(const InitOptions& options);

/// A new issuing certificate, and a new one of the controller, by the authority that is there.
/// Errors: `refused` (passphrase).
Status issue_anew(const std::filesystem::path& state, const std::string& passphrase);

struct JoinOptions {
  std::filesystem::path state;
  std::string controller;  ///< "HOST" or "HOST:PORT" of its HTTP door
  std::string token;
};
/// Joins this machine; afterwards `zed-agent` needs nothing else. Returns the node's name. Errors:
/// `exists` if the machine has joined already, those of http::join.
Result<std::string> join_fleet(const JoinOptions& options);

}  // namespace zed::bin
