#pragma once
// Inside the room, macOS and FreeBSD: descendants whose parent has ended. FreeBSD makes them ours
// again (a reaper), macOS gives them to launchd.

#include <vector>

#include "proc/process_table.hpp"

namespace zed::proc {

/// Those of all processes that descend from us though their parent is not one of us any more.
std::vector<ProcessEntry> orphans_among(const std::vector<ProcessEntry>& all);
/// Who is one of us now.
void remember_family(const std::vector<ProcessEntry>& family);

}  // namespace zed::proc
