#include <gtest/gtest.h>

#include "base/text.hpp"
#include "sched/match.hpp"
#include "sched/place.hpp"
#include "sched/testing.hpp"

namespace zed::sched {
namespace {

using testing::fleet_of;
using testing::job;

/// "constraint: wanted W, has H [for now]" of each clause that fails on the first node.
std::string misses(const FleetView& fleet, const PlaceRequest& request) {
  const auto& [name, node] = *fleet.nodes.begin();
  auto attempts = fleet.attempts.find(name);
  auto result = match(request, node, attempts->second);
  if (auto* fit = std::get_if<Fit>(&result)) return "fits " + std::to_string(fit->count);
  std::vector<std::string> lines;
  for (const Shortfall& shortfall : std::get<1>(result))
    lines.push_back(shortfall.constraint + ": wanted " + shortfall.wanted + ", has " +
                    shortfall.had + (shortfall.for_now ? " [for now]" : ""));
  return join(lines, "\n");
}
std::string misses(const char* fleet, const char* text) {
  auto view = fleet_of(fleet);
  return misses(view, job(text, view));
}

struct MatchCase {
  const char* fleet;
  const char* job;
  const char* expected;
};
const MatchCase match_cases[] = {
    {"a: A100/80", "vram=48", "fits 1"},
    {"a: 4xA100/80", "vram_total=200", "fits 3"},
    {"a: A100/80", "os=linux", "fits 0"},
    {"a: RTX_3080/10", "vram=48", "vram: wanted 48 GB per GPU, has RTX 3080 with 10 GB"},
    {"a: RTX_3080/10", "vram=48GiB", "vram: wanted 48 GiB per GPU, has RTX 3080 with 10 GB"},
    {"a:", "vram=48", "gpus: wanted 1 GPU, has none"},
    {"a: A100/80", "gpus=2", "gpus: wanted 2 GPUs, has A100"},
    {"a: 2xRTX_3080/10", "gpu=A100", "gpu: wanted A100, has 2x RTX 3080"},
    {"a: A100/80 lost", "vram=48", "status: wanted up, has lost, silent for 0 ms [for now]"},
    {"a: A100/80 cordoned", "vram=48", "status: wanted up, has cordoned [for now]"},
    {"a: A100/80 norun", "vram=48",
     "permission: wanted an agent that may run jobs, has an agent for replication only"},
    {"a: A100/80 root models", "vram=48",
     "dataset: wanted a place for jobs/test, has one for models only"},
    // Its own dataset is among the inputs of a job that goes on: said once.
    {"a: A100/80 root models", "vram=48 jobs/test",
     "dataset: wanted a place for jobs/test, has one for models only"},
    {"a: A100/80 os macos", "os=linux|freebsd", "os: wanted linux or freebsd, has macos"},
    {"a: A100/80 label slow", "labels=fast", "labels: wanted fast, has slow"},
    {"a: A100/80 ram 16", "memory=64", "memory: wanted 64 GB of RAM, has 16.0 GiB"},
    {"a: A100/80 free 5", "disk=60GiB",
     "disk: wanted 60 GiB free in the pool, has 5.00 GiB free [for now]"},
    {"a: A100/80 free 5", "m", "disk: wanted 100 GiB for its data, has 5.00 GiB free [for now]"},
    {"a: A100/80", "vram=48 only=b", "node: wanted b, has a"},
    {"a: A100/80!", "vram=48", "gpus: wanted 1 GPU free, has A100 held by jobs/other [for now]"},
    {"a: A100/80~", "vram=48", "health: wanted 1 GPU in order, has A100 lost"},
    {"a: A100/80~ A100/80!", "vram=48",
     "health: wanted 1 GPU in order, has A100 lost [for now]\n"
     "gpus: wanted 1 GPU free, has A100 held by jobs/other [for now]"},
    {"a: A100/80+20", "vram=48",
     "strangers: wanted 1 GPU not used by others, has A100 with 20.0 GiB used by processes that "
     "are "
     "not Zed's [for now]"},
    {"a: RTX_4090/24 RX_7900_XTX/24", "vram_total=48",
     "vram_total: wanted 48 GB over GPUs of one vendor, has only RTX 4090 with 24 GB, RX 7900 XTX "
     "with 24 GB"},
    {"a: M3_Max/48u ram 64", "vram=48 memory=32",
     "memory: wanted 32 GB of RAM beside 48 GB for a GPU, has 64.0 GiB that both share"},
    // nomad#2620, dstack#4099: every clause, not the first.
    {"a: RTX_3080/10 os macos root models lost", "vram=48 gpu=A100 os=linux labels=x",
     "status: wanted up, has lost, silent for 0 ms [for now]\n"
     "dataset: wanted a place for jobs/test, has one for models only\n"
     "os: wanted linux, has macos\n"
     "labels: wanted x, has none\n"
     "vram: wanted 48 GB per GPU, has RTX 3080 with 10 GB\n"
     "gpu: wanted A100, has RTX 3080"},
};

TEST(Match, EveryFailedClauseInWords) {
  for (const MatchCase& c : match_cases)
    EXPECT_EQ(misses(c.fleet, c.job), c.expected) << c.fleet << " / " << c.job;
}

TEST(Match, ClausesThatPassAloneMustPassTogether) {
  EXPECT_EQ(misses("a: NVIDIA_A100-SXM4-40GB/40 RTX_6000_Ada/48", "vram=48 gpu=A100"),
            "gpus: wanted 1 GPU of one vendor with vram:48,gpu:A100, has no GPU passes every "
            "clause at once");
}

TEST(Match, NamesThoseWhoShareTheCard) {
  auto fleet = fleet_of("a: L4/24");
  for (int i = 0; i < 11; ++i)
    testing::run(fleet, job("vram=2GiB share=true id=" + std::to_string(i)));
  EXPECT_EQ(misses(fleet, job("vram=4GiB share=true")),
            "vram: wanted 4 GiB of 1 GPU free, has L4 held by jobs/test, jobs/test, "
            "jobs/test, 8 more [for now]");
}

TEST(Match, FleetReportSaysNowAndEver) {
  auto fleet = fleet_of("busy: A100/80!; free: 2xA100/80; small: RTX_3080/10");
  Requirement requirement = *Requirement::parse("vram:48");
  auto reports = match_fleet(fleet, requirement);
  ASSERT_EQ(reports.size(), 3u);
  EXPECT_FALSE(reports[0].now);
  EXPECT_TRUE(reports[0].ever);
  EXPECT_TRUE(reports[1].now);
  EXPECT_EQ(reports[1].gpus, (std::vector<std::string>{"free/gpu0", "free/gpu1"}));
  EXPECT_FALSE(reports[2].ever);
}

TEST(Explain, TheNearestNodeAndWhetherWaitingHelps) {
  auto fleet = fleet_of("a: RTX_3080/10; b: A6000/48; c: RTX_4090/24");
  Rejection rejection = explain(fleet, job("vram=80"));
  EXPECT_EQ(rejection.nearest.str(), "b");
  EXPECT_TRUE(rejection.is_impossible());
  auto busy = fleet_of("a: RTX_3080/10; b: A100/80!");
  rejection = explain(busy, job("vram=80"));
  EXPECT_EQ(rejection.nearest.str(), "b");
  EXPECT_FALSE(rejection.is_impossible());
}

TEST(Explain, NodesThatFailAlikeAreToldTogether) {
  std::string text;
  for (int i = 0; i < 5; ++i)
    text += "n" + std::to_string(i) + ": RTX_3080/10;";
  auto fleet = fleet_of(text + "z: A100/80!");
  EXPECT_EQ(show(explain(fleet, job("vram=48"))),
            "5 nodes: vram: wanted 48 GB per GPU, has RTX 3080 with 10 GB\n"
            "z: gpus: wanted 1 GPU free, has A100 held by jobs/other");
  EXPECT_EQ(show(Rejection{}), "there are no nodes");
}

}  // namespace
}  // namespace zed::sched
