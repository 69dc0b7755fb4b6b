#include "cli/membership_arguments.hpp"

#include <CLI/CLI.hpp>

namespace zed::cli {

void MembershipArguments::add_tokens(CLI::App& app, const Add& add) {
  auto* token = app.add_subcommand("token", "tokens by which machines and people join");
  token->require_subcommand(1);
  auto* create = add(*token, "create", "make a token, good once, for one name", [this] {
    token_.request.role = enum_of<api::TokenRole>(role_).value_or(api::TokenRole::viewer);
    return token_;
  });
  create->add_option("--node", token_.request.node, "the machine or person that it is for")
      ->required()
      ->type_name("NAME");
  create->add_option("--role", role_, "agent (a machine), operator or viewer (people)")
      ->check(CLI::IsMember({"agent", "operator", "viewer"}))
      ->type_name("ROLE");
  create->add_option("--expires", token_.expires, "30m, 24h, 7d (1h)")->type_name("TIME");
  add(*token, "list", "tokens that wait, and certificates that live",
      [] { return ListTokensCommand{}; });
  auto* node = app.add_subcommand("node", "machines as members of the fleet");
  node->require_subcommand(1);
  auto* forget =
      add(*node, "forget", "free a name and revoke its certificates", [this] { return forget_; });
  forget->add_option("NAME", forget_.request.node, "of a machine or a person")
      ->required()
      ->type_name("");
  forget->add_flag("--force", forget_.request.force, "although jobs have their home there");
}

void MembershipArguments::add_to(CLI::App& app, const Add& add) {
  add_tokens(app, add);
  auto* login = add(app, "login", "use a fleet from this machine", [this] { return login_; });
  login->add_option("CONTROLLER", login_.controller, "HOST or HOST:PORT (4372)")
      ->required()
      ->type_name("");
  auto* token =
      login
          ->add_option("--token", login_.token,
                       "made by zedctl token create; without one, a fleet that is known is at "
                       "CONTROLLER now")
          ->type_name("TOKEN");
  login->add_option("--token-file", login_.token_file, "a file that holds it")
      ->excludes(token)
      ->type_name("FILE");
  login->add_option("--as", login_.name, "what to call the fleet here")->type_name("NAME");
  auto* context = add(app, "context", "which fleet zedctl speaks to", [this] { return context_; });
  context->add_option("NAME", context_.name, "switch to it")->type_name("");
  context->add_flag("--leave", context_.leave, "back to the fleets of this machine");
  add(app, "shell-config", "what erl and iex need to join the fleet",
      [] { return ShellConfigCommand{}; });
}

}  // namespace zed::cli
