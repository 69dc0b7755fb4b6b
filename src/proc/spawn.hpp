#pragma once
// Starting a program that is to outlive its parent.

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "net/fd.hpp"

namespace zed::proc {

/// Starts `program` in a session of its own, as nobody's child (init reaps it), with standard input
/// from /dev/null, standard output and error appended to `log`, and `inherited` on descriptor 3.
/// Errors: those of fork and exec, in words.
Status spawn_detached(const std::filesystem::path& program, std::vector<std::string> arguments,
                      const net::Fd& inherited, const std::filesystem::path& log);

}  // namespace zed::proc
