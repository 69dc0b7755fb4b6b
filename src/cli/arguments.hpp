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
  std::optional<Error> mistake = {};  ///< of a usage error: what `text` says, for --json
};

/// `arguments` without the program's name.
std::variant<Invocation, Said> read_arguments(const std::vector<std::string>& arguments);

/// An option for people: "-r,--requires" KEY=VALUE and what it is for.
struct OptionShape {
  std::vector<std::string> names;  ///< "-r", "--requires"
  std::string value;               ///< "KEY=VALUE"; empty: a flag
  std::string help;
};

/// One command as completion and the manual page see it.
struct CommandShape {
  std::string path;  ///< "model add"
  std::string help;
  std::vector<std::string> options;      ///< "--json", "-o"
  std::vector<std::string> positionals;  ///< "JOB", "NODE", "FILE", "JOB@CHECKPOINT", "SHELL"
  std::vector<OptionShape> described;    ///< the same options
};
/// All commands, in the order of the help.
std::vector<CommandShape> command_shapes();

}  // namespace zed::cli
