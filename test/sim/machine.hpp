#pragma once
// One simulated machine: its hardware, its disk and the agent that may run on it.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/fleet.hpp"
#include "sim/disk.hpp"

namespace zed::sim {

class SimAgent;
class Schedule;

struct Machine {
  explicit Machine(std::uint64_t seed) : disk(seed) {}

  std::size_t index = 0;
  NodeName name;
  NodeId id;
  NodeFacts facts;
  std::vector<Gpu> gpus;

  Disk disk;
  bool up = true;
  bool disk_lost = false;            ///< for good
  bool slow = false;                 ///< its store takes a hundred times as long
  std::int64_t clock_offset_ms = 0;  ///< of the monotonic clock; another after each boot
  std::int64_t wall_offset_ms = 0;   ///< jumps when somebody sets the clock
  std::shared_ptr<SimAgent> agent;   ///< none while it is dead
  const Schedule* schedule = nullptr;

  Instant monotonic() const;
  WallTime wall() const;
  Now now() const { return {monotonic(), wall()}; }
  /// Attempts whose processes are there.
  std::vector<std::shared_ptr<SimJob>> live_jobs() const;
};

}  // namespace zed::sim
