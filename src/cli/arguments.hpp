#pragma once
// The command line's grammar, and what shell completion needs to know of it.

#include <string>
#include <variant>
#include <vector>

#include "cli/invocation.hpp"

namespace zed::cli {

/// Nothing to carry out: help that was asked for (status 0), or a usage error (status 1).
struct Said {
  int status = 0;
  std::string text;
};

/// `arguments` without the program's name.
std::variant<Invocation, Said> read_arguments(const std::vector<std::string>& arguments);

/// One command as completion sees it.
struct CommandShape {
  std::string path;  ///< "model add"
  std::string help;
  std::vector<std::string> options;      ///< "--json", "-o"
  std::vector<std::string> positionals;  ///< "JOB", "NODE", "FILE", "JOB@CHECKPOINT", "SHELL"
};
/// All commands, in the order of the help.
std::vector<CommandShape> command_shapes();

}  // namespace zed::cli
