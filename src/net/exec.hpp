#pragma once
// What every fork, exec and posix_spawn of ours needs (spawn.hpp has the last).

#include <string>
#include <vector>

#include "base/result.hpp"
#include "net/fd.hpp"

extern "C" char** environ;  // POSIX leaves that to programs; macOS holds to it

namespace zed::net {

struct Pipe {
  Fd read;
  Fd write;
};

/// A pipe that no program we start inherits, unless an end is put onto a descriptor of it. Where
/// the system allows it (all but macOS) that holds at once: a child that another thread starts
/// meanwhile would hold the end that we wait for.
Result<Pipe> make_pipe();

/// argv or envp: pointers into `words`, which must outlive them, and a null after the last.
std::vector<char*> pointers_to(std::vector<std::string>& words);

}  // namespace zed::net
