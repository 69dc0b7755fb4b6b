// Stories of jobs, as a person would tell them.

#include <algorithm>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.hpp"
#include "controller/lab_testing.hpp"

namespace zed::controller {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = ExitRecord::Kind;

TEST(Story, ADispatchedJobRunsWhereItPrefersAndEnds) {
  World world = lab();
  Value reply = *world.dispatch("finetune");
  EXPECT_EQ(world.show("finetune"), "running on server");
  EXPECT_EQ(text(*reply.find("placement"), "node"), "server");
  world.exits("finetune", Kind::success);
  EXPECT_EQ(world.show("finetune"), "succeeded");
  EXPECT_THAT(world.agent("server").attempts, IsEmpty()) << "acknowledged";
}

TEST(Story, ACheckpointHasACopyOnAnotherNode) {
  World world = lab();
  world.dispatch("finetune").value();
  world.commits("finetune", "epoch-1");
  world.commits("finetune", "epoch-2");
  world.pass(seconds(5));
  EXPECT_EQ(world.holds("server", "finetune"), "epoch-1 epoch-2");
  EXPECT_EQ(world.holds("workstation", "finetune"), "epoch-1 epoch-2")
      << "a node that could run it goes before one that could not";
  EXPECT_EQ(world.holds("laptop", "finetune"), "-");
}

TEST(Story, ASuccessOfARolledBackTimelineDoesNotCount) {
  World world = lab();
  world.dispatch("finetune").value();
  world.commits("finetune", "epoch-1");
  world.commits("finetune", "epoch-2");
  world.agent("server").swallows.insert("stop-attempt");
  world.must(rollback_to("finetune", "@epoch-1"));
  world.exits("finetune", Kind::success);
  world.pass(seconds(5));
  EXPECT_EQ(world.show("finetune"), "running on server");
}

TEST(Story, ARollbackKeepsTheNewerTimelineAsABranchEverywhere) {
  World world = lab();
  world.dispatch("finetune").value();
  for (const char* name : {"epoch-1", "epoch-2", "epoch-3"})
    world.commits("finetune", name);
  world.pass(seconds(5));
  api::Rollback rollback = rollback_to("finetune", "@epoch-1");
  rollback.dry_run = true;
  Value shown = world.must(rollback);
  EXPECT_EQ(to_json(*shown.find("left")), R"(["@epoch-2","@epoch-3"])");
  EXPECT_THAT(world.job("finetune").forks, IsEmpty()) << "a dry run changes nothing";
  rollback.dry_run = false;
  world.must(rollback);
  world.pass(seconds(10));
  EXPECT_EQ(world.show("finetune"), "running on server");
  EXPECT_EQ(world.holds("server", "finetune"), "epoch-1");
  EXPECT_THAT(world.branches("server", "finetune"), ElementsAre("epoch-2 epoch-3 closing-1"));
  EXPECT_THAT(world.branches("workstation", "finetune"), ElementsAre(HasSubstr("epoch-2 epoch-3")));
  EXPECT_EQ(world.job("finetune").attempts, 2);
}

TEST(Story, DiscardDestroysInstead) {
  World world = lab();
  world.dispatch("finetune").value();
  world.commits("finetune", "epoch-1");
  world.commits("finetune", "epoch-2");
  api::Rollback rollback = rollback_to("finetune", "@epoch-1");
  rollback.discard = true;
  world.must(rollback);
  world.pass(seconds(10));
  EXPECT_EQ(world.holds("server", "finetune"), "epoch-1");
  EXPECT_THAT(world.branches("server", "finetune"), IsEmpty());
}

TEST(Story, FailuresAreRetriedWithPausesThenItFails) {
  World world = lab();
  world.dispatch("finetune").value();
  world.exits("finetune", Kind::exit_code);
  EXPECT_EQ(world.show("finetune"), "pending");
  world.pass(seconds(3));
  EXPECT_EQ(world.show("finetune"), "running on server");
  EXPECT_EQ(world.job("finetune").attempts, 2);
  world.exits("finetune", Kind::signal);
  EXPECT_EQ(world.show("finetune"), "failed");
  world.must(resume("finetune"));
  world.pass(seconds(3));
  EXPECT_EQ(world.show("finetune"), "running on server");
}

TEST(Story, AKilledSupervisorIsNotAFailure) {
  World world = lab();
  world.dispatch("finetune").value();
  for (int i = 0; i < 4; ++i) {  // a fifth time it would be held
    world.exits("finetune", Kind::supervisor_lost);
    world.pass(seconds(3));
    ASSERT_EQ(world.show("finetune"), "running on server");
  }
  EXPECT_EQ(world.job("finetune").failures, 0);
}

TEST(Story, StopAndResumeAndCancel) {
  World world = lab();
  world.dispatch("finetune").value();
  world.commits("finetune", "epoch-1");
  world.must(on_job<api::StopJob>("finetune"));
  world.pass(seconds(2));
  EXPECT_EQ(world.show("finetune"), "stopped");
  world.pass(seconds(60));
  EXPECT_EQ(world.show("finetune"), "stopped");
  world.must(resume("finetune"));
  world.pass(seconds(3));
  EXPECT_EQ(world.show("finetune"), "running on server");
  EXPECT_EQ(world.job("finetune").forks.size(), 0U) << "no new timeline for a plain resume";
  world.must(on_job<api::CancelJob>("finetune"));
  world.pass(seconds(2));
  EXPECT_EQ(world.show("finetune"), "cancelled");
  auto again = world.ask(resume("finetune"));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::refused);
}

TEST(Story, ResumeOnAnotherNodeIsAPlannedMoveWithoutAFork) {
  World world = lab();
  world.dispatch("finetune").value();
  world.commits("finetune", "epoch-1");
  world.pass(seconds(5));
  world.must(resume("finetune", "", "workstation"));
  world.pass(seconds(10));
  EXPECT_EQ(world.show("finetune"), "running on workstation");
  EXPECT_THAT(world.job("finetune").forks, IsEmpty());
  EXPECT_EQ(world.holds("workstation", "finetune"), "epoch-1 closing-1");
}

TEST(Story, ResumeFromAnOlderCheckpointOnAnotherNodeIsAFork) {
  World world = lab();
  world.dispatch("finetune").value();
  world.commits("finetune", "epoch-1");
  world.commits("finetune", "epoch-2");
  world.pass(seconds(5));
  world.must(resume("finetune", "@epoch-1", "zed@workstation"));
  world.pass(seconds(10));
  EXPECT_EQ(world.show("finetune"), "running on workstation");
  EXPECT_EQ(world.holds("workstation", "finetune"), "epoch-1");
  EXPECT_THAT(world.branches("server", "finetune"), ElementsAre("epoch-2 closing-1"));
}

TEST(Story, DrainingMovesWhatRuns) {
  World world = lab();
  world.dispatch("finetune").value();
  world.commits("finetune", "epoch-1");
  world.pass(seconds(5));
  api::SetNodeDuty drain;
  drain.node = "server";
  drain.duty = api::NodeDuty::drain;
  world.must(drain);
  world.pass(seconds(10));
  EXPECT_EQ(world.show("finetune"), "running on workstation");
  EXPECT_EQ(world.state().view().nodes.at(node("server")).status, NodeStatus::draining);
}

TEST(Story, WhatNoNodeCanEverHoldIsRefusedAndNotRecorded) {
  World world = lab();
  auto reply = world.dispatch("huge");
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ErrorCode::unplaceable);
  EXPECT_THAT(reply.error().message, HasSubstr("server"));
  EXPECT_TRUE(world.state().desired().jobs.empty());
  Value why = world.must(on_job<api::WhyJob>("huge"));
  const Value* rejection = why.find("rejection");
  ASSERT_NE(rejection, nullptr);
  for (const char* name : {"server", "workstation", "laptop"})
    EXPECT_THAT(to_json(*rejection), HasSubstr(name));
}

const char* const with_code = R"(
deploy :lab, pool: "tank" do
  job :coded do
    run ["train"]
    code "./src"
  end
end
)";

TEST(Story, CodeIsPackedBeforeTheSubmitIsAnswered) {
  World world("server: A100/80", node("server"));
  ASSERT_TRUE(world.apply(with_code));
  world.agent("server").swallows.insert("import-files");
  api::Dispatch dispatch;
  dispatch.job = "coded";
  dispatch.uuid = std::string(32, 'a');
  EXPECT_FALSE(world.ask(dispatch)) << "it answered before the code was packed";
  EXPECT_TRUE(world.state().desired().jobs.empty());
  EXPECT_TRUE(world.was_told("server", "import-files"));

  World calm("server: A100/80", node("server"));
  ASSERT_TRUE(calm.apply(with_code));
  calm.must(dispatch);
  calm.must(dispatch);
  EXPECT_EQ(calm.state().desired().jobs.size(), 1u);
  EXPECT_EQ(calm.show("coded"), "running on server");
}

ImportFiles last_import(World& world, const std::string& node) {
  ImportFiles last;
  for (const PlanStep& step : world.agent(node).orders)
    if (auto* import = std::get_if<ImportFiles>(&step.action)) last = *import;
  return last;
}

TEST(Story, AnImportThatWasCutOffIsBegunAnewAsTheSameDataset) {
  World world("server: A100/80", node("server"));
  FakeAgent& agent = world.agent("server");
  agent.swallows.insert("import-files");
  ASSERT_TRUE(world.apply("deploy :lab do\n model :m do\n file \"m.bin\"\n end\nend"));
  world.pass(seconds(1));
  const ImportFiles first = last_import(world, "server");
  ASSERT_EQ(first.dataset.str(), "models/m");

  Dataset half;
  half.name = first.dataset;
  half.properties = first.properties;
  half.uuid = DatasetId::parse(first.properties.at(property::uuid)).value();
  agent.datasets.emplace(half.name, half);
  world.goes_silent("server");
  world.pass(seconds(2));
  agent.swallows.clear();
  world.returns("server");
  world.pass(seconds(10));
  const ImportFiles second = last_import(world, "server");
  EXPECT_EQ(second.properties.at(property::uuid), first.properties.at(property::uuid));
  EXPECT_NE(second.snapshot, first.snapshot);
}

/// The import that the agent was told last is complete there, as an agent says it.
void finish_import(World& world, const std::string& node, const std::string& dataset) {
  FakeAgent& agent = world.agent(node);
  agent.swallows.erase("import-files");
  PlanStep order;
  for (const PlanStep& step : agent.orders)
    if (auto* import = std::get_if<ImportFiles>(&step.action);
        import && import->dataset.str() == dataset)
      order = step;
  const auto& import = std::get<ImportFiles>(order.action);
  Dataset made;
  made.name = import.dataset;
  made.properties = import.properties;
  made.uuid = DatasetId::parse(import.properties.at(property::uuid)).value();
  Snapshot snapshot;
  snapshot.name = import.snapshot_name;
  snapshot.id = import.snapshot;
  snapshot.createtxg = 1;
  snapshot.referenced = mebibytes(60);
  made.snapshots.push_back(snapshot);
  agent.datasets.insert_or_assign(made.name, made);
  world.say(agent, DatasetChanged{made, false, {}});
  world.say(agent, StepResult{order.id, {}, import.snapshot, Bytes{}});
  world.settle();
}

TEST(Story, AJobGoesOnWhenTheImportOnAnotherNodeIsComplete) {
  World world("server:; workstation: RTX 4090/24", node("server"));
  world.agent("server").swallows.insert("import-files");
  ASSERT_TRUE(world.apply("deploy :lab do\n model :m do\n file \"m.bin\"\n end\n"
                          " job :j do\n model :m\n run [\"x\"]\n requires vram: 8\n end\nend"));
  world.pass(seconds(1));
  ASSERT_TRUE(world.was_told("server", "import-files"));
  world.dispatch("j").value();
  world.pass(seconds(5));
  ASSERT_EQ(world.show("j"), "preparing on workstation");
  finish_import(world, "server", "models/m");
  world.pass(seconds(2));
  EXPECT_EQ(world.show("j"), "running on workstation");
}

std::size_t nodes_told_to_receive(World& world, const std::vector<std::string>& nodes) {
  return static_cast<std::size_t>(
      std::count_if(nodes.begin(), nodes.end(), [&](const std::string& name) {
        return world.was_told(name, "receive-snapshot");
      }));
}

TEST(Story, AJobGoesOnWhenTheNodeThatHasItsModelHasRoomForAnotherTransfer) {
  const std::vector<std::string> nodes{"a", "b", "c", "d", "e", "f"};
  std::string fleet = "server:";
  std::string file = "deploy :lab do\n";
  for (const std::string& name : nodes) {
    fleet += "; " + name + ": A100/80";
    file += " job :j" + name + " do\n model :m\n run [\"x\"]\n requires vram: 8\n end\n";
  }
  World world(fleet, node("server"));
  world.has_model("server", "m");
  world.agent("server").swallows.insert("send-snapshot");
  for (const std::string& name : nodes)
    world.agent(name).swallows.insert("receive-snapshot");
  ASSERT_TRUE(world.apply(file + "end"));
  for (const std::string& name : nodes)
    world.dispatch("j" + name).value();
  world.pass(seconds(2));
  ASSERT_EQ(nodes_told_to_receive(world, nodes), 4u);
  auto told = std::find_if(nodes.begin(), nodes.end(), [&](const std::string& name) {
    return world.was_told(name, "receive-snapshot");
  });
  world.goes_silent(*told);
  world.pass(seconds(2));
  EXPECT_EQ(nodes_told_to_receive(world, nodes), 5u);
}

TEST(Story, CodeThatCannotBePackedIsNotSubmitted) {
  World world("server: A100/80", node("server"));
  ASSERT_TRUE(world.apply(with_code));
  world.agent("server").refuses.insert("import-files");
  auto reply = world.dispatch("coded");
  ASSERT_FALSE(reply);
  EXPECT_THAT(reply.error().describe(), HasSubstr("pack the code"));
  EXPECT_TRUE(world.state().desired().jobs.empty());
  world.agent("server").refuses.clear();
  world.pass(seconds(1));
  EXPECT_TRUE(world.dispatch("coded"));
  world.pass(seconds(5));
  EXPECT_EQ(world.show("coded"), "running on server");
}

TEST(Story, WhatIsOnlyBusyWaitsAndStartsWhenThereIsRoom) {
  World world("server: A100/80");
  ASSERT_TRUE(world.apply(cluster));
  world.dispatch("finetune").value();
  world.dispatch("other").value();
  EXPECT_EQ(world.show("other"), "pending");
  world.exits("finetune", Kind::success);
  world.pass(seconds(1));
  EXPECT_EQ(world.show("other"), "running on server");
}

TEST(Story, AJobAfterAnotherStartsWhenThatHasSucceeded) {
  World world = lab();
  world.dispatch("finetune").value();
  world.dispatch("second").value();
  world.pass(seconds(5));
  EXPECT_EQ(world.show("second"), "pending");
  world.exits("finetune", Kind::success);
  world.pass(seconds(1));
  EXPECT_EQ(world.state().state_of(world.job("second").job.id), JobState::running);
}

TEST(Story, TheModelIsBroughtToTheNodeFirst) {
  World world = lab();
  auto without = world.dispatch("infer");
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().code, ErrorCode::not_found);
  EXPECT_THAT(without.error().hint, HasSubstr("model add"));
  api::AddModel add;
  add.name = "llama";
  add.path = "/data/llama.gguf";
  add.node = "server";
  add.version = "2.1";
  Value reply = world.must(add);
  EXPECT_EQ(text(reply, "dataset"), "models/llama");
  EXPECT_EQ(text(reply, "snapshot"), "@v2.1");
  world.dispatch("infer").value();
  world.pass(seconds(5));
  EXPECT_EQ(world.show("infer"), "running on workstation") << "the wish goes before the data";
  EXPECT_TRUE(world.agent("workstation").datasets.contains(testing::dataset("models/llama")));
}

TEST(Story, AFailingNodeIsTriedWithPausesAndThenLeft) {
  World world = lab();
  world.agent("server").refuses.insert("create-dataset");
  world.dispatch("finetune").value();
  world.pass(seconds(30));
  auto& orders = world.agent("server").orders;
  auto tries = std::count_if(orders.begin(), orders.end(), [](const PlanStep& step) {
    return std::holds_alternative<CreateDataset>(step.action);
  });
  EXPECT_EQ(tries, 4) << "after 1 s, 2 s and 4 s";
  EXPECT_EQ(world.show("finetune"), "running on workstation");
}

/// A person changes the job's dataset on server, and its agent says so: `change` tells which
/// snapshots are gone.
void changes_by_hand(World& world,
                     const std::function<std::vector<CheckpointId>(Dataset&)>& change) {
  auto& held = world.agent("server").datasets.at(testing::dataset("jobs/finetune-001"));
  auto gone = change(held);
  DatasetChanged changed{held, true, std::move(gone)};
  changed.dataset.snapshots.clear();
  world.say(world.agent("server"), changed);
  world.settle();
}

void expect_fork_by_hand(World& world, const std::string& from) {
  ASSERT_EQ(world.job("finetune").forks.size(), 1U);
  EXPECT_EQ(world.job("finetune").forks[0].fork.why, Fork::Why::hand_rollback);
  EXPECT_EQ(world.job("finetune").forks[0].from_name, from);
}

TEST(Story, ARolledBackByHandJobForksToo) {
  World world = lab();
  world.dispatch("finetune").value();
  world.commits("finetune", "epoch-1");
  world.commits("finetune", "epoch-2");
  world.pass(seconds(5));
  changes_by_hand(world, [](Dataset& held) {
    const CheckpointId last = held.snapshots.back().id;
    held.snapshots.pop_back();
    return std::vector{last};
  });
  expect_fork_by_hand(world, "epoch-1");
  world.pass(seconds(5));
  EXPECT_EQ(world.show("finetune"), "running on server");
  EXPECT_EQ(world.holds("workstation", "finetune"), "epoch-1");
}

TEST(Story, ARollbackByHandToTheNewestForksWhereItWentBackTo) {
  World world = lab();
  world.dispatch("finetune").value();
  world.commits("finetune", "epoch-1");
  // No snapshot had to go; the job was faster than its stop and committed what it remembered.
  world.commits("finetune", "epoch-2");
  world.pass(seconds(5));
  changes_by_hand(world, [](Dataset& held) {
    held.properties[property::reverted] = "@epoch-1";
    return std::vector<CheckpointId>{};
  });
  expect_fork_by_hand(world, "epoch-1");
}

}  // namespace
}  // namespace zed::controller
