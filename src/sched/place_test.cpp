#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/text.hpp"
#include "sched/index.hpp"
#include "sched/place.hpp"
#include "sched/testing.hpp"

namespace zed::sched {
namespace {

using testing::fleet_of;
using testing::job;
using testing::run;
using testing::show;

/// The exhaustive answer, checked against the index on the way.
std::string placed(const FleetView& fleet, const PlaceRequest& request) {
  std::string exhaustive = show(place(fleet, request));
  EXPECT_EQ(show(place(Index(fleet), request)), exhaustive);
  return exhaustive;
}
std::string placed(const FleetView& fleet, std::string_view text) {
  return placed(fleet, job(text, fleet));
}

TEST(Place, GoesWhereTheDataIs) {
  auto fleet = fleet_of("a: A100/80; b: A100/80 has llama70b");
  EXPECT_EQ(show(place(fleet, job("llama70b vram=48", fleet))), "b/gpu0");
  EXPECT_EQ(placed(fleet, "vram=48"), "a/gpu0");
}

struct PlaceCase {
  const char* why;
  const char* fleet;
  const char* job;
  const char* where;
};
const PlaceCase place_cases[] = {
    // The four machines of the vision.
    {"70b needs 48", "laptop: RTX_3080/10; mac: M3_Max/48u; server: 2xA100/80; ws: RTX_4090/24",
     "vram=48 prefer=gpu:A100", "server/gpu0"},
    {"unified memory counts as usable", "laptop: RTX_3080/10; mac: M3_Max/48u; ws: RTX_4090/24",
     "vram=48", "mac/gpu0"},
    // Preference: lexicographic, never a sum, never a constraint (nomad#25621, kubernetes#99630).
    {"a wish outweighs data and fit", "a: A100/80; b: RTX_4090/24 has m",
     "m vram=20 prefer=gpu:A100", "a/gpu0"},
    {"ranked", "a: RTX_3090/24; b: RTX_4090/24", "prefer=gpu:A100,gpu:RTX_4090,gpu:RTX_3090",
     "b/gpu0"},
    {"fallback comes after prefer", "a: RTX_4090/24; b: L4/24",
     "prefer=gpu:A100 fallback=gpu:L4,gpu:RTX_4090", "b/gpu0"},
    {"the preferred host is down (marathon#1174)", "a: A100/80; b: A100/80 lost",
     "vram=48 prefer=node:b", "a/gpu0"},
    {"the preferred GPU is nowhere", "a: RTX_4090/24", "vram=24 prefer=gpu:H100", "a/gpu0"},
    {"a node by its Erlang name", "a: A100/80; b: A100/80", "vram=48 prefer=node:zed@b", "b/gpu0"},
    {"a label", "a: A100/80; b: A100/80 label fast-disk", "vram=48 prefer=label:fast-disk",
     "b/gpu0"},
    {"an unlike GPU does not please the wish", "a: RTX_4090_Laptop_GPU/16; b: RTX_4090/24",
     "vram=16 prefer=gpu:rtx4090", "b/gpu0"},
    {"the wish picks the card within a node", "a: RTX_3080/10 RTX_4090/24",
     "vram=8 prefer=gpu:RTX_4090", "a/gpu1"},
    // Names (skypilot#9818, #2354).
    {"80 GB is not 40", "a: NVIDIA_A100-SXM4-40GB/40; b: NVIDIA_A100-SXM4-80GB/80", "gpu=A100-80GB",
     "b/gpu0"},
    {"a typo matches nothing", "a: A100/80", "gpu=A1000", "nowhere"},
    // Strangers (gpustack#6044, #3034).
    {"a card that others use is no whole card", "a: A100/80+20; b: A100/80", "vram=48", "b/gpu0"},
    {"a desktop's few hundred MiB are", "a: RTX_4090/24+1", "vram=24", "a/gpu0"},
    {"more than a tenth is too much", "a: RTX_4090/24+3", "vram=24", "nowhere"},
    {"a shared job counts what is left", "a: A100/80+70", "vram=12GiB share=true", "nowhere"},
    {"and fits if enough is", "a: A100/80+60", "vram=12GiB share=true", "a/gpu0"},
    // Broken GPUs (k8s-device-plugin#2038).
    {"one lost GPU does not block the other", "a: A100/80~ A100/80", "vram=48", "a/gpu1"},
    {"a held GPU is skipped", "a: A100/80! A100/80", "vram=48", "a/gpu1"},
    // Fit.
    {"the least leftover", "a: A100/80; b: RTX_4090/24; c: A6000/48", "vram=20", "b/gpu0"},
    {"then the least fragmentation", "a: 4xA100/80; b: A100/80", "vram=48", "b/gpu0"},
    {"then the name", "b: A100/80; a: A100/80", "vram=48", "a/gpu0"},
    {"one NUMA node", "a: A100/80@0 A100/80@1 A100/80@1 A100/80@0!", "gpus=2 vram=40",
     "a/gpu1+gpu2"},
    {"the tighter NUMA node", "a: A100/80@0 A100/80@0 A100/80@0 A100/80@1 A100/80@1",
     "gpus=2 vram=40", "a/gpu3+gpu4"},
    {"an island before a NUMA node", "a: A100/80@0 A100/80@0%1 A100/80@1%1 A100/80@1",
     "gpus=2 vram=40", "a/gpu1+gpu2"},
    {"the node whose GPUs are joined", "a: A100/80 A100/80; b: A100/80%0 A100/80%0",
     "gpus=2 vram=40", "b/gpu0+gpu1"},
    {"one alone leaves the island whole", "a: A100/80%0 A100/80%0 A100/80", "vram=40", "a/gpu2"},
    {"across islands if it must be", "a: A100/80%0 A100/80%0 A100/80%1 A100/80%1", "gpus=3 vram=40",
     "a/gpu0+gpu1+gpu2"},
    {"across NUMA nodes if it must be", "a: A100/80@0 A100/80@1", "gpus=2 vram=40", "a/gpu0+gpu1"},
    {"one model rather than a mixed set", "a: RTX_3080/10 2xRTX_4090/24", "gpus=2", "a/gpu1+gpu2"},
    {"a mixed set if nothing else", "a: RTX_3080/10 RTX_4090/24", "gpus=2", "a/gpu0+gpu1"},
    {"never of two vendors", "a: RTX_4090/24 RX_7900_XTX/24", "gpus=2", "nowhere"},
    {"vram_total takes the fewest", "a: 4xA100/80", "vram_total=160", "a/gpu0+gpu1"},
    {"the largest make the fewest", "a: 2xRTX_4090/24 A100/80", "vram_total=96", "a/gpu0+gpu2"},
    {"vram_total over one vendor only", "a: RTX_4090/24 RX_7900_XTX/24", "vram_total=48",
     "nowhere"},
    {"gpus and vram_total together", "a: 4xRTX_4090/24; b: 2xA100/80", "gpus=2 vram_total=100",
     "b/gpu0+gpu1"},
    {"no GPU key: no GPU", "a: A100/80; b:", "os=linux", "b"},
    {"gpus: 0 with a GPU wish", "a: A100/80; b:", "gpus=0 prefer=gpu:A100", "b"},
    {"work without GPUs is spread", "a: 2xA100/80!; b: 2xA100/80", "ram=8", "b"},
    // Nodes.
    {"suspect takes nothing new", "a: A100/80 suspect; b: A100/80", "vram=48", "b/gpu0"},
    {"cordoned", "a: A100/80 cordoned", "vram=48", "nowhere"},
    {"draining", "a: A100/80 draining", "vram=48", "nowhere"},
    {"a replication-only agent", "a: A100/80 norun", "vram=48", "nowhere"},
    {"declared roots", "a: A100/80 root models; b: A100/80 root models root jobs", "vram=48",
     "b/gpu0"},
    {"no room for the data", "a: A100/80 free 50; b: A100/80 has m", "m vram=48", "b/gpu0"},
    {"disk", "a: A100/80 free 50", "vram=48 disk=60GiB", "nowhere"},
    {"RAM sold as 64 GB", "a: A100/80 ram 62", "vram=48 memory=64", "a/gpu0"},
    {"RAM in GiB is exact", "a: A100/80 ram 62", "vram=48 memory=64GiB", "nowhere"},
    {"one pool of memory, counted once", "a: M3_Max/48u ram 64", "vram=48 memory=32", "nowhere"},
    {"both fit into it", "a: M3_Max/48u ram 64", "vram=32 memory=16", "a/gpu0"},
    {"--on is hard", "a: A100/80; b: RTX_4090/24", "vram=48 only=b", "nowhere"},
    {"--on an unknown node", "a: A100/80", "vram=48 only=zz", "nowhere"},
    {"no nodes", "", "vram=48", "nowhere"},
};

TEST(Place, Table) {
  for (const PlaceCase& c : place_cases) {
    std::string text(c.job);
    if (std::size_t at = text.find("ram=8"); at == 0) text = "memory=8";
    EXPECT_EQ(placed(fleet_of(c.fleet), text), c.where) << c.why;
  }
}

TEST(Place, SaysWhy) {
  auto fleet = fleet_of("a: A100/80 has m; b: RTX_4090/24");
  auto why = [&](std::string_view text) {
    return std::get<Placement>(place(fleet, job(text, fleet))).why;
  };
  EXPECT_EQ(why("m vram=48 prefer=gpu:A100"),
            "prefer gpu A100; data is there; leaves 32.0 GiB of VRAM unused");
  EXPECT_EQ(why("m vram=24 fallback=node:b"),
            "fallback node b; 100 GiB to move; leaves 0 B of VRAM unused");
  EXPECT_EQ(why("vram=24 prefer=gpu:H100"),
            "no preference could be met; leaves 0 B of VRAM unused");
}

// kueue#4474: nodes with 2, 1 and 1 GPUs; two jobs of one GPU, then one of two. All fit.
TEST(Place, SmallJobsLeaveRoomForTheLarge) {
  auto fleet = fleet_of("a: 2xA100/80; b: A100/80; c: A100/80");
  EXPECT_EQ(show(std::optional(run(fleet, job("gpus=1 id=1")))), "b/gpu0");
  EXPECT_EQ(show(std::optional(run(fleet, job("gpus=1 id=2")))), "c/gpu0");
  EXPECT_EQ(show(std::optional(run(fleet, job("gpus=2 id=3")))), "a/gpu0+gpu1");
}

FleetView one_l40s() {
  auto fleet = fleet_of("a: L40S/48");
  fleet.nodes.begin()->second.gpus[0].vram_reported = mebibytes(46068);
  return fleet;
}

// KAI#416: 24 x 2000 MiB on 46,068 MiB. The 24th must wait.
TEST(Place, SharedJobsNeverTakeMoreThanThereIs) {
  auto fleet = one_l40s();
  for (int i = 0; i < 23; ++i)
    run(fleet, job("vram=2000MiB share=true id=" + std::to_string(i)));
  EXPECT_EQ(placed(fleet, "vram=2000MiB share=true id=23"), "nowhere");
  EXPECT_EQ(placed(fleet, "vram=68MiB share=true id=24"), "a/gpu0");
  EXPECT_EQ(placed(fleet, "vram=69MiB share=true id=25"), "nowhere");
  EXPECT_EQ(placed(fleet, "vram=1 id=26"), "nowhere") << "a whole card is not free";
}

// KAI#2153: 16 jobs of half a GPU at once on 4 cards: 8 fit, two a card.
TEST(Place, HalfGpuJobsAtOnceDoNotOverpack) {
  auto fleet = fleet_of("a: 4xA100/80");
  Index index(fleet);
  std::map<std::string, int> on_gpu;
  int placed_jobs = 0;
  for (int i = 0; i < 16; ++i) {
    auto request = job("vram=40GiB share=true id=" + std::to_string(i));
    auto placement = place(index, request);
    if (!placement) continue;
    ++placed_jobs;
    ++on_gpu[placement->gpus.at(0)];
    index.reserve(reservation_of(request, *placement));
  }
  EXPECT_EQ(placed_jobs, 8);
  for (const auto& [gpu, count] : on_gpu)
    EXPECT_EQ(count, 2) << gpu;
}

TEST(Place, SharedJobsPackACardFullBeforeTheNext) {
  auto fleet = fleet_of("a: 2xA100/80");
  run(fleet, job("vram=20GiB share=true id=1"));
  EXPECT_EQ(placed(fleet, "vram=20GiB share=true id=2"), "a/gpu0");
  EXPECT_EQ(placed(fleet, "vram=80 id=3"), "a/gpu1");
}

// kubernetes#75880, #137534: one GPU, two jobs, between allocate and commit.
TEST(Place, AReservedGpuIsTakenUntilItsAttemptIsSeen) {
  auto fleet = fleet_of("a: A100/80");
  auto first = job("vram=48 id=1");
  auto second = job("vram=48 id=2");
  auto placement = std::get<Placement>(place(fleet, first));
  second.reservations.push_back({placement.node, first.job.id, placement.gpus, false, {}});
  EXPECT_EQ(placed(fleet, second), "nowhere");
  // The attempt appears: it and its reservation are one.
  auto shared = one_l40s();
  auto half = job("vram=22GiB share=true id=3");
  auto where = run(shared, half);
  auto other = job("vram=22GiB share=true id=4");
  other.reservations.push_back({where.node, half.job.id, where.gpus, true, gibibytes(22)});
  EXPECT_EQ(placed(shared, other), "a/gpu0");
}

TEST(Place, AnEndedAttemptHoldsNothing) {
  auto fleet = fleet_of("a: A100/80");
  run(fleet, job("vram=48 id=1"));
  fleet.attempts.begin()->second[0].phase = AttemptPhase::closing;
  EXPECT_EQ(placed(fleet, "vram=48"), "nowhere");
  fleet.attempts.begin()->second[0].phase = AttemptPhase::ended;
  EXPECT_EQ(placed(fleet, "vram=48"), "a/gpu0");
}

TEST(Place, ExclusionsAreHard) {
  auto fleet = fleet_of("a: A100/80; b: A100/80");
  auto request = job("vram=48 prefer=node:a");
  request.exclusions.push_back({testing::node("a"), "it failed to start there 3 times", true});
  EXPECT_EQ(placed(fleet, request), "b/gpu0");
}

TEST(Place, AProcessSeesOneMigInstanceOnly) {
  auto fleet = fleet_of("a: 4xA100/20");
  for (Gpu& gpu : fleet.nodes.begin()->second.gpus)
    gpu.mig_parent = "GPU-1";
  EXPECT_EQ(placed(fleet, "vram=20"), "a/gpu0");
  EXPECT_EQ(placed(fleet, "gpus=2 vram=10"), "nowhere");
  EXPECT_EQ(placed(fleet, "vram_total=40"), "nowhere");
}

TEST(Place, VersionsAreNumbersNotText) {
  auto fleet = fleet_of("a: A100/80");
  Gpu& gpu = fleet.nodes.begin()->second.gpus[0];
  gpu.driver = "550.54.15";
  gpu.cuda = "12.4";
  gpu.arch = "8.0";
  EXPECT_EQ(placed(fleet, "driver=535"), "a/gpu0");
  EXPECT_EQ(placed(fleet, "driver=550.100"), "nowhere");
  EXPECT_EQ(placed(fleet, "cuda=12"), "a/gpu0");
  EXPECT_EQ(placed(fleet, "cuda=12.10"), "nowhere");
  EXPECT_EQ(placed(fleet, "arch=7.5"), "a/gpu0");
  EXPECT_EQ(placed(fleet, "arch=gfx1100|8.6"), "nowhere");
  gpu.arch = "gfx1100";
  EXPECT_EQ(placed(fleet, "arch=gfx1100|8.6"), "a/gpu0");
}

TEST(Place, HostileSizesDoNotOverflow) {
  auto fleet = fleet_of("a: 2xA100/80");
  for (const char* size : {"1073741824", "9223372036854775807B", "8388607TiB"})
    for (const char* key : {"vram=", "vram_total=", "memory=", "disk="})
      EXPECT_EQ(placed(fleet, "gpus=2 " + std::string(key) + size), "nowhere") << key << size;
  EXPECT_EQ(placed(fleet, "gpus=9223372036854775807"), "nowhere");
}

// --- properties -------------------------------------------------------------------------------

template <class T> T one_of(std::vector<T> items) {
  return *rc::gen::elementOf(std::move(items));
}

std::string some_gpu() {
  std::string text = one_of<std::string>({"", "2x", "3x"}) +
                     one_of<std::string>({"A100/80", "A100/40", "RTX_4090/24", "RTX_3080/10",
                                          "MI300X/192", "M3_Max/48u"});
  return text + one_of<std::string>({"", "", "@0", "@1", "%0", "@1%1", "+1", "+9"}) +
         one_of<std::string>({"", "", "", "!", "~"});
}

std::string some_node(int i) {
  std::string text = "n" + std::to_string(i) + ":";
  for (int gpus = *rc::gen::inRange(0, 4); gpus > 0; --gpus)
    text += " " + some_gpu();
  return text + one_of<std::string>({"", "", " has m", " root jobs", " root models"}) +
         one_of<std::string>({"", "", " label fast", " os macos"}) +
         one_of<std::string>({"", "", " free 90", " free 130", " ram 60"}) +
         one_of<std::string>({"", "", "", " lost", " suspect", " cordoned", " norun"});
}

FleetView some_fleet() {
  std::string text;
  for (int nodes = *rc::gen::inRange(0, 9), i = 0; i < nodes; ++i)
    text += some_node(i) + ";";
  RC_LOG() << text << std::endl;
  return fleet_of(text);
}

PlaceRequest some_job(const FleetView& fleet, int id) {
  std::string text = "id=" + std::to_string(id) +
                     one_of<std::string>({"", " vram=24", " vram=40GiB", " vram=8", " vram=48"}) +
                     one_of<std::string>({"", "", " gpus=2", " gpus=1", " gpus=0",
                                          " vram_total=100", " vram_total=48"}) +
                     one_of<std::string>({"", "", " gpu=A100", " gpu=A100*|MI300X"}) +
                     one_of<std::string>({"", "", " share=true"}) +
                     one_of<std::string>({"", "", " memory=48", " disk=100GiB", " labels=fast"}) +
                     one_of<std::string>({"", " m"}) +
                     one_of<std::string>({"", " prefer=gpu:A100", " prefer=node:n3,label:fast",
                                          " fallback=gpu:RTX_4090,node:n1"}) +
                     one_of<std::string>({"", "", "", " only=n2"});
  RC_LOG() << text << std::endl;
  PlaceRequest request = job(text, fleet);
  if (*rc::gen::inRange(0, 4) == 0)
    request.exclusions.push_back({testing::node("n1"), "it failed there", true});
  return request;
}

// The index, kept up by small changes, answers like the exhaustive search over the whole view.
RC_GTEST_PROP(Place, TheIndexAnswersLikeTheExhaustiveSearch, ()) {
  FleetView fleet = some_fleet();
  Index index(fleet);
  for (int i = 0; i < 6; ++i) {
    PlaceRequest request = some_job(fleet, i);
    auto indexed = place(index, request);
    auto exhaustive = place(fleet, request);
    RC_ASSERT(show(indexed) == show(exhaustive));
    if (!indexed) continue;
    RC_ASSERT(*indexed == std::get<Placement>(exhaustive));
    fleet.attempts[indexed->node].push_back(testing::attempt_of(request, *indexed));
    if (*rc::gen::inRange(0, 2) == 0) {
      index.update(fleet.nodes.at(indexed->node), fleet.attempts.at(indexed->node));
    } else {
      index.reserve(reservation_of(request, *indexed));
    }
  }
}

// What is placed satisfies every clause by the slow judge, and what is not is refused everywhere.
RC_GTEST_PROP(Place, PlacedExactlyWhereNoClauseFails, ()) {
  FleetView fleet = some_fleet();
  PlaceRequest request = some_job(fleet, 0);
  auto result = place(fleet, request);
  Rejection judged = explain(fleet, request);
  RC_ASSERT(judged.nodes.size() == fleet.nodes.size());
  bool any = false;
  for (const Refusal& refusal : judged.nodes) {
    any = any || refusal.shortfalls.empty();
    if (auto* placement = std::get_if<Placement>(&result);
        placement && refusal.node == placement->node)
      RC_ASSERT(refusal.shortfalls.empty());
  }
  RC_ASSERT(any == std::holds_alternative<Placement>(result));
}

// A preference never turns a job away, and never changes whether it fits.
RC_GTEST_PROP(Place, APreferenceNeverBlocks, ()) {
  FleetView fleet = some_fleet();
  PlaceRequest with = some_job(fleet, 0);
  PlaceRequest without = with;
  without.job.prefer.clear();
  without.job.fallback.clear();
  // A GPU wish by itself asks for one GPU; say it in words, so that only the wish differs.
  bool gpu_wish = false;
  for (const Preference& wishes : {with.job.prefer, with.job.fallback})
    for (const Wish& wish : wishes)
      gpu_wish = gpu_wish || wish.kind == Wish::Kind::gpu;
  if (gpu_wish && !with.job.requirement.gpus && !with.job.requirement.vram_total)
    with.job.requirement.gpus = without.job.requirement.gpus = 1;
  RC_ASSERT((show(place(fleet, with)) == "nowhere") == (show(place(fleet, without)) == "nowhere"));
}

// No sequence of placements holds a GPU twice or reserves more than there is.
RC_GTEST_PROP(Place, NoGpuIsGivenTwice, ()) {
  FleetView fleet = some_fleet();
  for (int i = 0; i < 12; ++i) {
    PlaceRequest request = some_job(fleet, i);
    auto result = place(fleet, request);
    if (auto* placement = std::get_if<Placement>(&result))
      fleet.attempts[placement->node].push_back(testing::attempt_of(request, *placement));
  }
  for (const auto& [name, node] : fleet.nodes)
    for (const Gpu& gpu : node.gpus) {
      int whole = 0;
      Bytes shared;
      for (const Attempt& attempt : fleet.attempts[name])
        for (const std::string& uuid : attempt.gpus) {
          if (uuid != gpu.uuid) continue;
          if (attempt.share)
            shared += attempt.vram;
          else
            ++whole;
        }
      RC_ASSERT(whole <= 1);
      RC_ASSERT(whole == 0 || shared == Bytes{});
      RC_ASSERT(shared == Bytes{} || shared + gpu.vram_strangers <= gpu.vram_reported);
    }
}

// Removing and changing nodes leaves nothing behind.
RC_GTEST_PROP(Place, TheIndexForgetsWhatIsGone, ()) {
  FleetView fleet = some_fleet();
  Index index(fleet);
  FleetView other = some_fleet();
  for (const auto& [name, node] : fleet.nodes)
    if (!other.nodes.contains(name)) index.remove(name);
  for (const auto& [name, node] : other.nodes)
    index.update(node, other.attempts[name]);
  PlaceRequest request = some_job(other, 0);
  index.reserve({testing::node("n0"), testing::job_id(7), {"n0/gpu0"}, false, {}});
  index.release(testing::job_id(7));
  RC_ASSERT(index.node_count() == other.nodes.size());
  RC_ASSERT(show(place(index, request)) == show(place(other, request)));
  Index copy = index;
  RC_ASSERT(show(place(copy, request)) == show(place(other, request)));
}

}  // namespace
}  // namespace zed::sched
