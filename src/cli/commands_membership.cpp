// Who belongs to the fleet, and which fleet this machine speaks to.

#include <algorithm>
#include <charconv>

#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/fleets.hpp"
#include "cli/table.hpp"
#include "net/endpoint.hpp"
#include "pki/token.hpp"
#include "proc/launch.hpp"

namespace zed::cli {
namespace {

constexpr std::uint16_t http_port = 4372;

Result<Millis> duration_of(const std::string& text) {
  std::int64_t count = 0;
  const char* end = text.data() + text.size();
  const auto [unit, error] = std::from_chars(text.data(), end, count);
  if (error == std::errc{} && unit + 1 == end && count > 0 && count < 100'000) {
    if (*unit == 'm') return minutes(count);
    if (*unit == 'h') return minutes(count * 60);
    if (*unit == 'd') return minutes(count * 60 * 24);
  }
  return fail(ErrorCode::invalid, "\"" + text.substr(0, 40) + "\" is no time",
              "write it like 30m, 24h or 7d");
}

std::string render(const api::TokensReply& reply, const View& view) {
  Table table({{"NAME"}, {"ROLE"}, {"WHAT"}, {"UNTIL"}, {"SERIAL", Align::left, true, true}});
  for (const auto& row : reply.certificates)
    table.add(
        {row.node, row.role, "certificate", to_iso8601(row.expires).substr(0, 16), row.serial});
  for (const auto& row : reply.tokens)
    table.add({row.node, row.role, "token", to_iso8601(row.expires).substr(0, 16), ""});
  return table.empty() ? "no tokens, no certificates\n" : table.render(view);
}

/// What OTP's inet_tls reads.
std::string tls_options(const std::filesystem::path& folder) {
  const auto section = [&folder](const std::string& more) {
    const std::string own = (folder / "node.pem").string();
    return "[{certfile, \"" + own + "\"}, {keyfile, \"" + own + "\"},\n  {cacertfile, \"" +
           (folder / "ca.pem").string() + "\"},\n  {verify, verify_peer}, " + more +
           "{versions, ['tlsv1.3']}]";
  };
  return "[{server, " + section("{fail_if_no_peer_cert, true}, ") + "},\n {client, " + section("") +
         "}].\n";
}

/// Names a host whose address alone is known here, for Erlang only. Empty if it is not needed.
std::string resolver(const KnownFleet& fleet) {
  const std::string host = fleet.controller.substr(fleet.controller.find('@') + 1);
  std::string address = fleet.host;
  const bool is_address =
      !address.empty() && address.find_first_not_of("0123456789.") == std::string::npos;
  if (!is_address || host == address) return "";
  std::replace(address.begin(), address.end(), '.', ',');
  return "{host, {" + address + "}, [\"" + host + "\"]}.\n{lookup, [file, native]}.\n";
}

Result<std::string> token_text(const std::string& token, const std::string& file) {
  if (!token.empty()) return token;
  return proc::read_file(file, kibibytes(4));
}

/// The controller of a fleet that this person belongs to is elsewhere now, after a takeover.
Result<ExitCode> move_to(Context& context, const LoginCommand& command, const net::Endpoint& door) {
  std::optional<KnownFleet> fleet;
  if (command.name.empty()) {
    ZED_TRY(fleet, current_fleet());
  } else {
    ZED_TRY(fleet, load_fleet(command.name));
  }
  if (!fleet)
    return fail(ErrorCode::invalid, "there is no token",
                "give --token, or --token-file; an operator makes one: zedctl token create");
  ZED_TRY(const auto former, door_of(*fleet));
  ZED_TRY(const auto found, http::succession({door, former.tls}));
  fleet->host = door.host;
  fleet->http_port = door.port;
  fleet->controller = found.controller;
  fleet->distribution_port = found.distribution_port;
  ZED_CHECK(save_place(*fleet));
  ZED_CHECK(switch_to(fleet->name));
  context.print("the controller of fleet " + fleet->name + " is " + found.controller + " at " +
                door.str() + " now\n");
  return ExitCode::done;
}

}  // namespace

Result<ExitCode> carry_out(Context& context, const LoginCommand& command) {
  const bool has_port = command.controller.find(':') != std::string::npos;
  ZED_TRY(const auto door,
          net::Endpoint::parse(has_port ? command.controller
                                        : command.controller + ":" + std::to_string(http_port)));
  if (command.token.empty() && command.token_file.empty()) return move_to(context, command, door);
  ZED_TRY(const std::string text, token_text(command.token, command.token_file));
  ZED_TRY(const auto token, pki::JoinToken::parse(text));
  if (token.identity.role == pki::Role::agent)
    return fail(ErrorCode::invalid, "this token is for a machine",
                "use it there: zed-agent join HOST --token TOKEN");
  ZED_TRY(const auto membership, http::join(door, token));
  const std::string host = membership.controller.substr(membership.controller.find('@') + 1);
  const KnownFleet fleet{command.name.empty() ? host : command.name,
                         door.host,
                         door.port,
                         membership.controller,
                         membership.distribution_port,
                         membership.cookie};
  ZED_CHECK(save_fleet(fleet, membership));
  ZED_CHECK(switch_to(fleet.name));
  context.print("zedctl speaks to fleet " + fleet.name + " now, as " + token.identity.node + " (" +
                std::string(to_string(token.identity.role)) + ")\n");
  return ExitCode::done;
}

Result<ExitCode> carry_out(Context& context, const ContextCommand& command) {
  if (command.leave) {
    ZED_CHECK(switch_to(""));
    context.print("zedctl speaks to the fleets of this machine again\n");
    return ExitCode::done;
  }
  if (!command.name.empty()) {
    ZED_TRY(const auto fleet, load_fleet(command.name));
    ZED_CHECK(switch_to(fleet.name));
    context.print("zedctl speaks to fleet " + fleet.name + " now\n");
    return ExitCode::done;
  }
  ZED_TRY(const auto current, current_fleet());
  for (const std::string& name : known_fleets())
    context.print((current && current->name == name ? "* " : "  ") + name + "\n");
  if (!current) context.note("none is in use: zedctl speaks to the fleets of this machine\n");
  return ExitCode::done;
}

Result<ExitCode> carry_out(Context& context, const CreateTokenCommand& command) {
  api::CreateToken request = command.request;
  if (!command.expires.empty()) {
    ZED_TRY(request.expires, duration_of(command.expires));
  }
  ZED_TRY(http::Client * client, context.client());
  ZED_TRY(const std::string text, client->call_text(api::CreateToken::tag, to_value(request)));
  if (context.options().json) {
    context.print(text);
    return ExitCode::done;
  }
  ZED_TRY(const auto reply, http::Client::read_reply<api::TokenReply>(text));
  context.note(reply.node + " (" + reply.role + "), good once, until " +
               to_iso8601(reply.expires).substr(0, 16) + " UTC:\n");
  context.print(reply.token + "\n");
  context.note(reply.role == "agent" ? "on that machine: zed-agent join CONTROLLER --token ...\n"
                                     : "there: zedctl login CONTROLLER --token ...\n");
  return ExitCode::done;
}

Result<ExitCode> carry_out(Context& context, const ListTokensCommand&) {
  return ask_and_print(context, api::ListTokens{}, [&context](const api::TokensReply& reply) {
    return render(reply, context.view());
  });
}

Result<ExitCode> carry_out(Context& context, const ForgetNodeCommand& command) {
  ZED_TRY(http::Client * client, context.client());
  ZED_TRY(const std::string text,
          client->call_text(api::ForgetNode::tag, to_value(command.request)));
  context.print(context.options().json
                    ? text
                    : command.request.node + " is forgotten; its certificates are refused\n");
  return ExitCode::done;
}

Result<ExitCode> carry_out(Context& context, const ShellConfigCommand&) {
  ZED_TRY(const auto fleet, current_fleet());
  if (!fleet)
    return fail(ErrorCode::not_found, "no fleet is in use here",
                "zedctl login HOST --token TOKEN; on the controller's machine too");
  const auto folder = folder_of(*fleet);
  ZED_TRY(const auto door, door_of(*fleet));
  ZED_CHECK(proc::write_file_durably(folder / "inet_tls.conf", tls_options(folder)));
  ZED_CHECK(proc::write_file_durably(folder / "cookie", fleet->cookie + "\n"));
  const std::string hosts = resolver(*fleet);
  if (!hosts.empty()) ZED_CHECK(proc::write_file_durably(folder / "inetrc", hosts));
  const auto own = door.tls->own();
  const std::string node = own ? own->identity.node : "";
  const bool long_names = node.find('.', node.find('@')) != std::string::npos;
  std::string flags = "-proto_dist inet_tls -ssl_dist_optfile " +
                      (folder / "inet_tls.conf").string() + " -start_epmd false -erl_epmd_port " +
                      std::to_string(fleet->distribution_port) + " -dist_listen false";
  if (!hosts.empty()) flags += " -kernel inetrc '\"" + (folder / "inetrc").string() + "\"'";
  const std::string name = (long_names ? "name " : "sname ") + node;
  const std::string cookie = "\"$(cat " + (folder / "cookie").string() + ")\"";
  context.print("erl -" + name + " -setcookie " + cookie + " " + flags + "\n");
  context.print("iex --" + name + " --cookie " + cookie + " --erl \"" +
                (hosts.empty() ? flags : flags.substr(0, flags.find(" -kernel"))) + "\"" +
                (hosts.empty() ? "" : "  # ERL_INETRC=" + (folder / "inetrc").string()) + "\n");
  context.note("then: Node.connect(:\"" + fleet->controller + "\")\n");
  return ExitCode::done;
}

}  // namespace zed::cli
