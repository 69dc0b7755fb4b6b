#pragma once
// The grammar of membership.hpp. Inside the room only: arguments.cpp has the rest.

#include <functional>
#include <string>

#include "cli/invocation.hpp"

namespace CLI {
class App;
}

namespace zed::cli {

class MembershipArguments {
public:
  using Add = std::function<CLI::App*(CLI::App& parent, const std::string& name,
                                      const std::string& help, std::function<Command()> make)>;
  /// The options write into this object, which must stay where it is.
  void add_to(CLI::App& app, const Add& add);

private:
  void add_tokens(CLI::App& app, const Add& add);

  LoginCommand login_;
  ContextCommand context_;
  CreateTokenCommand token_;
  ForgetNodeCommand forget_;
  std::string role_ = "agent";
};

}  // namespace zed::cli
