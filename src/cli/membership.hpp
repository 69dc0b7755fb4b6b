#pragma once
// The commands of a fleet's membership, read: plain data like those of invocation.hpp, which
// includes this.

#include <string>

#include "api/operations.hpp"

namespace zed::cli {

struct LoginCommand {
  std::string controller;  ///< HOST or HOST:PORT
  std::string token;
  std::string token_file;
  std::string name;  ///< of the context; empty: the controller's
};
struct ContextCommand {
  std::string name;    ///< to switch to; empty: list
  bool leave = false;  ///< no context: the fleets of this machine again
};
struct CreateTokenCommand {
  api::CreateToken request;
  std::string expires;  ///< "30m", "24h", "7d"
};
struct ListTokensCommand {};
struct ForgetNodeCommand {
  api::ForgetNode request;
};
struct ShellConfigCommand {};

}  // namespace zed::cli
