#pragma once
// The manual page, from the same grammar as the help. Pure.

#include <string>
#include <vector>

#include "cli/arguments.hpp"

namespace zed::cli {

/// zedctl(1) in the man macros.
std::string manual_page(const std::vector<CommandShape>& shapes, const std::string& version);

}  // namespace zed::cli
