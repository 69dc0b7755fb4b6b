// Operations of daily use, on the small fleet of testing.hpp.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/base64.hpp"
#include "base/json.hpp"
#include "controller/testing.hpp"

namespace zed::controller {
namespace {

using testing::FakeAgent;
using ::testing::HasSubstr;
using testing::World;
using Kind = ExitRecord::Kind;

const char* const cluster = R"(
deploy :lab, pool: "tank" do
  job :finetune do
    dataset "jobs/finetune-001"
    run ["train", "--lr", "0.1"]
    requires vram: 20
    prefer gpu: "A100"
    env LR: "0.1"
  end
end
)";

World lab() {
  World world("server: A100/80 x2; workstation: RTX 4090/24; laptop:", testing::node("server"));
  EXPECT_TRUE(world.apply(cluster));
  return world;
}

/// The job runs on server and has so many checkpoints.
World trained(int epochs) {
  World world = lab();
  EXPECT_TRUE(world.dispatch("finetune"));
  world.settle();
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    world.commits("finetune", "epoch-" + std::to_string(epoch));
    world.settle();
  }
  return world;
}

api::RunJob run_of(std::vector<std::string> argv, const std::string& name = "") {
  api::RunJob op;
  op.argv = std::move(argv);
  op.name = name;
  return op;
}

std::string job_name(const Value& reply) {
  return *reply.find("job")->find("name")->as_text();
}

template <class Reply> Reply read(const Value& value) {
  auto reply = from_value<Reply>(value);
  EXPECT_TRUE(reply) << reply.error().describe();
  return reply ? *reply : Reply{};
}

TEST(Run, ACommandBecomesAJobNamedByItsScript) {
  World world = lab();
  EXPECT_EQ(job_name(world.must(run_of({"python3", "-u", "src/Train_It.py", "--lr", "0.1"}))),
            "train_it");
  EXPECT_EQ(job_name(world.must(run_of({"python3", "train_it.py"}))), "train_it-2");
  EXPECT_EQ(job_name(world.must(run_of({"/usr/bin/nvidia-smi"}))), "nvidia-smi");
  world.settle();
  EXPECT_THAT(world.show("train_it"), HasSubstr("running on"));
  EXPECT_EQ(world.job("train_it").job.argv.size(), 5u);
}

TEST(Run, TheSameSubmitTwiceIsOneJob) {
  World world = lab();
  api::RunJob op = run_of({"train"});
  op.uuid = std::string(31, '0') + "7";
  EXPECT_EQ(job_name(world.must(op)), job_name(world.must(op)));
  EXPECT_EQ(world.live_attempts(), 1u);
}

TEST(Run, AFailureWithoutRetriesSpeaksOfNone) {
  World world = lab();
  world.must(run_of({"train"}, "mine"));
  world.exits("mine", Kind::exit_code);
  world.settle();
  EXPECT_EQ(world.job("mine").outcome->reason, "exit-code");
  world.dispatch("finetune").value();
  for (int attempt = 0; attempt < 4; ++attempt) {
    world.exits("finetune", Kind::exit_code);
    world.pass(minutes(10));
  }
  EXPECT_EQ(world.job("finetune").outcome->reason, "exit-code; 3 of 3 retries used");
}

TEST(Run, WhenItStartedIsKnownAfterItsEndAndNotWhileItWaits) {
  World world = lab();
  const auto started = [&world] {
    return from_value<api::JobsReply>(world.must(api::ListJobs{true}))->jobs.at(0).started;
  };
  world.must(run_of({"train"}, "mine"));
  world.settle();
  const WallTime began = started();
  EXPECT_GT(began.ms, 0);
  world.pass(minutes(1));
  world.exits("mine", Kind::exit_code);
  world.settle();
  EXPECT_EQ(started().ms, began.ms);
  api::Resume again;
  again.job = "mine";
  for (const char* node : {"server", "workstation", "laptop"})
    world.goes_silent(node);
  world.pass(minutes(1));
  ASSERT_TRUE(world.ask(again));
  EXPECT_EQ(started().ms, 0);
}

TEST(Run, ANameIsTakenWhileItsJobLives) {
  World world = lab();
  world.must(run_of({"train"}, "mine"));
  auto again = world.ask(run_of({"train"}, "mine"));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::refused);
  world.exits("mine", Kind::success);
  world.settle();
  world.must(run_of({"train"}, "mine"));
  EXPECT_EQ(world.job("mine").job.dataset.str(), "jobs/mine-002");
  auto declared = world.ask(run_of({"train"}, "finetune"));
  ASSERT_FALSE(declared);
  EXPECT_THAT(declared.error().hint, HasSubstr("zedctl dispatch finetune"));
}

TEST(Run, RefusesWhatNoJobCanBe) {
  World world = lab();
  EXPECT_EQ(world.ask(run_of({})).error().code, ErrorCode::invalid);
  for (const char* name : {"../x", "a/b", "-x", ".x", "a b", "a@b"})
    EXPECT_EQ(world.ask(run_of({"x"}, name)).error().code, ErrorCode::invalid) << name;
  for (const char* reserved : {"ZED_JOB", "CUDA_VISIBLE_DEVICES", "ZE_AFFINITY_MASK", "a=b", ""}) {
    api::RunJob op = run_of({"x"});
    op.env[reserved] = "7";
    EXPECT_EQ(world.ask(op).error().code, ErrorCode::invalid) << reserved;
  }
  api::RunJob misspelt = run_of({"x"});
  misspelt.prefer = {{Wish::Kind::gpu, "no such GPU yet"}, {Wish::Kind::node, "servr"}};
  EXPECT_THAT(world.ask(misspelt).error().describe(), HasSubstr("did you mean `server`?"));
  api::RunJob huge = run_of({"x"});
  huge.requirement = Requirement::parse("vram:500").value();
  EXPECT_EQ(world.ask(huge).error().code, ErrorCode::unplaceable);
  api::RunJob relative = run_of({"x"});
  relative.code = "code";
  EXPECT_EQ(world.ask(relative).error().code, ErrorCode::invalid);
  api::RunJob unknown = run_of({"x"});
  unknown.model = "nope";
  EXPECT_EQ(world.ask(unknown).error().code, ErrorCode::not_found);
}

TEST(Look, GpusNameTheirJobs) {
  World world = trained(1);
  auto reply = read<api::GpusReply>(world.must(api::ListGpus{}));
  ASSERT_EQ(reply.gpus.size(), 3u);
  std::size_t held = 0;
  for (const api::GpuRow& row : reply.gpus)
    held += row.jobs == std::vector<std::string>{"finetune"} ? 1 : 0;
  EXPECT_EQ(held, 1u);
}

TEST(Look, GpusTellHowBusyTheyAre) {
  World world = lab();
  GpuLoad load;
  load.at = WallTime{1000};
  load.utilization = 93;
  load.uuid = "GPU-server-0";
  world.say(world.agent("server"), Heartbeat{gibibytes(1000), gibibytes(200), {load}});
  auto reply = read<api::GpusReply>(world.must(api::ListGpus{}));
  std::size_t told = 0;
  for (const api::GpuRow& row : reply.gpus) {
    EXPECT_EQ(row.load.has_value(), row.gpu.uuid == "GPU-server-0") << row.gpu.uuid;
    if (!row.load) continue;
    ++told;
    EXPECT_EQ(row.load->utilization, 93);
    EXPECT_EQ(row.history.size(), 1u);
  }
  EXPECT_EQ(told, 1u);
}

TEST(Look, AGpusHealthIsNews) {
  World world = lab();
  std::vector<Gpu> gpus = world.agent("server").gpus;
  ASSERT_FALSE(gpus.empty());
  const auto news = [&world] {
    std::string text;
    for (const api::FleetEvent& event : world.events)
      if (event.kind == "gpu") text += event.subject + ": " + event.text + "\n";
    return text;
  };
  gpus[0].health = GpuHealth::reset_required;
  gpus[0].why = "XID 119";
  world.say(world.agent("server"), GpusChanged{gpus});
  world.say(world.agent("server"), GpusChanged{gpus});
  world.settle();
  const std::string who = "node server, " + gpus[0].model + " " + gpus[0].uuid + ": ";
  EXPECT_EQ(news(), who + "ok -> reset-required: XID 119\n");
  gpus[0].health = GpuHealth::ok;
  gpus[0].why.clear();
  world.say(world.agent("server"), GpusChanged{gpus});
  world.settle();
  EXPECT_EQ(news(), who + "ok -> reset-required: XID 119\n" + who + "reset-required -> ok\n");
}

TEST(Look, DatasetsHaveTheirCopies) {
  World world = trained(2);
  auto reply = read<api::DatasetsReply>(world.must(api::ListDatasets{"jobs", false}));
  ASSERT_EQ(reply.datasets.size(), 1u);
  EXPECT_EQ(reply.datasets[0].dataset, "jobs/finetune-001");
  EXPECT_EQ(reply.datasets[0].home, "server");
  EXPECT_EQ(reply.datasets[0].newest, "@epoch-2");
  EXPECT_EQ(reply.datasets[0].copies.size(), 2u);
  EXPECT_EQ(world.ask(api::ListDatasets{"nope", false}).error().code, ErrorCode::not_found);
}

TEST(Files, AreAskedOfWhoHasTheCheckpoint) {
  World world = trained(2);
  std::vector<NodeQuestion> asked;
  world.agent("server").answers = [&](const NodeQuestion& question) -> Result<NodeReply> {
    asked.push_back(question);
    return NodeReply(FilePiece{0, 3, "YWJj", ""});
  };
  auto reply =
      read<api::FileReply>(world.must(api::ReadFile{"finetune", "@epoch-1", "train.py", 0}));
  EXPECT_EQ(reply.data, "YWJj");
  EXPECT_EQ(reply.place.node, "server");
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(std::get<ReadFile>(asked[0]).snapshot, "epoch-1");
  world.must(api::ReadFile{"jobs/finetune-001", "", "train.py", 0});
  auto missing = world.ask(api::ReadFile{"finetune", "@epoch-9", "train.py", 0});
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
  EXPECT_EQ(world.ask(api::ReadFile{"nope", "", "x", 0}).error().code, ErrorCode::not_found);
}

TEST(Files, AnErrorOfTheNodeIsTheAnswer) {
  World world = trained(1);
  world.agent("server").answers = [](const NodeQuestion&) -> Result<NodeReply> {
    return fail(ErrorCode::not_found, "there is no train.py");
  };
  auto reply = world.ask(api::ReadFile{"finetune", "", "train.py", 0});
  ASSERT_FALSE(reply);
  EXPECT_THAT(reply.error().describe(), HasSubstr("there is no train.py"));
}

TEST(Metrics, ComeFromAReplicaWhenTheHomeIsAway) {
  World world = trained(2);
  for (const char* name : {"server", "workstation", "laptop"})
    world.agent(name).answers = [](const NodeQuestion& question) -> Result<NodeReply> {
      MetricsPage page;
      page.series.push_back({std::get<ReadMetrics>(question).snapshot, {1}, {2}, 1, 0, {}});
      return NodeReply(page);
    };
  auto live = read<api::MetricsReply>(world.must(api::ReadMetrics{"finetune", "", {}, 100}));
  EXPECT_EQ(live.series.at(0).name, "");
  EXPECT_EQ(live.checkpoints.size(), 2u);
  world.goes_silent("server");
  world.pass(seconds(8));
  auto away = world.ask(api::ReadMetrics{"finetune", "", {}, 100});
  if (away) {  // the link may still count as up: then the timeout is the answer
    EXPECT_EQ(read<api::MetricsReply>(*away).series.at(0).name, "epoch-2");
  }
}

TEST(Diff, FactsAndFilesOfTwoCheckpoints) {
  World world = trained(2);
  world.agent("server").answers = [](const NodeQuestion& question) -> Result<NodeReply> {
    if (const auto* list = std::get_if<ListFiles>(&question)) {
      const bool first = list->snapshot == "epoch-1";
      FileList files;
      files.entries = {
          {"a.py", FileKind::file, Bytes{3}, 0644, {}, first ? "x" : "y", ""},
          {"metrics/000001.jsonl", FileKind::file, Bytes{first ? 1 : 2}, 0, {}, "", ""},
          {"same.py", FileKind::file, Bytes{3}, 0644, {}, "z", ""}};
      if (first) files.entries.push_back({"z.py", FileKind::file, Bytes{1}, 0, {}, "w", ""});
      return NodeReply(files);
    }
    const auto& read = std::get<ReadFile>(question);
    return NodeReply(FilePiece{0, 1,
                               to_base64(read.snapshot == "epoch-1"
                                             ? R"({"parameters":{"lr":0.1},"python":"3.11"})"
                                             : R"({"parameters":{"lr":0.2},"python":"3.11"})"),
                               ""});
  };
  auto reply =
      read<api::DiffReply>(world.must(api::DiffCheckpoints{"finetune@epoch-1", "@epoch-2"}));
  ASSERT_EQ(reply.files.size(), 2u);
  EXPECT_EQ(reply.files[0].path, "a.py");
  EXPECT_EQ(reply.files[1].change, api::FileChange::removed);
  bool has_parameter = false;
  for (const api::FactDifference& fact : reply.facts) {
    EXPECT_NE(fact.kind, "package");
    has_parameter = has_parameter || (fact.kind == "parameter" && fact.name == "lr" &&
                                      fact.a == "0.1" && fact.b == "0.2");
  }
  EXPECT_TRUE(has_parameter);
}

TEST(Replicate, BringsAllThatIsMissingAndNoMore) {
  World world = trained(3);
  const bool on_laptop = world.holds("laptop", "finetune") != "-";
  const std::string other = on_laptop ? "workstation" : "laptop";
  auto dry = read<api::ReplicateReply>(world.must(api::Replicate{"finetune", other, true}));
  EXPECT_EQ(dry.snapshots.size(), 3u);
  EXPECT_EQ(world.holds(other, "finetune"), "-");
  auto done = read<api::ReplicateReply>(world.must(api::Replicate{"finetune", other, false}));
  EXPECT_EQ(done.newest, "@epoch-3");
  EXPECT_EQ(world.holds(other, "finetune"), "epoch-1 epoch-2 epoch-3");
  auto again = read<api::ReplicateReply>(world.must(api::Replicate{"finetune", other, false}));
  EXPECT_TRUE(again.snapshots.empty());
  EXPECT_EQ(world.ask(api::Replicate{"nope", other, false}).error().code, ErrorCode::not_found);
  EXPECT_EQ(world.ask(api::Replicate{"finetune", "nope", false}).error().code,
            ErrorCode::not_found);
}

TEST(Replicate, GoesOnFromAnotherNodeWhenItsSenderGoes) {
  World world = lab();
  world.has_model("server", "llama");
  world.must(api::Replicate{"models/llama", "workstation", false});
  FakeAgent& laptop = world.agent("laptop");
  const DatasetName model = testing::dataset("models/llama");
  laptop.swallows.insert("receive-snapshot");
  world.agent("server").swallows.insert("send-snapshot");
  world.deliver(Requested{77, api::Replicate{"models/llama", "laptop", false}, {"me", "test"}});
  world.settle();
  EXPECT_TRUE(world.was_told("laptop", "receive-snapshot"));
  laptop.swallows.clear();
  world.goes_silent("server");
  world.pass(seconds(4));
  ASSERT_EQ(laptop.datasets.count(model), 1u);
  EXPECT_NE(laptop.datasets.at(model).find("v1"), nullptr);
}

/// The model's copy on laptop is ordered and under way.
World bringing_to_laptop() {
  World world = lab();
  world.has_model("server", "llama");
  world.agent("laptop").swallows.insert("receive-snapshot");
  world.agent("server").swallows.insert("send-snapshot");
  world.deliver(Requested{77, api::Replicate{"models/llama", "laptop", false}, {"me", "test"}});
  world.settle();
  EXPECT_TRUE(world.was_told("laptop", "receive-snapshot"));
  for (const char* node : {"laptop", "server"})
    world.agent(node).swallows.clear();
  return world;
}

bool laptop_has_model(World& world) {
  const auto& datasets = world.agent("laptop").datasets;
  auto model = datasets.find(testing::dataset("models/llama"));
  return model != datasets.end() && model->second.find("v1") != nullptr;
}

std::string last_of(const World& world, const std::string& kind) {
  std::string text;
  for (const api::FleetEvent& event : world.events)
    if (event.kind == kind) text = event.subject + ": " + event.text;
  return text;
}

TEST(Replicate, GoesOnByItselfOnceItsTargetIsBack) {
  World world = bringing_to_laptop();
  world.goes_silent("laptop");
  world.pass(seconds(40));
  EXPECT_FALSE(world.answer_of(77)) << "the order stands";
  EXPECT_EQ(last_of(world, "transfer"), "models/llama: to laptop waits for laptop, which is not "
                                        "connected; it goes on by itself");
  world.returns("laptop");
  world.pass(seconds(4));
  EXPECT_TRUE(laptop_has_model(world));
  ASSERT_TRUE(world.answer_of(77));
  EXPECT_TRUE(*world.answer_of(77));
}

TEST(Replicate, GoesOnByItselfOnceItsOnlySenderIsBack) {
  World world = bringing_to_laptop();
  world.goes_silent("server");
  world.pass(seconds(40));
  EXPECT_FALSE(world.answer_of(77)) << "the order stands";
  EXPECT_THAT(last_of(world, "transfer"), HasSubstr("waits for server, which is not connected"));
  world.returns("server");
  world.pass(seconds(4));
  EXPECT_TRUE(laptop_has_model(world));
}

TEST(Replicate, SaysOnceWhatItWaitsForAndEndsAfterADay) {
  World world = bringing_to_laptop();
  world.goes_silent("laptop");
  world.pass(minutes(2));
  std::size_t told = 0;
  for (const api::FleetEvent& event : world.events)
    told += event.text.find("waits for laptop") != std::string::npos ? 1 : 0;
  EXPECT_EQ(told, 1u);
  world.leap(minutes(24 * 60));
  world.pass(seconds(2));
  ASSERT_TRUE(world.answer_of(77));
  EXPECT_EQ(world.answer_of(77)->error().code, ErrorCode::timeout);
}

TEST(Replicate, EndsWhenItsTargetIsForgotten) {
  World world = bringing_to_laptop();
  world.goes_silent("laptop");
  world.pass(seconds(40));
  world.must(api::ForgetNode{"laptop", true});
  world.pass(seconds(2));
  ASSERT_TRUE(world.answer_of(77));
  EXPECT_EQ(world.answer_of(77)->error().code, ErrorCode::not_found);
}

TEST(Replicate, EndsWithItsClient) {
  World world = bringing_to_laptop();
  world.goes_silent("laptop");
  world.pass(seconds(4));
  world.deliver(RequestGone{77});
  world.returns("laptop");
  world.pass(seconds(4));
  EXPECT_FALSE(laptop_has_model(world));
}

TEST(Replicate, TriesAgainAfterAFailureThatMayPass) {
  World world = trained(2);
  const bool on_laptop = world.holds("laptop", "finetune") != "-";
  const std::string other = on_laptop ? "workstation" : "laptop";
  world.agent(other).swallows.insert("receive-snapshot");
  world.deliver(Requested{77, api::Replicate{"finetune", other, false}, {"tester", "test"}});
  world.settle();
  auto& orders = world.agent(other).orders;
  const PlanStep step = orders.back();
  world.agent(other).swallows.clear();
  StepResult failed;
  failed.step = step.id;
  failed.error = Error{ErrorCode::timeout, "the other end was silent", {}, ""};
  world.say(world.agent(other), failed);
  world.settle();
  EXPECT_EQ(world.holds(other, "finetune"), "-") << "after a pause";
  world.pass(seconds(4));
  EXPECT_EQ(world.holds(other, "finetune"), "epoch-1 epoch-2");
}

api::Prune prune_of(std::optional<std::int64_t> last, bool dry_run, bool branches = false) {
  api::Prune op;
  op.job = "finetune";
  if (last) op.keep.emplace().last = last;
  op.branches = branches;
  op.dry_run = dry_run;
  return op;
}

TEST(Prune, DestroysWhatNobodyNeedsAfterAWordOfWhatThatIs) {
  World world = trained(6);
  EXPECT_EQ(world.ask(prune_of({}, true)).error().code, ErrorCode::refused);
  auto dry = read<api::PruneReply>(world.must(prune_of(2, true)));
  EXPECT_FALSE(dry.pruned.empty());
  EXPECT_EQ(dry.kept, 2);
  EXPECT_THAT(world.holds("server", "finetune"), HasSubstr("epoch-1"));
  world.must(prune_of(2, false));
  world.settle();
  EXPECT_EQ(world.holds("server", "finetune"), "epoch-5 epoch-6");
  EXPECT_EQ(world.ask(prune_of(0, true)).error().code, ErrorCode::invalid);
}

TEST(Prune, OfBranchesLeavesTheCurrentTimelineAlone) {
  World world = trained(6);
  api::Rollback back;
  back.job = "finetune";
  back.checkpoint = "@epoch-2";
  world.must(back);
  world.settle();
  world.pass(seconds(10));
  const std::string current = world.holds("server", "finetune");
  auto none = read<api::PruneReply>(world.must(prune_of(5, true)));
  EXPECT_TRUE(none.pruned.empty());
  auto dry = read<api::PruneReply>(world.must(prune_of(1, true, true)));
  ASSERT_FALSE(dry.pruned.empty());
  std::set<std::string> nodes;
  for (const api::PruneRow& row : dry.pruned) {
    EXPECT_NE(row.dataset, "jobs/finetune-001") << row.snapshot;
    nodes.insert(row.node);
  }
  EXPECT_EQ(nodes.size(), 2U);
  EXPECT_EQ(dry.kept, 2) << "the newest and its closing one: each once, whoever has it";
  world.must(prune_of(1, false, true));
  world.settle();
  EXPECT_EQ(world.holds("server", "finetune"), current);
  auto again = read<api::PruneReply>(world.must(prune_of(1, true, true)));
  EXPECT_TRUE(again.pruned.empty());
}

TEST(Exec, StartsBesideAJobThatRuns) {
  World world = trained(1);
  std::vector<NodeQuestion> asked;
  world.agent("server").answers = [&](const NodeQuestion& question) -> Result<NodeReply> {
    asked.push_back(question);
    return NodeReply(CommandState{});
  };
  api::Exec op;
  op.job = "finetune";
  op.command = std::string(32, 'a');
  op.argv = {"ls"};
  auto reply = read<api::ExecReply>(world.must(op));
  EXPECT_EQ(reply.node, "server");
  EXPECT_EQ(std::get<StartCommand>(asked.at(0)).generation,
            world.job("finetune").placed->generation);
  api::ExecTend tend;
  tend.node = reply.node;
  tend.tend.command = op.command;
  world.must(tend);
  world.exits("finetune", Kind::success);
  world.settle();
  EXPECT_EQ(world.ask(op).error().code, ErrorCode::refused);
}

}  // namespace
}  // namespace zed::controller
