#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/enum.hpp"
#include "base/text.hpp"
#include "plan/diff.hpp"

namespace zed::plan {
namespace {

NodeName node(std::string_view name) {
  return NodeName::parse(name).value();
}
DatasetName dataset(std::string_view name) {
  return DatasetName::parse(name).value();
}

bool contains(std::string_view declared, const Gpu& gpu) {
  return gpu.model.find(declared) != std::string::npos;
}

/// "kind subject: detail", "!" where it destroys.
std::string show(const std::vector<Change>& changes) {
  std::string text;
  for (const Change& change : changes)
    text += std::string(change.destroys ? "!" : "") + std::string(to_string(change.kind)) + " " +
            change.subject + ": " + change.detail + "\n";
  return text;
}
std::string show(const Cluster* applied, const Cluster& next, const FleetView& view = {}) {
  return show(diff(applied, next, view, contains));
}

/// The vision's cluster file.
Cluster vision() {
  Cluster cluster;
  cluster.name = "gpu_cluster";
  cluster.pool = "tank";
  DeclaredModel model;
  model.name = ModelName("llama70b");
  model.dataset = dataset("models/llama-70b");
  model.version = "2.1";
  model.requirement = *Requirement::parse("vram:48");
  cluster.models.push_back(model);
  Job job;
  job.name = JobName("finetune");
  job.model = model.name;
  job.dataset = dataset("jobs/finetune-001");
  job.checkpoint_policy = {CheckpointPolicy::Unit::epochs, 1, {}};
  job.prefer = {{Wish::Kind::gpu, "A100"}};
  cluster.jobs.push_back(job);
  ReplicationPolicy policy;
  policy.name = "models";
  policy.selector = dataset("models");
  policy.source = node("server");
  policy.targets = {node("workstation"), node("macbook")};
  policy.filter = "size_gb < 20";
  cluster.policies.push_back(policy);
  return cluster;
}

FleetView holding(std::string_view on, std::string_view name) {
  FleetView view;
  Dataset held;
  held.name = dataset(name);
  held.snapshots.emplace_back();
  view.datasets[node(on)].emplace(held.name, held);
  return view;
}

TEST(Diff, EverythingIsNewTheFirstTime) {
  EXPECT_EQ(show(nullptr, vision()),
            "add model llama70b: dataset models/llama-70b; version 2.1; requires vram:48\n"
            "add job finetune: model llama70b; dataset jobs/finetune-001; prefer [gpu A100]; "
            "checkpoint_every 1 epoch\n"
            "add replicate models: of models; from server; to [workstation, macbook]; "
            "filter size_gb < 20\n");
}

/// In the file's own words, so that a line can be found again in it.
TEST(Diff, SpeaksTheWordsOfTheFile) {
  Cluster cluster;
  DeclaredNode& server = cluster.nodes.emplace_back();
  server.name = node("server");
  server.gpus = {{"A100", MemorySize{MemorySize::Kind::nominal_gb, 80}, false, 2},
                 {"M3 Max", MemorySize{MemorySize::Kind::nominal_gb, 64}, true, 1}};
  server.dataset_roots = {dataset("models")};
  Job& job = cluster.jobs.emplace_back();
  job.name = JobName("prep");
  job.argv = {"make"};
  job.setup = "pip install x";
  job.setup_timeout = minutes(30);
  job.checkpoint_policy = {CheckpointPolicy::Unit::time, 0, minutes(10)};
  job.requirement.gpus = 2;
  const std::string note = "note node server: declared, has not joined yet\n";
  EXPECT_EQ(show(nullptr, cluster),
            "add node server: gpu 2x A100 80 GB, M3 Max 64 GB unified; dataset [models]\n"
            "add job prep: run [make]; setup pip install x; setup timeout 30 min; requires gpus:2; "
            "checkpoint_every 10 min\n" +
                note);
  Cluster later = cluster;
  later.pool = "tank";
  EXPECT_EQ(show(&cluster, later), "change fleet : pool none -> tank\n" + note);
  later = cluster;
  later.jobs[0].checkpoint_policy = {CheckpointPolicy::Unit::steps, 500, {}};
  EXPECT_EQ(show(&cluster, later),
            "change job prep: checkpoint_every 10 min -> 500 steps\n" + note);
  later = cluster;
  later.jobs[0].checkpoint_policy = {};
  EXPECT_EQ(show(&cluster, later),
            "change job prep: checkpoint_every 10 min -> only when it asks\n" + note);
}

TEST(Diff, NothingChangesNothing) {
  Cluster cluster = vision();
  EXPECT_EQ(show(&cluster, cluster), "");
}

TEST(Diff, EachFieldThatDiffersIsALine) {
  Cluster before = vision();
  Cluster after = before;
  after.pool = "nvme";
  after.models[0].version = "2.2";
  after.models[0].dataset = dataset("models/llama-3");
  after.jobs[0].priority = 10;
  after.jobs[0].timeout = minutes(90);
  after.jobs[0].prefer.push_back({Wish::Kind::node, "server"});
  after.policies[0].max_rate = mebibytes(200);
  after.policies[0].targets.pop_back();
  EXPECT_EQ(show(&before, after),
            "change fleet gpu_cluster: pool tank -> nvme\n"
            "change model llama70b: dataset models/llama-70b -> models/llama-3; models/llama-70b "
            "stays where it is\n"
            "change model llama70b: version 2.1 -> 2.2\n"
            "change job finetune: prefer [gpu A100] -> [gpu A100, node server]\n"
            "change job finetune: priority 0 -> 10\n"
            "change job finetune: timeout none -> 1 h 30 min\n"
            "change replicate models: to [workstation, macbook] -> [workstation]\n"
            "change replicate models: max_rate none -> 200 MiB/s\n");
}

TEST(Diff, ATighterKeepIsFlaggedAsDestroying) {
  Cluster before = vision();
  Cluster after = before;
  after.jobs[0].retention.last = 10;
  after.jobs[0].retention.best = 3;
  EXPECT_EQ(show(&before, after),
            "!change job finetune: keep all -> last 10, best 3 by min loss; checkpoints that "
            "it does not keep are destroyed\n");
  EXPECT_EQ(show(&after, before), "change job finetune: keep last 10, best 3 by min loss -> all\n");
  auto first = diff(nullptr, after, holding("server", "jobs/finetune-001"), contains);
  EXPECT_TRUE(first[1].destroys) << "its checkpoints are there already";
  EXPECT_FALSE(diff(nullptr, after, {}, contains)[1].destroys);
}

TEST(Diff, RemovingADeclarationKeepsTheData) {
  Cluster before = vision();
  before.nodes.emplace_back().name = node("server");
  Cluster empty;
  empty.name = before.name;
  empty.pool = before.pool;
  FleetView view = holding("server", "jobs/finetune-001");
  Attempt attempt;
  attempt.dataset = dataset("jobs/finetune-001");
  view.attempts[node("server")].push_back(attempt);
  EXPECT_EQ(show(&before, empty, view),
            "remove node server: no longer declared; it never joined\n"
            "remove model llama70b: no longer declared; nothing of it is stored\n"
            "remove job finetune: no longer declared; jobs/finetune-001 stays on server; its "
            "attempt on server goes on\n"
            "remove replicate models: no longer replicated; the copies on workstation, macbook "
            "stay\n");
  for (const Change& change : diff(&before, empty, view, contains))
    EXPECT_FALSE(change.destroys);
}

Gpu gpu(std::string model, std::int64_t gb) {
  Gpu made;
  made.model = std::move(model);
  made.vram_reported = gibibytes(gb);
  made.vram_nominal_gb = gb;
  return made;
}

struct HardwareCase {
  std::vector<DeclaredGpu> declared;
  std::vector<Gpu> detected;
  const char* notes;
};

TEST(HardwareNotes, DeclaredAgainstDetected) {
  auto gb = [](std::int64_t n) { return MemorySize{MemorySize::Kind::nominal_gb, n}; };
  Gpu a100 = gpu("NVIDIA A100-SXM4-80GB", 80);
  Gpu mac = gpu("Apple M3 Max", 48);
  mac.memory_kind = MemoryKind::unified;
  mac.vram_nominal_gb.reset();
  const HardwareCase cases[] = {
      {{{"A100", gb(80), false, 2}}, {a100, a100}, ""},
      {{{"A100", gb(80), false, 2}},
       {a100},
       "note node n: declares 2x A100 80 GB; detected NVIDIA A100-SXM4-80GB 80 GB\n"},
      {{{"A100", gb(40), false, 1}},
       {a100},
       "note node n: declares A100 40 GB; detected NVIDIA A100-SXM4-80GB 80 GB\n"},
      {{{"RTX 4090", gb(24), false, 1}},
       {},
       "note node n: declares RTX 4090 24 GB; detected none\n"},
      {{{"A100", gb(80), false, 1}},
       {a100, a100},
       "note node n: detected and not declared: NVIDIA A100-SXM4-80GB 80 GB\n"},
      {{}, {a100}, ""},
      // The vision declares the machine's memory; a GPU may use a part of it.
      {{{"M3 Max", gb(64), true, 1}}, {mac}, ""},
      {{{"M3 Max", gb(128), true, 1}},
       {mac},
       "note node n: declares M3 Max 128 GB unified; detected Apple M3 Max 48.0 GiB\n"},
      {{{"A100", {}, true, 1}},
       {a100},
       "note node n: declares A100 unified; detected NVIDIA A100-SXM4-80GB 80 GB\n"},
  };
  for (const HardwareCase& c : cases) {
    DeclaredNode declared;
    declared.name = node("n");
    declared.gpus = c.declared;
    Node detected;
    detected.name = declared.name;
    detected.facts.memory = gibibytes(64);
    detected.gpus = c.detected;
    EXPECT_EQ(show(hardware_notes(declared, detected, contains)), c.notes);
    EXPECT_EQ(show(hardware_notes(declared, detected)), c.notes);
  }
}

TEST(HardwareNotes, PoolAndStoreAreComparedToo) {
  DeclaredNode declared;
  declared.name = node("n");
  declared.pool = "tank";
  declared.store = StoreKind::zfs;
  Node detected;
  detected.facts.pool = "nvme";
  detected.facts.store = StoreKind::dir;
  EXPECT_EQ(show(hardware_notes(declared, detected)),
            "note node n: declares pool tank; its agent serves pool nvme\n"
            "note node n: declares store zfs; its agent has store dir\n");
  detected.facts.pool = "tank";
  detected.facts.store = StoreKind::zfs;
  EXPECT_EQ(show(hardware_notes(declared, detected)), "");
}

TEST(HardwareNotes, AnA10IsNoA100) {
  DeclaredNode declared;
  declared.gpus = {{"A10", {}, false, 1}};
  Node detected;
  detected.gpus = {gpu("NVIDIA A100-SXM4-80GB", 80)};
  EXPECT_EQ(hardware_notes(declared, detected).size(), 1u);
}

TEST(Diff, NotesWhoIsMissingAndWhoCameByItself) {
  Cluster cluster;
  cluster.nodes.emplace_back().name = node("server");
  FleetView view;
  view.nodes[node("laptop")].name = node("laptop");
  EXPECT_EQ(show(&cluster, cluster, view), "note node server: declared, has not joined yet\n"
                                           "note node laptop: joined, is not declared\n");
}

/// What a node holds, by their names.
void holds(FleetView& view, std::string_view on, const std::vector<std::string>& names) {
  auto& held = view.datasets[node(on)];
  for (const std::string& name : names)
    held[dataset(name)].name = dataset(name);
}

Cluster replicating(const std::string& name) {
  Cluster cluster;
  ReplicationPolicy& policy = cluster.policies.emplace_back();
  policy.name = name;
  policy.selector = dataset(name);
  policy.source = node("server");
  policy.targets = {node("laptop")};
  return cluster;
}

TEST(Diff, NotesAPolicyThatSelectsNothing) {
  const Cluster cluster = replicating("three");
  const std::string nothing = "note replicate three: selects nothing: server has no dataset three "
                              "or under it, and none is declared";
  FleetView view;
  EXPECT_EQ(show(&cluster, cluster, view), "") << "what a source has that is away is not known";
  holds(view, "server", {"models", "models/one"});
  EXPECT_EQ(show(&cluster, cluster, view), nothing + "\n");
  holds(view, "server", {"models/three"});
  EXPECT_EQ(show(&cluster, cluster, view),
            nothing + "; models/three is there: write `replicate :\"models/three\"`\n");
  holds(view, "laptop", {"three/a"});
  EXPECT_EQ(show(&cluster, cluster, view), nothing + "; it is on laptop\n");
  holds(view, "server", {"three/b"});
  EXPECT_EQ(show(&cluster, cluster, view), "");
}

TEST(Diff, ADeclaredModelIsSomethingToReplicate) {
  Cluster cluster = replicating("three");
  DeclaredModel& model = cluster.models.emplace_back();
  model.name = ModelName("three");
  model.dataset = dataset("models/three");
  FleetView view;
  holds(view, "server", {"models/one"});
  EXPECT_NE(show(&cluster, cluster, view), "") << "the prefix is not the model's dataset";
  cluster.policies[0].selects = ReplicationPolicy::Selects::model;
  cluster.policies[0].selector = model.dataset;
  EXPECT_EQ(show(&cluster, cluster, view), "");
}

TEST(MakePlan, NamesTheRevisionItWasMadeAgainst) {
  FleetView view;
  view.revision = 7;
  PlanStep step;
  step.why = "policy models";
  Plan plan = make_plan(nullptr, vision(), view, {step}, contains);
  EXPECT_EQ(plan.base_revision, 7u);
  EXPECT_EQ(plan.changes.size(), 3u);
  EXPECT_EQ(plan.steps, std::vector<PlanStep>{step});
}

// Two fleets have no difference exactly if they are equal; the job's identity is no declaration.
RC_GTEST_PROP(Diff, IsEmptyExactlyForEqualClusters, ()) {
  Cluster before = vision();
  Cluster after = before;
  auto flip = [] { return *rc::gen::inRange(0, 4) == 0; };
  if (flip()) after.jobs[0].copies = 2;
  if (flip()) after.jobs[0].env["A"] = "b";
  if (flip()) after.jobs[0].exclusive = true;
  if (flip()) after.models[0].file = "x.gguf";
  if (flip()) after.policies[0].every = minutes(5);
  if (flip()) after.data.emplace_back().dataset = dataset("datasets/x");
  if (flip()) after.jobs.pop_back();
  bool same = before == after;
  if (!after.jobs.empty()) after.jobs[0].id.bytes[0] = 9;
  RC_ASSERT(diff(&before, after, {}, contains).empty() == same);
}

}  // namespace
}  // namespace zed::plan
