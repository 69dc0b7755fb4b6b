#pragma once
// What macOS and FreeBSD have in common.

#include <string>

#include "bin/machine.hpp"

namespace zed::bin {

/// A text of sysctl(3), as a fact; empty if there is none of that name.
std::string sysctl_word(const char* name);

}  // namespace zed::bin
