#pragma once
// What an agent that has joined a fleet knows from its files: who it is, and where its controller
// is.

#include <cstdint>
#include <memory>
#include <optional>

#include "bin/agent_shell.hpp"
#include "bin/identity_files.hpp"

namespace zed::bin {

struct Joined {
  NodeName name;
  std::shared_ptr<net::Tls> tls;
  ControllerAddress controller;
  std::optional<ControllerAddress> standby;  ///< of the second node, after a takeover
  std::uint16_t http_port = 0;               ///< of both: where certificates are renewed
};

/// Where the second node's controller would be: under that node's name, at the same ports. Nothing
/// if no second node is known.
std::optional<ControllerAddress> standby_of(const JoinRecord& record);

/// Nothing if the folder belongs to a machine that has not joined. Errors: those of the files.
Result<std::optional<Joined>> load_joined(const std::filesystem::path& state);

/// Makes the agent what its certificate says. Errors: `invalid` if it was given another name.
Status use(const Joined& joined, AgentConfig& config);

/// The address by which other machines reach what listens at `listening`: itself, or, if it listens
/// everywhere, the one that this machine shows to `controller`.
std::string reachable_address(const net::Endpoint& listening, const net::Endpoint& controller);

}  // namespace zed::bin
