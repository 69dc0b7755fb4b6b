// Every reply as people see it, against test/golden/cli/*.txt: wide terminal, narrow terminal, -o
// wide, colours. ZED_UPDATE_GOLDEN=1 writes what is said now: read the difference before
// committing.

#include <algorithm>

#include <gtest/gtest.h>

#include "cli/golden_test.hpp"
#include "cli/render.hpp"
#include "cli/render_models.hpp"

namespace zed::cli {
namespace {

Generation generation(std::uint64_t counter) {
  return {{3, ControllerId{}}, counter};
}

api::JobRow finetune() {
  api::JobRow job;
  job.id.bytes[0] = 0xAB;
  job.name = "finetune";
  job.state = JobState::running;
  job.node = "server";
  job.gpus = {"NVIDIA A100-SXM4-80GB"};
  job.attempt = 2;
  job.generation = "3.18";
  job.timeline = "3.17";
  job.checkpoint = "@epoch-15";
  job.checkpoint_copies = "server, workstation";
  job.metrics = {{"loss", "0.0023"}, {"accuracy", "0.971"}, {"epoch", "15"}, {"step", "4500"}};
  job.safe = true;
  job.submitted = before(minutes(90));
  job.started = before(minutes(75));
  return job;
}

Gpu gpu(std::string uuid, std::string model, std::int64_t gb) {
  Gpu made;
  made.uuid = std::move(uuid);
  made.model = std::move(model);
  made.vendor = GpuVendor::nvidia;
  made.vram_nominal_gb = gb;
  made.vram_reported = gibibytes(gb);
  return made;
}

api::NodeRow node(const std::string& name, const std::string& pool) {
  api::NodeRow row;
  row.node.name = *NodeName::parse(name);
  row.node.facts.pool = pool;
  row.node.facts.os = "linux";
  row.node.facts.cpu_arch = "x86_64";
  row.node.facts.cpus = 16;
  row.node.facts.memory = gibibytes(64);
  row.node.facts.data_address = "127.0.0.1:4373";
  row.node.facts.version = "0.1.0";
  row.node.pool_free = gibibytes(812);
  return row;
}

api::NodesReply fleet() {
  api::NodesReply reply;
  auto server = node("server", "nvme");
  server.node.gpus = {gpu("GPU-1", "NVIDIA A100-SXM4-80GB", 80),
                      gpu("GPU-2", "NVIDIA A100-SXM4-80GB", 80)};
  server.gpu_jobs = {{"GPU-1", "finetune"}};
  auto workstation = node("workstation", "tank");
  workstation.node.gpus = {gpu("GPU-3", "NVIDIA GeForce RTX 4090", 24)};
  workstation.node.status = NodeStatus::lost;
  workstation.node.silent = seconds(200);
  workstation.node.gpus[0].health = GpuHealth::reset_required;
  workstation.node.gpus[0].why = "Xid 79: fell off the bus";
  workstation.differences = {"declared 2x RTX 4090, found 1"};
  auto macbook = node("macbook", "zpool");
  macbook.node.status = NodeStatus::cordoned;
  macbook.node.gpus = {gpu("GPU-4", "Apple M3 Max", 64)};
  macbook.node.gpus[0].vram_nominal_gb.reset();
  macbook.node.gpus[0].memory_kind = MemoryKind::unified;
  macbook.node.facts.labels = {"laptop", "battery"};
  auto laptop = node("laptop2", "");
  laptop.joined = false;
  laptop.node.declared = DeclaredNode{};
  laptop.node.declared->gpus = {{"RTX 3080", std::nullopt, false, 1}};
  reply.nodes = {server, workstation, macbook, laptop};
  return reply;
}

Rejection nobody() {
  Rejection rejection;
  rejection.nodes = {
      {*NodeName::parse("laptop2"),
       {{"vram", "48 GB per GPU", "RTX 3080 with 10 GB", false},
        {"dataset", "jobs", "holds models only", false}}},
      {*NodeName::parse("workstation"), {{"vram", "48 GB per GPU", "RTX 4090 with 24 GB", false}}}};
  rejection.nearest = *NodeName::parse("workstation");
  return rejection;
}

TEST(Render, Status) {
  api::StatusReply status;
  status.controller = "workstation";
  status.term = "3-00000000000000000000000000000001";
  expect_golden("status_new", render(status, plain()));
  status.cluster = "gpu_cluster";
  status.revision = 17;
  status.journal_second = "server";
  status.safe = true;
  status.nodes = {{"up", 3}, {"lost", 1}};
  status.jobs = {{"running", 1}, {"pending", 2}, {"failed", 0}};
  status.gpus = 5;
  status.gpus_busy = 2;
  status.transfers = {{"models/llama-70b", "v1", "server", "workstation", "policy models",
                       gibibytes(12), gibibytes(40), mebibytes(110), seconds(254)}};
  status.warnings = {"newest checkpoint of finetune is only on server"};
  expect_all_forms("status", status);
}

TEST(Render, Nodes) {
  expect_all_forms("nodes", fleet());
  expect_golden("nodes_none", render(api::NodesReply{}, plain()));
}

TEST(Render, Models) {
  api::ModelRow large;
  large.name = "llama70b";
  large.dataset = "models/llama-70b";
  large.version = "2.1";
  large.home = "server";
  large.size = gibibytes(140);
  large.requirement = "vram:48";
  large.properties = {{"quantized", "q4_k_m"}, {"format", "gguf"}, {"aliases", "production,best"}};
  large.copies = {{"server", "v2", true}, {"workstation", "v1", false}, {"laptop", "", false}};
  large.not_on = {{"macbook", "size_gb is 140, not < 20"}};
  api::ModelRow declared;
  declared.name = "tiny";
  declared.dataset = "models/tiny";
  declared.declared_only = true;
  expect_all_forms("models", api::ModelsReply{{large, declared}});
  expect_golden("models_none", render(api::ModelsReply{}, plain()));
}

TEST(Render, Match) {
  api::MatchReply reply;
  reply.matches = {{*NodeName::parse("server"), {"GPU-1", "GPU-2"}, 0, "prefer gpu A100"},
                   {*NodeName::parse("macbook"), {"GPU-4"}, 2, "leaves 16 GB unused"}};
  reply.refusals = nobody().nodes;
  expect_all_forms("match", reply);
  reply.matches.clear();
  reply.refusals[1].shortfalls = {{"node", "up", "silent for 200 s", true}};
  expect_golden("match_none", render(reply, plain()));
}

TEST(Render, Jobs) {
  api::JobRow pending;
  pending.name = "evaluate";
  pending.state = JobState::pending;
  pending.reason = "waits for a GPU with 48 GB: both A100 of server are busy";
  pending.submitted = before(seconds(12));
  api::JobRow declared;
  declared.name = "nightly";
  declared.declared_only = true;
  expect_all_forms("jobs", api::JobsReply{{finetune(), pending, declared}});
  expect_golden("jobs_none", render(api::JobsReply{}, plain()));
}

TEST(Render, Checkpoints) {
  api::CheckpointsReply reply;
  reply.job = finetune();
  auto row = [](const std::string& name, std::optional<std::uint64_t> seq, const std::string& loss,
                std::vector<std::string> nodes) {
    api::CheckpointRow made;
    made.name = name;
    made.seq = seq;
    made.timeline = "3.17";
    made.generation = "3.18";
    made.dataset = "jobs/finetune-001";
    made.created = before(minutes(5));
    made.used = mebibytes(480);
    made.metrics = {{"loss", loss}};
    made.nodes = std::move(nodes);
    return made;
  };
  reply.checkpoints = {row("epoch-14", 14, "0.0031", {"server", "workstation"}),
                       row("epoch-15", 15, "0.0023", {"server"}),
                       row("before-lunch", std::nullopt, "", {"server"}),
                       row("closing-3-18", std::nullopt, "", {})};
  reply.checkpoints[2].metrics.clear();
  reply.checkpoints[3].metrics.clear();
  reply.checkpoints[3].closing = "success";
  reply.checkpoints.insert(reply.checkpoints.begin(),
                           row("submitted", std::nullopt, "", {"server"}));
  reply.checkpoints[0].metrics.clear();
  auto leave = [&](const char* name, std::uint64_t seq, std::uint64_t timeline,
                   const char* branch) {
    auto left = row(name, seq, "0.850", {"server", "workstation"});
    left.current = false;
    left.timeline = "3." + std::to_string(timeline);
    left.dataset = "jobs/finetune-001." + std::string(branch);
    reply.checkpoints.push_back(left);
  };
  // By time, as the controller sends them: the second branch has one of the timeline before it,
  // too.
  leave("epoch-11", 11, 9, "t3-12-00000000");
  leave("epoch-20", 20, 9, "t3-9-00000000");
  leave("epoch-22", 22, 12, "t3-12-00000000");
  auto fork = [](std::uint64_t left, std::uint64_t timeline, Fork::Why why, Millis ago) {
    Fork made;
    made.left = generation(left);
    made.timeline = generation(timeline);
    made.why = why;
    made.by = "uid 1000";
    made.at = before(ago);
    return made;
  };
  reply.forks = {fork(9, 12, Fork::Why::resume_from, minutes(90)),
                 fork(12, 17, Fork::Why::rollback, minutes(70))};
  expect_all_forms("checkpoints", reply);
  reply.checkpoints.clear();
  expect_golden("checkpoints_none", render(reply, plain()));
}

TEST(Render, Why) {
  api::WhyReply reply;
  reply.job = finetune();
  reply.job.state = JobState::pending;
  reply.job.node.clear();
  reply.job.reason = "no node can hold it";
  reply.reasons = {reply.job.reason, "its model llama70b requires vram:48"};
  reply.rejection = nobody();
  expect_all_forms("why_impossible", reply);
  reply.rejection->nodes[1].shortfalls[0].for_now = true;
  expect_golden("why_waits", render(reply, plain()));
  api::WhyReply running;
  running.job = finetune();
  running.job.reason = "prefer gpu A100";
  running.reasons = {"prefer gpu A100"};
  running.placement = Placement{*NodeName::parse("server"), {"GPU-1"}, 0, "prefer gpu A100"};
  const std::string told = render(running, plain());
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 1) << "each reason once: " << told;
}

TEST(Render, DispatchForkAndOrders) {
  api::DispatchReply dispatched;
  dispatched.job = finetune();
  dispatched.job.state = JobState::preparing;
  dispatched.placement =
      Placement{*NodeName::parse("server"), {"GPU-1"}, 0, "prefer gpu A100; data is there"};
  expect_golden("dispatch", render(dispatched, plain()));
  api::ForkReply fork;
  fork.job = finetune();
  fork.from = "epoch-20";
  fork.left = {"epoch-21", "epoch-22"};
  fork.branch = "jobs/finetune-001.t3-17-00000000";
  fork.safe = true;
  expect_golden("rollback", render(fork, plain()));
  expect_golden("rollback_preview", render_fork_preview(fork, plain()));
  fork.discard = true;
  fork.branch.clear();
  fork.note = "a copy on macbook goes when it is back";
  expect_golden("rollback_discard", render(fork, plain()));
  expect_golden("rollback_discard_preview", render_fork_preview(fork, coloured()));
  fork.left.clear();
  expect_golden("rollback_nothing_preview", render_fork_preview(fork, plain()));
  expect_golden("stop", render(api::JobReply{finetune()}, plain()));
}

TEST(Render, PlanAndApply) {
  api::PlanReply reply;
  reply.diagnostics = {"fleet.exs:9:5: warning: no node :server has joined\n    from :server\n"
                       "         ^"};
  Plan plan;
  plan.base_revision = 17;
  plan.changes = {{Change::Kind::add, "job finetune", "", false},
                  {Change::Kind::add, "job train",
                   "run [python3, train.py, --epochs, 50]; code /home/ada/train; requires vram:48; "
                   "prefer [gpu A100]; checkpoint_every 1 epoch",
                   false},
                  {Change::Kind::change, "job evaluate", "priority 0 -> 10", false},
                  {Change::Kind::remove, "model old", "keep 1 destroys 3 snapshots", true},
                  {Change::Kind::note, "node workstation", "declared 24 GB, found 24 GB", false}};
  PlanStep step;
  step.node = *NodeName::parse("server");
  step.why = "policy models: macbook lacks llama-8b";
  SetProperties action;
  action.dataset = *DatasetName::parse("models/llama-8b");
  step.action = action;
  plan.steps = {step};
  reply.plan = plan;
  expect_all_forms("plan", reply);
  reply.plan = Plan{};
  reply.diagnostics.clear();
  expect_golden("plan_nothing", render(reply, plain()));
  expect_golden("apply", render(api::ApplyReply{{}, 18, plan.changes, true}, plain()));
  expect_golden("apply_nothing", render(api::ApplyReply{{}, 18, {}, false}, plain()));
  const Change note{Change::Kind::note, "node server", "one GPU more than declared", false};
  EXPECT_NE(render(api::ApplyReply{{}, 18, {note}, true}, plain()).find("nothing changed"),
            std::string::npos);
  expect_golden("model_add", render(api::AddModelReply{"llama70b", "models/llama-70b", "server",
                                                       "v1", gibibytes(40)},
                                    plain()));
  api::AddModelReply copied{"llama70b", "models/llama-70b", "server", "v1", gibibytes(40)};
  copied.goes_to = {{"laptop", "models"}, {"workstation", "models"}};
  expect_golden("model_add_copied", render(copied, plain()));
}

TEST(Render, EventsTransfersAndLogs) {
  api::EventsReply events;
  events.events = {{1, before(seconds(70)), "node", "node server", "joined"},
                   {2, before(seconds(60)), "checkpoint", "job finetune", "@epoch-15, loss 0.0023"},
                   {3, before(seconds(2)), "audit", "job finetune", "rollback by uid 1000"}};
  expect_all_forms("events", events);
  api::TransfersReply transfers;
  transfers.transfers = {{"models/llama-70b", "v1", "server", "workstation", "policy models",
                          gibibytes(12), gibibytes(40), mebibytes(110), seconds(254)},
                         {"jobs/finetune-001", "epoch-15", "server", "workstation", "copies 1",
                          mebibytes(3), Bytes{0}, kibibytes(900), std::nullopt}};
  expect_all_forms("transfers", transfers);
  expect_golden("transfers_none", render(api::TransfersReply{}, plain()));
  const LogLine line{before(seconds(3)), true, "loss \x1b[31m0.85\x1b[0m\x1b]0;title\x07"};
  expect_golden("log_line", render(line, false, plain()) + render(line, true, coloured()));
}

TEST(Render, Errors) {
  const Error error{ErrorCode::not_found,
                    "finetune has no checkpoint \"epoch-99\"\nit has epoch-1",
                    {"find the checkpoint", "roll back finetune"},
                    "zedctl checkpoints finetune lists them\nor take the newest"};
  expect_golden("error", render(error, plain()) + render(error, coloured()));
}

TEST(Render, NeverWiderThanTheTerminal) {
  for (std::size_t width = 60; width <= 140; width += 7) {
    EXPECT_LE(widest(render(api::JobsReply{{finetune()}}, plain(width))), width);
    api::EventsReply events;
    EXPECT_LE(
        widest(render(
            api::TransfersReply{
                {{"models/a-very-long-name-of-a-model", "v1", "a", "b", "why", {}, {}, {}, {}}}},
            plain(width))),
        width);
  }
}

TEST(Render, NodesWithAllThereIsToSayFitTheTerminalToo) {
  View view = wide();
  for (view.width = 80; view.width <= 240; view.width += 20)
    EXPECT_LE(widest(render(fleet(), view)), view.width);
  view.width = 100;
  expect_golden("nodes_wide_100", render(fleet(), view));
}

TEST(Render, HostileNamesStayText) {
  api::JobRow job = finetune();
  job.name = "x\x1b[2J\x1b]0;owned\x07\r\n\xff\xe2\x80\xae y";
  job.reason = "line\nbreak";
  const std::string text = render(api::JobsReply{{job}}, plain());
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_EQ(text.find("\xe2\x80\xae"), std::string::npos);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
}

TEST(Render, WhatIsKnownOfAModel) {
  api::ShowModelReply reply;
  reply.model.name = "llama";
  reply.model.version = "2";
  reply.model.size = mebibytes(4682);
  reply.model.dataset = "models/llama.v2";
  reply.model.requirement = "vram:7GiB";
  reply.model.copies = {{"server", "@v2", true}, {"laptop", "@v2", false}};
  reply.model.properties = {{"format", "gguf"},
                            {"architecture", "llama"},
                            {"quantized", "q4_k_m"},
                            {"bits_per_weight", "4.89"},
                            {"dtype", "q4_k"},
                            {"parameters", "8030261248"},
                            {"context", "131072"},
                            {"licence", "llama3.1"},
                            {"size_gb", "4.91"},
                            {"aliases", "production"},
                            {"source", "jobs/f@epoch-50"},
                            {"epochs", "50"}};
  api::MemoryParts memory;
  memory.context = 32768;
  memory.gpus = 2;
  memory.weights = mebibytes(4403);
  memory.cache = mebibytes(2176);
  memory.compute = mebibytes(363);
  memory.overhead = mebibytes(1024);
  memory.total = mebibytes(7966);
  memory.largest = mebibytes(4123);
  reply.memory = memory;
  reply.use.context = 32768;
  reply.use.cache = "q8_0";
  reply.use.parallel = 4;
  reply.use.flash_attention = false;
  expect_all_forms("model_show", reply);
  reply.memory.reset();
  reply.model.properties = {{"quantized", "none"}, {"dtype", "bf16"}, {"unread", "GGUF version 9"}};
  reply.notes = {"its files do not tell how much memory it takes"};
  expect_golden("model_show_unknown", render(reply, plain()));
}

TEST(Render, WhereAModelFits) {
  api::FitReply reply;
  reply.model = "llama";
  reply.memory.context = 131072;
  reply.memory.total = gibibytes(22);
  reply.nodes = {
      {"server", {"NVIDIA A100-SXM4-80GB"}, 131072, true, gibibytes(22), gibibytes(80), ""},
      {"workstation",
       {"NVIDIA GeForce RTX 4090"},
       90112,
       false,
       gibibytes(23),
       gibibytes(24),
       "1 GPU busy at present"},
      {"laptop", {"NVIDIA GeForce RTX 3050"}, 0, false, gibibytes(6), gibibytes(4), ""},
      {"cpu", {}, 0, false, {}, {}, "no GPU"}};
  expect_all_forms("fit", reply);
  expect_golden("fit_nowhere", render(api::FitReply{"llama", {}, {}}, plain()));
}

TEST(Render, VersionsOfModels) {
  expect_golden("model_alias", render(api::AliasReply{"llama", "2", "production", "1"}, plain()));
  EXPECT_EQ(render(api::AliasReply{"llama", "", "production", "1"}, plain()),
            "production no longer stands for version 1 of llama\n");
  api::RemoveModelReply gone{"llama",    "1",        "models/llama", {"job infer runs with it"},
                             {"server"}, {"laptop"}, false};
  expect_golden("model_rm_preview", render(gone, plain()));
  gone.removed = true;
  expect_golden("model_rm", render(gone, plain()));
  api::LineageReply lineage{"model llama@2",
                            {{1, "job", "finetune@epoch-50", "epochs 50, loss 0.021"},
                             {2, "data", "datasets/digits", ""},
                             {2, "model", "base@1", "models/base"}},
                            {}};
  expect_golden("lineage", render(lineage, coloured()));
}

}  // namespace
}  // namespace zed::cli
