// The parts of the daily commands, and the real zedctl doing them against a controller that says
// what the test wants.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <signal.h>

#include "base/base64.hpp"
#include "base/json.hpp"
#include "cli/arguments.hpp"
#include "cli/csv.hpp"
#include "cli/golden_test.hpp"
#include "cli/man.hpp"
#include "cli/plot.hpp"
#include "cli/render.hpp"
#include "cli/testing.hpp"
#include "cli/text_diff.hpp"
#include "cli/typed.hpp"

namespace zed::cli {
namespace {

namespace fs = std::filesystem;
using testing::Child;
using ::testing::ElementsAre;
using testing::FakeController;
using ::testing::HasSubstr;
using testing::Outcome;
using testing::TempFolder;

TEST(Csv, ARowAnElementAndColumnsOfAll) {
  auto reply = parse_json(R"({"schema":1,"jobs":[{"name":"a","gpu":{"model":"A100","free":1},
      "nodes":["x","y"]},{"name":"b, the \"second\"","loss":0.5}]})");
  EXPECT_EQ(to_csv(*reply), "name,gpu.model,gpu.free,nodes,loss\n"
                            "a,A100,1,x;y,\n"
                            "\"b, the \"\"second\"\"\",,,,0.5\n");
}

TEST(Csv, AReplyWithoutRowsIsOne) {
  EXPECT_EQ(to_csv(*parse_json(R"({"revision":7,"safe":true})")), "revision,safe\n7,true\n");
  EXPECT_EQ(to_csv(*parse_json(R"({"jobs":[]})")), "");
}

MetricSeries series(std::vector<double> steps, std::vector<double> values) {
  MetricSeries made;
  made.name = "loss";
  made.steps = std::move(steps);
  made.values = std::move(values);
  made.count = std::ssize(made.values);
  return made;
}

TEST(Plot, FallsFromTopLeftToBottomRight) {
  expect_golden("plot", plot(series({1, 2, 3}, {3, 2, 1}), {{2, "epoch-2"}, {99, "outside"}},
                             {24, 4}, View{}));
}

TEST(Plot, OneValueAndEqualOnesAreALine) {
  View view;
  EXPECT_THAT(plot(series({1}, {0}), {}, {30, 5}, view), HasSubstr("⠐"));
  EXPECT_FALSE(plot(series({1, 2}, {5, 5}), {}, {30, 5}, view).empty());
  EXPECT_EQ(plot(series({}, {}), {}, {30, 5}, view), "");
  EXPECT_FALSE(plot(series({0, 1}, {-1.7e308, 1.7e308}), {}, {30, 5}, view).empty());
}

TEST(TextDiff, ShowsHunksWithContext) {
  View view;
  std::string a;
  std::string b;
  for (int i = 1; i <= 20; ++i) {
    a += std::to_string(i) + "\n";
    b += i == 10 ? "ten\n" : std::to_string(i) + "\n";
  }
  expect_golden("text_diff", unified_diff(a, b, view) + unified_diff(a, b, coloured()));
  EXPECT_EQ(unified_diff(a, a, view), "");
  EXPECT_EQ(unified_diff("", "x\n", view), "@@ -0,0 +1,1 @@\n+x\n");
  EXPECT_EQ(unified_diff("x\n", "", view), "@@ -1,1 +0,0 @@\n-x\n");
}

TEST(TextDiff, IsBounded) {
  std::string a;
  std::string b;
  for (int i = 0; i < 2000; ++i) {
    a += "a" + std::to_string(i) + "\n";
    b += "b" + std::to_string(i) + "\n";
  }
  EXPECT_EQ(unified_diff(a, b, View{}), "(more than a thousand lines differ)\n");
}

/// What applying the hunks of a whole-file diff to `a` gives: they must tell all of the truth.
std::string applied(const std::string& diff) {
  std::string b;
  for (std::size_t at = 0; at < diff.size();) {
    const std::size_t end = diff.find('\n', at);
    const std::string line = diff.substr(at, end - at);
    if (line[0] == ' ' || line[0] == '+') b += line.substr(1) + "\n";
    at = end + 1;
  }
  return b;
}

RC_GTEST_PROP(TextDiff, TellsBOutOfA, ()) {
  // Few words and short texts, so that context joins all hunks into one.
  auto line = rc::gen::element<std::string>("x\n", "y\n", "z\n");
  const auto count = *rc::gen::inRange<std::size_t>(0, 5);
  const auto a = *rc::gen::container<std::vector<std::string>>(count, line);
  auto b = a;
  if (!b.empty()) b.erase(b.begin() + static_cast<std::ptrdiff_t>(b.size() / 2));
  b.push_back("end\n");
  std::string text_a;
  std::string text_b;
  for (const auto& one : a)
    text_a += one;
  for (const auto& one : b)
    text_b += one;
  RC_ASSERT(applied(unified_diff(text_a, text_b, View{})) == text_b);
}

TEST(Typed, FilesOfCopies) {
  auto parsed = parse_files_at("finetune@epoch-20:ckpt/model.npz");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->of, "finetune");
  EXPECT_EQ(parsed->checkpoint, "@epoch-20");
  EXPECT_EQ(parsed->path, "ckpt/model.npz");
  EXPECT_EQ(parse_files_at("finetune:train.py")->path, "train.py");
  EXPECT_EQ(parse_files_at("models/llama@v1")->of, "models/llama");
  EXPECT_FALSE(parse_files_at(":x"));
}

TEST(Typed, WhatToKeep) {
  auto keep = parse_retention({"last=5", "best=3,metric=accuracy,mode=max"});
  ASSERT_TRUE(keep) << keep.error().describe();
  EXPECT_EQ(keep->last, 5);
  EXPECT_EQ(keep->best, 3);
  EXPECT_EQ(keep->metric, "accuracy");
  EXPECT_EQ(keep->mode, Retention::Mode::max);
  EXPECT_EQ(parse_retention({"lats=5"}).error().hint, "did you mean \"last\"?");
  EXPECT_FALSE(parse_retention({"last=0"}));
  EXPECT_FALSE(parse_retention({"last=many"}));
  EXPECT_FALSE(parse_retention({"mode=up"}));
}

TEST(Manual, HasEveryCommandAndEscapesItsText) {
  const auto shapes = command_shapes();
  const std::string page = manual_page(shapes, "1.2");
  for (const char* command : {"run", "metrics", "replicate", "model add", "dev up"})
    EXPECT_THAT(page, HasSubstr("\\fBzedctl " + std::string(command) + "\\fR")) << command;
  EXPECT_THAT(page, HasSubstr("\\fB\\-\\-requires\\fR \\fIKEY=VALUE\\fR"));
  EXPECT_EQ(page.find("\n-"), std::string::npos);
}

api::GpuRow gpu_row(const std::string& node, std::vector<std::string> jobs) {
  api::GpuRow row;
  row.node = node;
  row.gpu.model = "NVIDIA A100-SXM4-80GB";
  row.gpu.uuid = "GPU-1";
  row.gpu.vram_reported = gibibytes(80);
  row.gpu.vram_nominal_gb = 80;
  row.jobs = std::move(jobs);
  return row;
}

TEST(Render, GpusAndDatasets) {
  api::GpusReply gpus;
  gpus.gpus = {gpu_row("server", {"finetune"}), gpu_row("server", {}), gpu_row("spare", {})};
  gpus.gpus[2].status = NodeStatus::lost;
  gpus.gpus[2].gpu.health = GpuHealth::lost;
  gpus.gpus[2].gpu.why = "fell off the bus";
  expect_all_forms("gpus", gpus);
  api::DatasetRow row;
  row.dataset = "jobs/finetune-001";
  row.type = "job";
  row.name = "finetune";
  row.home = "server";
  row.used = gibibytes(3);
  row.snapshots = 20;
  row.newest = "@epoch-20";
  row.copies = {{"server", gibibytes(3), 20, "@epoch-20", true, true},
                {"spare", gibibytes(2), 12, "@epoch-12", false, false}};
  expect_all_forms("datasets", api::DatasetsReply{{row}});
}

TEST(Render, FilesAndMetrics) {
  api::FilesReply files;
  files.place = {"server", "jobs/finetune-001", "@epoch-20"};
  files.files = {{"src", FileKind::folder, {}, 0755, before(minutes(90)), "", ""},
                 {"src/train.py", FileKind::file, kibibytes(12), 0755, before(minutes(90)), "", ""},
                 {"latest", FileKind::link, {}, 0777, before(minutes(5)), "", "ckpt/epoch-20"}};
  expect_all_forms("files", files);
  api::MetricsReply metrics;
  metrics.job = "finetune";
  metrics.place = files.place;
  metrics.series = {series({1, 2, 3, 4}, {3, 1.5, 1, 0.9})};
  metrics.checkpoints = {{"epoch-2", 2, 2}, {"epoch-4", 4, 4}};
  metrics.other_names = {"accuracy", "rate"};
  expect_golden("metrics", render(metrics, plain(60)));
}

TEST(Render, DiffReplicateAndPrune) {
  api::DiffReply diff;
  diff.a = {"server", "jobs/finetune-001", "@epoch-5"};
  diff.b = {"server", "jobs/finetune-001", "@epoch-20"};
  diff.facts = {{"code", "", "0123456789ab", "fedcba987654"},
                {"data", "datasets/digits", "datasets/digits@v1", "datasets/digits@v2"},
                {"metric", "loss", "0.5", "0.1"},
                {"parameter", "lr", "", "0.01"}};
  diff.files = {{"train.py", api::FileChange::changed, kibibytes(3), kibibytes(4)},
                {"ckpt/epoch-20.npz", api::FileChange::added, {}, mebibytes(80)}};
  expect_all_forms("diff", diff);
  expect_golden("replicate", render(api::ReplicateReply{"jobs/finetune-001",
                                                        "server",
                                                        "spare",
                                                        {"epoch-19", "epoch-20"},
                                                        mebibytes(160),
                                                        true,
                                                        "@epoch-20"},
                                    plain()));
  api::PruneReply prune;
  prune.job = "finetune";
  prune.keep = "last 5, best 3 by loss (min)";
  prune.pruned = {{"server", "jobs/finetune-001", "@epoch-1", mebibytes(80)},
                  {"spare", "jobs/finetune-001", "@epoch-1", mebibytes(80)},
                  {"spare", "jobs/finetune-001.t3-1", "@epoch-2", mebibytes(80)}};
  prune.kept = 8;
  prune.frees = mebibytes(240);
  prune.dry_run = true;
  expect_all_forms("prune", prune);
  prune.pruned.clear();
  expect_golden("prune_nothing", render(prune, plain()));
}

/// A terminal must not obey what a name or a metric says.
TEST(Render, NoEscapeSequenceOfOthersReachesTheTerminal) {
  const std::string evil = "\x1b[2Jevil\n";
  View view;
  api::GpusReply gpus;
  gpus.gpus.resize(1);
  gpus.gpus[0].node = evil;
  gpus.gpus[0].gpu.model = evil;
  gpus.gpus[0].gpu.why = evil;
  gpus.gpus[0].jobs = {evil};
  api::DatasetsReply datasets;
  datasets.datasets.resize(1);
  datasets.datasets[0].name = evil;
  datasets.datasets[0].dataset = evil;
  datasets.datasets[0].copies = {{evil, {}, 1, evil, false, false}};
  api::FilesReply files;
  files.place = {evil, evil, evil};
  files.files = {{evil, FileKind::link, {}, 0, {}, "", evil}};
  api::MetricsReply metrics;
  metrics.job = evil;
  metrics.series = {series({1, 2}, {1, 2})};
  metrics.series[0].name = evil;
  metrics.other_names = {evil};
  api::DiffReply diff;
  diff.a = {evil, evil, evil};
  diff.facts = {{evil, evil, evil, evil}};
  diff.files = {{evil, api::FileChange::added, {}, {}}};
  api::PruneReply prune;
  prune.job = evil;
  prune.keep = evil;
  prune.pruned = {{evil, evil, evil, {}}};
  const api::ReplicateReply replicate{evil, evil, evil, {evil}, {}, true, evil};
  for (const std::string& text : {render(gpus, view), render(datasets, view), render(files, view),
                                  render(metrics, view), render(diff, view), render(prune, view),
                                  render(replicate, view), unified_diff("a\n", evil, view)})
    EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
}

class Daily : public ::testing::Test {
protected:
  Daily() {
    controller_.answer("events", api::EventsReply{});
    controller_.answer("transfers", api::TransfersReply{});
  }
  Outcome run(std::vector<std::string> arguments, const std::string& directory = "",
              const std::string& input = "") {
    Child::Options options;
    options.environment = {{"ZED_CONTROLLER", controller_.socket()}, {"SEED", "7"}};
    options.directory = directory;
    options.input = input;
    return Child(ZEDCTL, std::move(arguments), std::move(options)).finish();
  }
  api::JobRow row(JobState state) const {
    api::JobRow row;
    row.id.bytes[3] = 9;
    row.name = "train";
    row.state = state;
    row.node = "server";
    return row;
  }

  TempFolder folder_;
  FakeController controller_{(folder_ / "s").string()};
};

TEST_F(Daily, RunSubmitsTheFolderThatTheCommandNames) {
  folder_.file("train.py", "");
  api::DispatchReply reply;
  reply.job = row(JobState::pending);
  controller_.answer("run", reply);
  const Outcome ran = run({"run", "-d", "-r", "vram=24", "-e", "SEED", "-e", "A=b", "--", "python3",
                           "train.py", "--lr", "0.1"},
                          folder_.path().string());
  EXPECT_EQ(ran.status, 0) << ran.err;
  auto request = controller_.requests<api::RunJob>().at(0);
  EXPECT_THAT(request.argv, ElementsAre("python3", "train.py", "--lr", "0.1"));
  EXPECT_EQ(request.code, fs::canonical(folder_.path()).string());
  EXPECT_EQ(request.requirement.str(), "vram:24");
  EXPECT_EQ(request.env.at("SEED"), "7");
  EXPECT_EQ(request.env.at("A"), "b");
  EXPECT_EQ(request.uuid.size(), 32u);
}

TEST_F(Daily, RunSubmitsNoFolderForACommandOfItsOwn) {
  api::DispatchReply reply;
  reply.job = row(JobState::pending);
  controller_.answer("run", reply);
  EXPECT_EQ(run({"run", "-d", "--", "nvidia-smi", "-L"}, folder_.path().string()).status, 0);
  EXPECT_EQ(controller_.requests<api::RunJob>().at(0).code, "");
  EXPECT_EQ(run({"run", "-d"}).status, 1);
}

TEST_F(Daily, RunRefusesWhatItWouldNotObey) {
  const std::string here = folder_.path().string();
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"run", "-d", "--code-on", "server", "--", "nvidia-smi"},
        {"run", "-d", "--no-code", "--code-on", "server", "--", "nvidia-smi"}}) {
    const Outcome ran = run(words, here);
    EXPECT_EQ(ran.status, 1);
    EXPECT_THAT(ran.err, HasSubstr("no folder is submitted"));
  }
  const Outcome nameless = run({"run", "-d", "-e", "=1", "--", "true"}, here);
  EXPECT_EQ(nameless.status, 1);
  EXPECT_THAT(nameless.err, HasSubstr("\"=1\" names no variable"));
  EXPECT_TRUE(controller_.requests<api::RunJob>().empty());
}

TEST_F(Daily, AFailedJobTellsWhereToLook) {
  api::WhyReply why;
  why.job = row(JobState::failed);
  why.job.reason = "exit code 1";
  controller_.answer("why", why);
  const Outcome asked = run({"why", "train"});
  EXPECT_THAT(asked.out, HasSubstr("train has failed on server (exit code 1)"));
  EXPECT_THAT(asked.out, HasSubstr("next: zedctl logs train"));
  api::DispatchReply dispatched;
  dispatched.job = why.job;
  controller_.answer("dispatch", dispatched);
  const Outcome waited = run({"dispatch", "train", "--wait"});
  EXPECT_EQ(waited.status, 1);
  EXPECT_THAT(waited.err, HasSubstr("next: zedctl logs train"));
}

TEST_F(Daily, WhileAJobIsPreparedOnlyWhatItWaitsForIsTold) {
  api::DispatchReply dispatched;
  dispatched.job = row(JobState::preparing);
  controller_.answer("dispatch", dispatched);
  api::TransfersReply moving;
  for (const char* why : {"job train-2 runs on server", "job train runs on server", "replicate"}) {
    api::TransferRow& transfer = moving.transfers.emplace_back();
    transfer.dataset = std::string("models/of ") + why;
    transfer.why = why;
  }
  controller_.answer("transfers", moving);
  std::atomic<int> asked = 0;
  controller_.on("jobs", [&](const api::Request&) -> Result<Value> {
    return api::encode_reply(
        api::JobsReply{{row(++asked > 2 ? JobState::succeeded : JobState::preparing)}});
  });
  const Outcome waited = run({"dispatch", "train", "--wait"});
  EXPECT_EQ(waited.status, 0) << waited.err;
  EXPECT_THAT(waited.err, HasSubstr("models/of job train runs on server"));
  EXPECT_THAT(waited.err, Not(HasSubstr("more")));
}

TEST_F(Daily, RunFollowsTheLogAndHasTheJobsStatus) {
  api::DispatchReply reply;
  reply.job = row(JobState::pending);
  controller_.answer("run", reply);
  controller_.answer("jobs", api::JobsReply{{row(JobState::failed)}});
  controller_.on("logs", [](const api::Request& request) -> Result<Value> {
    const std::int64_t offset = std::get<api::ReadJobLog>(request).offset;
    if (offset == 0) return api::encode_reply(api::LogReply{0, 6, {{{}, false, "hello"}}, false});
    return api::encode_reply(api::LogReply{6, 6, {}, false});
  });
  const Outcome ran = run({"run", "--", "true"});
  EXPECT_EQ(ran.out, "hello\n");
  EXPECT_THAT(ran.err, HasSubstr("train has failed")) << ran.err;
  EXPECT_EQ(ran.status, 1);
}

TEST_F(Daily, CtrlCLeavesTheJobRunning) {
  api::DispatchReply reply;
  reply.job = row(JobState::pending);
  controller_.answer("run", reply);
  controller_.answer("jobs", api::JobsReply{{row(JobState::running)}});
  Child::Options options;
  options.environment = {{"ZED_CONTROLLER", controller_.socket()}};
  Child child(ZEDCTL, {"run", "--", "true"}, options);
  ASSERT_TRUE(child.wait_for("is submitted"));
  child.signal(SIGINT);
  const Outcome ran = child.finish();
  EXPECT_EQ(ran.status, 130);
  EXPECT_THAT(ran.err, HasSubstr("zedctl logs -f train follows it again"));
}

TEST_F(Daily, CpTakesAFolderInPieces) {
  controller_.on("files", [](const api::Request& request) -> Result<Value> {
    EXPECT_EQ(std::get<api::ListFiles>(request).checkpoint, "@epoch-2");
    api::FilesReply reply;
    reply.files = {{"ckpt", FileKind::folder, {}, 0755, {}, "", ""},
                   {"ckpt/a.npz", FileKind::file, Bytes{6}, 0640, {}, "", ""},
                   {"ckpt/link", FileKind::link, {}, 0777, {}, "", "/etc/passwd"}};
    return api::encode_reply(reply);
  });
  controller_.on("file", [](const api::Request& request) -> Result<Value> {
    const auto& read = std::get<api::ReadFile>(request);
    const std::string all = "weight";
    api::FileReply reply;
    reply.offset = read.offset;
    reply.size = 6;
    reply.data = to_base64(all.substr(static_cast<std::size_t>(read.offset), 4));
    return api::encode_reply(reply);
  });
  const std::string target = (folder_ / "out").string();
  const Outcome ran = run({"cp", "train@epoch-2:ckpt", target});
  EXPECT_EQ(ran.status, 0) << ran.err;
  std::ifstream file(fs::path(target) / "a.npz");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "weight");
  EXPECT_THAT(ran.err, HasSubstr("ckpt/link is no file or folder"));
  EXPECT_FALSE(fs::exists(fs::path(target) / "link"));
  EXPECT_EQ(run({"cp", "train@epoch-2:ckpt/a.npz", "-"}).out, "weight");
}

TEST_F(Daily, CpWritesNowhereElseWhateverTheFleetSays) {
  for (const char* path : {"../evil", "a/../../evil", "/tmp/evil"}) {
    controller_.on("files", [path](const api::Request&) -> Result<Value> {
      api::FilesReply reply;
      reply.files = {{path, FileKind::file, Bytes{6}, 0640, {}, "", ""},
                     {"b", FileKind::file, Bytes{6}, 0640, {}, "", ""}};
      return api::encode_reply(reply);
    });
    EXPECT_EQ(run({"cp", "train:.", (folder_ / "out").string()}).status, 1) << path;
    EXPECT_TRUE(controller_.requests<api::ReadFile>().empty());
  }
}

TEST_F(Daily, ExecHasTheCommandsOutputAndStatus) {
  controller_.answer("exec", api::ExecReply{std::string(32, 'a'), "train", "server"});
  controller_.on("exec-tend", [](const api::Request& request) -> Result<Value> {
    const TendCommand& tend = std::get<api::ExecTend>(request).tend;
    api::ExecTendReply reply;
    reply.state.offset = tend.offset;
    reply.state.data = to_base64(tend.offset == 0 ? "one\n" : "");
    reply.state.input_taken =
        tend.input_offset + std::ssize(from_base64(tend.input, 1 << 20).value());
    reply.state.over = tend.offset > 0 && tend.input_ends;
    reply.state.status = 3;
    return api::encode_reply(reply);
  });
  const Outcome ran = run({"exec", "train", "--", "ls", "-l"}, "", "input");
  EXPECT_EQ(ran.out, "one\n");
  EXPECT_EQ(ran.status, 3);
  EXPECT_THAT(controller_.requests<api::Exec>().at(0).argv, ElementsAre("ls", "-l"));
  EXPECT_FALSE(controller_.requests<api::Exec>().at(0).terminal);
}

TEST_F(Daily, PruneShowsWhatGoesAndNeedsAYes) {
  controller_.on("prune", [](const api::Request& request) -> Result<Value> {
    api::PruneReply reply;
    reply.job = "train";
    reply.keep = "last 2";
    reply.pruned = {{"server", "jobs/train", "@epoch-1", mebibytes(3)}};
    reply.frees = mebibytes(3);
    reply.kept = 2;
    reply.dry_run = std::get<api::Prune>(request).dry_run;
    return api::encode_reply(reply);
  });
  const Outcome refused = run({"prune", "train", "--keep", "last=2"});
  EXPECT_EQ(refused.status, 5);
  EXPECT_THAT(refused.err, HasSubstr("would destroy 1 snapshot of train"));
  EXPECT_TRUE(controller_.requests<api::Prune>().back().dry_run) << "nothing was destroyed";
  EXPECT_EQ(run({"prune", "train", "--keep", "last=2", "-y"}).status, 0);
  EXPECT_FALSE(controller_.requests<api::Prune>().back().dry_run);
}

TEST_F(Daily, CsvAndJsonByOption) {
  api::GpusReply reply;
  reply.gpus.resize(1);
  reply.gpus[0].node = "server";
  reply.gpus[0].gpu.uuid = "GPU-1";
  controller_.answer("gpus", reply);
  EXPECT_THAT(run({"gpus", "-o", "csv"}).out, ::testing::StartsWith("node,status,gpu.uuid,"));
  EXPECT_TRUE(parse_json(run({"gpus", "-o", "json"}).out));
  EXPECT_THAT(run({"gpus"}).out, HasSubstr("server"));
  EXPECT_EQ(run({"gpus", "-o", "xml"}).status, 1);
}

TEST_F(Daily, CsvIsNeverATableNorNothing) {
  api::StatusReply status;
  status.cluster = "lab";
  controller_.answer("status", status);
  EXPECT_THAT(run({"status", "-o", "csv"}).out, HasSubstr("\n1,0,lab,"));
  api::MatchReply match;
  match.matches.resize(1);
  controller_.answer("match", match);
  EXPECT_THAT(run({"match", "-r", "vram=1", "-o", "csv"}).out, ::testing::StartsWith("node,"));
  api::PlanReply plan;
  plan.plan.emplace().changes = {{Change::Kind::add, "job x", "run [make]", false}};
  controller_.answer("plan", plan);
  folder_.file("c.exs", "deploy :lab do\nend\n");
  const Outcome planned = run({"plan", "c.exs", "-o", "csv"}, folder_.path().string());
  EXPECT_THAT(planned.out, HasSubstr("job x,run [make]")) << planned.err;
  EXPECT_EQ(planned.status, 2);
}

TEST_F(Daily, AMistypedCommandIsJsonWhereThatIsAsked) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--json", "why"},
                                                {"why", "-o", "json"},
                                                {"frobnicate", "--json"}}) {
    const Outcome ran = run(words);
    EXPECT_EQ(ran.status, 1);
    EXPECT_EQ(ran.err, "");
    auto said = parse_json(ran.out);
    ASSERT_TRUE(said) << ran.out;
    EXPECT_EQ(*said->find("error")->find("code")->as_text(), "invalid");
  }
  const Outcome plain = run({"why", "--", "--json"});
  EXPECT_EQ(plain.out, "");
  EXPECT_THAT(plain.err, HasSubstr("JOB is required"));
}

TEST(RenderDaily, MetricsThatAreNotThereSayWhichAre) {
  api::MetricsReply reply;
  reply.job = "train";
  EXPECT_THAT(render(reply, View{}), HasSubstr("next: zed.log("));
  reply.other_names = {"loss", "lr"};
  EXPECT_EQ(render(reply, View{}), "train has logged no metrics of that name\n"
                                   "  next: zedctl metrics train NAME; it logs loss, lr\n");
}

TEST_F(Daily, MetricsAsRows) {
  api::MetricsReply reply;
  reply.job = "train";
  reply.series = {series({1, 2}, {0.5, 0.25})};
  controller_.answer("metrics", reply);
  EXPECT_EQ(run({"metrics", "train", "-o", "csv"}).out,
            "metric,step,value\nloss,1,0.5\nloss,2,0.25\n");
  EXPECT_THAT(run({"metrics", "train@epoch-2", "loss"}).out, HasSubstr("loss  0.25 at 2"));
  EXPECT_EQ(controller_.requests<api::ReadMetrics>().back().checkpoint, "@epoch-2");
}

TEST_F(Daily, AMetricThatNobodyLoggedIsNotFound) {
  api::MetricsReply reply;
  reply.job = "train";
  reply.other_names = {"loss", "accuracy"};
  controller_.answer("metrics", reply);
  const Outcome ran = run({"metrics", "train", "los"});
  EXPECT_EQ(ran.status, 4);
  EXPECT_EQ(ran.out, "");
  EXPECT_THAT(ran.err, HasSubstr("train has logged no los"));
  EXPECT_THAT(ran.err, HasSubstr("it logs accuracy, loss; did you mean loss?"));
  const Outcome json = run({"metrics", "train", "los", "--json"});
  EXPECT_EQ(json.status, 4);
  EXPECT_THAT(json.out, HasSubstr("\"code\":\"not_found\""));
  reply.series = {series({1, 2}, {0.5, 0.25})};
  reply.other_names.erase(reply.other_names.begin());
  controller_.answer("metrics", reply);
  EXPECT_EQ(run({"metrics", "train", "loss"}).status, 0);
  EXPECT_EQ(run({"metrics", "train", "loss", "los"}).status, 4);
  controller_.answer("metrics", api::MetricsReply{});
  EXPECT_EQ(run({"metrics", "train", "loss"}).status, 4);
  EXPECT_EQ(run({"metrics", "train"}).status, 0);
}

TEST_F(Daily, DiffShowsTextsOfWhatDiffers) {
  api::DiffReply reply;
  reply.a = {"server", "jobs/train", "@epoch-1"};
  reply.b = {"server", "jobs/train", "@epoch-2"};
  reply.facts = {{"metric", "loss", "2", "1"}};
  reply.files = {{"train.py", api::FileChange::changed, Bytes{4}, Bytes{4}},
                 {"w.bin", api::FileChange::changed, Bytes{4}, Bytes{4}}};
  controller_.answer("diff", reply);
  controller_.on("file", [](const api::Request& request) -> Result<Value> {
    const auto& read = std::get<api::ReadFile>(request);
    const std::string text = read.path == "w.bin"            ? std::string(4, '\0')
                             : read.checkpoint == "@epoch-1" ? "old\n"
                                                             : "new\n";
    return api::encode_reply(api::FileReply{{}, 0, 4, to_base64(text), ""});
  });
  const Outcome ran = run({"diff", "train@epoch-1", "@epoch-2"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("--- a/train.py\n+++ b/train.py\n@@ -1,1 +1,1 @@\n-old\n+new\n"));
  EXPECT_THAT(ran.out, ::testing::Not(HasSubstr("a/w.bin")));
}

}  // namespace
}  // namespace zed::cli
