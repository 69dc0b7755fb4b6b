// zed_sim: plays seeds of the simulated fleet, replays one, shrinks a failing one.

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "sim/run.hpp"

namespace {

using namespace zed::sim;

struct Options {
  std::uint64_t seed = 0;
  std::string seeds;
  bool forever = false;
  bool trace = false;
  bool shrink = false;
  bool keep_going = false;
  std::string planted = "none";
};

void print_story(const Story& story) {
  fmt::print("seed {}: {} machines, {} jobs, {} faults\n", story.seed, story.machines, story.jobs,
             story.faults.size());
  for (const Fault& fault : story.faults)
    fmt::print("  {}\n", fault.str());
}

/// Whether the story went well; says so if not.
bool play_one(std::uint64_t seed, const Options& options, Planted planted) {
  Story story = story_of(seed, planted);
  TraceSink sink;
  if (options.trace && !options.shrink)
    sink = [](const std::string& line) { fmt::print("{}\n", line); };
  Ending ending = play(story, sink);
  if (options.seed != 0)
    fmt::print("seed {}: {} events, {:.1f} s virtual, {} of {} jobs succeeded, trace {:016x}\n",
               seed, ending.events, static_cast<double>(ending.at.ms) / 1000, ending.jobs_over,
               story.jobs, ending.trace_hash);
  if (!ending.violation) return true;
  fmt::print("FAILED seed {} at {:.3f} s: {}\n  replay: zed_sim --seed {} --trace{}\n", seed,
             static_cast<double>(ending.at.ms) / 1000, *ending.violation, seed,
             planted == Planted::none ? "" : " --planted " + options.planted);
  if (options.shrink) {
    story = shrink(story, invariant_of(ending));
    fmt::print("shrunk to:\n");
    print_story(story);
    if (options.trace) sink = [](const std::string& line) { fmt::print("{}\n", line); };
    ending = play(story, sink);
    fmt::print("  {}\n", ending.violation.value_or("nothing breaks any more"));
  }
  std::fflush(stdout);
  return false;
}

constexpr std::uint64_t seeds_by_default = 300;

/// "A..B", or what ZED_SIM_SEEDS says (slow builds play fewer), or the first 300.
std::optional<std::pair<std::uint64_t, std::uint64_t>> range_of(const std::string& text) {
  if (text.empty()) {
    const char* count = std::getenv("ZED_SIM_SEEDS");
    return std::pair{std::uint64_t{1},
                     count != nullptr ? std::strtoull(count, nullptr, 10) : seeds_by_default};
  }
  const std::size_t dots = text.find("..");
  if (dots == std::string::npos) return std::nullopt;
  return std::pair{std::strtoull(text.c_str(), nullptr, 10),
                   std::strtoull(text.c_str() + dots + 2, nullptr, 10)};
}

int play_range(std::uint64_t from, std::uint64_t to, const Options& options, Planted planted) {
  std::uint64_t failed = 0;
  std::uint64_t played = 0;
  for (std::uint64_t seed = from; seed <= to; ++seed) {
    ++played;
    if (play_one(seed, options, planted)) continue;
    ++failed;
    if (!options.keep_going) break;
  }
  fmt::print("{} seeds played, {} failed\n", played, failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Plays whole lives of a simulated fleet from seeds and checks its invariants."};
  app.add_option("--seed", options.seed, "play this one seed");
  app.add_option("--seeds", options.seeds,
                 "play a range: A..B (default: 1..$ZED_SIM_SEEDS, else 1..300)");
  app.add_flag("--forever", options.forever, "play seeds until one fails");
  app.add_flag("--trace", options.trace, "print what happens");
  app.add_flag("--shrink", options.shrink, "leave out faults that a failure does not need");
  app.add_flag("--keep-going", options.keep_going, "go on after a failure");
  app.add_option("--planted", options.planted, "plant this bug (the test of the test)");
  CLI11_PARSE(app, argc, argv);

  auto planted = zed::enum_of<Planted>(options.planted);
  if (!planted) {
    fmt::print(stderr, "zed_sim: no bug is called \"{}\"\n", options.planted);
    return 2;
  }
  if (options.seed != 0) return play_one(options.seed, options, *planted) ? 0 : 1;
  if (options.forever) return play_range(1, UINT64_MAX, options, *planted);
  const auto range = range_of(options.seeds);
  if (!range || range->first == 0 || range->second < range->first) {
    fmt::print(stderr, "zed_sim: a range is A..B (or ZED_SIM_SEEDS=B), with 0 < A <= B\n");
    return 2;
  }
  return play_range(range->first, range->second, options, *planted);
}
