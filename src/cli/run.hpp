#pragma once
// zedctl, but for main().

#include <string>
#include <vector>

#include "cli/context.hpp"

namespace zed::cli {

/// Carries out a command; errors are reported. The exit status.
ExitCode run(Context& context, const Command& command);

/// The whole program: `arguments` without its name.
int zedctl(const std::vector<std::string>& arguments);

}  // namespace zed::cli
