#pragma once
// `zed-controller init` and `issue`, `zed-agent join`: what is done once, by a person.

#include <filesystem>
#include <optional>
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
  /// With `authority`: nothing that was signed until now is believed any more.
  bool revoke_issued = false;
};
/// Makes the fleet's certificate authority, its issuing certificate and the controller's own; with
/// `authority` the issuing one is new and the rest goes on: registry, cookie. Returns the
/// authority's fingerprint. Errors: `exists` if there is one already, `refused` (passphrase),
/// `not_found` (the copy is not whole).
Result<std::string> init_fleet(const InitOptions& options);

/// A new issuing certificate, and a new one of the controller, by the authority that is there. With
/// `revoke_issued` nothing that was signed until now is believed any more; the controller must not
/// run then. Errors: `refused` (passphrase).
Status issue_anew(const std::filesystem::path& state, const std::string& passphrase,
                  bool revoke_issued = false);

struct TakeoverIdentity {
  std::filesystem::path state;        ///< of the controller that begins
  std::filesystem::path agent_state;  ///< of the agent whose copies it goes on with
  std::string name;                   ///< empty: the agent's
  std::vector<std::string> hosts;
  std::string passphrase_file;      ///< empty: asked
  std::filesystem::path authority;  ///< empty: the agent's copy
  bool revoke_issued = false;
};
/// Makes `state` a controller's that goes on with the fleet's authority, if the agent has joined a
/// fleet with certificates; asks for the passphrase. What is there already stays. Returns the
/// agent's node by its certificate; nothing for a fleet without certificates.
Result<std::optional<std::string>> take_over_identity(const TakeoverIdentity& options);

struct JoinOptions {
  std::filesystem::path state;
  std::string controller;  ///< "HOST" or "HOST:PORT" of its HTTP door
  std::string token;
};
/// Joins this machine; afterwards `zed-agent` needs nothing else. Returns the node's name. Errors:
/// `exists` if the machine has joined already, those of http::join.
Result<std::string> join_fleet(const JoinOptions& options);

}  // namespace zed::bin
