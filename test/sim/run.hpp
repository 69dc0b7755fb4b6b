#pragma once
// One whole story of a fleet: faults for a while, then peace, then the question whether everything
// came right.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/faults.hpp"
#include "sim/planted.hpp"

namespace zed::sim {

struct Story {
  std::uint64_t seed = 1;
  std::size_t machines = 4;
  std::size_t jobs = 2;
  std::size_t controller_machine = 0;
  Planted planted = Planted::none;
  std::vector<Fault> faults;
  Millis trouble = seconds(120);  ///< how long faults may begin
  Millis peace = minutes(15);     ///< how long the fleet has afterwards
};

/// The story of a seed: its size and its faults.
Story story_of(std::uint64_t seed, Planted planted = Planted::none);

struct Ending {
  std::optional<std::string> violation;
  Instant at;
  std::uint64_t trace_hash = 0;
  std::uint64_t events = 0;
  std::size_t jobs_over = 0;  ///< succeeded
};

using TraceSink = std::function<void(const std::string&)>;

/// Plays it until an invariant breaks or all is over. Deterministic.
Ending play(const Story& story, const TraceSink& trace = nullptr);

/// The invariant that an ending names: the text up to the first colon.
std::string invariant_of(const Ending& ending);

/// Leaves out faults as long as the same invariant still breaks (delta debugging, Zeller 1999).
/// At most `tries` stories are played.
Story shrink(const Story& story, const std::string& invariant, std::size_t tries = 400);

}  // namespace zed::sim
