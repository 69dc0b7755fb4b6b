#include "bin/joined.hpp"

#include "base/log.hpp"
#include "net/socket.hpp"

namespace zed::bin {

std::optional<ControllerAddress> standby_of(const JoinRecord& record) {
  const std::string peer = "zed_controller@" + record.second;
  if (record.second.empty() || record.second_host.empty() || peer == record.controller)
    return std::nullopt;
  return ControllerAddress{peer, {record.second_host, record.distribution_port}};
}

Result<std::optional<Joined>> load_joined(const std::filesystem::path& state) {
  const IdentityFiles files(state);
  if (!files.has_identity()) return std::optional<Joined>{};
  Joined joined;
  ZED_TRY(joined.tls, files.load_tls());
  ZED_TRY(const JoinRecord record, load_join(files));
  const auto own = joined.tls->own();
  if (!own || own->identity.role != pki::Role::agent)
    return fail(ErrorCode::refused, files.folder().string() + " holds no agent's certificate",
                "zed-agent join makes one");
  ZED_TRY(joined.name, NodeName::parse(own->identity.host()));
  joined.controller = {record.controller, {record.host, record.distribution_port}};
  joined.standby = standby_of(record);
  joined.http_port = record.http_port;
  return std::optional<Joined>(std::move(joined));
}

Status use(const Joined& joined, AgentConfig& config) {
  if (!config.name.empty() && config.name != joined.name)
    return fail(ErrorCode::invalid,
                "this machine has joined as " + joined.name.str() + ", not as " + config.name.str(),
                "leave out --name");
  config.name = joined.name;
  config.beam.tls = joined.tls;
  config.transfers.tls = joined.tls;
  config.tls = joined.tls;
  // Whoever types --controller says where it is; else the fleet does, a takeover included.
  config.follows = config.controllers.empty();
  if (config.follows) {
    config.controllers.push_back(joined.controller);
    config.standby = joined.standby;
  }
  config.http_port = joined.http_port;
  return {};
}

std::string reachable_address(const net::Endpoint& listening, const net::Endpoint& controller) {
  if (listening.host != "0.0.0.0" && listening.host != "::") return listening.str();
  auto address = net::source_address(controller);
  if (!address) {
    log_warning("which address others reach this machine by is unknown: " +
                address.error().describe() + "; give it with --address");
    return listening.str();
  }
  return net::Endpoint{*address, listening.port}.str();
}

}  // namespace zed::bin
