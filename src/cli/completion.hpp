#pragma once
// Completion scripts, made from the grammar so that they never lag behind it. Live names (jobs,
// nodes, checkpoints) come from the hidden `zedctl complete-names KIND`.

#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/arguments.hpp"

namespace zed::cli {

/// Pure. Errors: `invalid` for a shell that is not bash, zsh or fish.
Result<std::string> completion_script(const std::string& shell,
                                      const std::vector<CommandShape>& shapes);

}  // namespace zed::cli
