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

/// The same for a program that leaves for the background by itself (leave_for_background()),
/// without a copy of this process: it is started directly, and waited for until it has left. Its
/// descriptors are those of spawn_detached().
Status spawn_leaving(const std::filesystem::path& program, std::vector<std::string> arguments,
                     const net::Fd& inherited, const std::filesystem::path& log);

/// Out of the session, the kill group and the care of whoever started this process: the rest runs
/// in a child of init. Errors: `io` if it cannot fork.
Status leave_for_background();

}  // namespace zed::proc
