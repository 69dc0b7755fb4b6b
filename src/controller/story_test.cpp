// Stories of a fleet, as a person would tell them.

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.hpp"
#include "controller/testing.hpp"

namespace zed::controller {
namespace {

using ::testing::ElementsAre;
using testing::FakeAgent;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::node;
using testing::World;
using Kind = ExitRecord::Kind;

const char* const cluster = R"(
deploy :lab, pool: "tank" do
  job :finetune do
    dataset "jobs/finetune-001"
    run ["train"]
    requires vram: 20
    prefer gpu: "A100"
    retries 1
  end
  job :other do
    dataset "jobs/other-001"
    run ["train"]
    requires vram: 20
    copies 0
  end
  job :huge do
    dataset "jobs/huge-001"
    run ["train"]
    requires vram: 500
  end
  job :infer do
    dataset "jobs/infer-001"
    model :llama
    run ["infer"]
    requires vram: 8
    prefer node: :workstation
  end
  job :second do
    dataset "jobs/second-001"
    run ["train"]
    after :finetune
  end
end
)";

World lab(const std::string& machine = "") {
  World world("server: A100/80 x2; workstation: RTX 4090/24; laptop:",
              machine.empty() ? NodeName{} : node(machine));
  auto applied = world.apply(cluster);
  EXPECT_TRUE(applied) << applied.error().describe();
  return world;
}

std::string text(const Value& value, std::string_view key) {
  const Value* member = value.find(key);
  return member != nullptr && member->as_text() != nullptr ? *member->as_text() : "";
}

api::Rollback rollback_to(const std::string& job, const std::string& checkpoint) {
  api::Rollback op;
  op.job = job;
  op.checkpoint = checkpoint;
  return op;
}

api::Resume resume(const std::string& job, const std::string& from = "",
                   const std::string& on = "") {
  api::Resume op;
  op.job = job;
  op.from = from;
  op.on = on;
  return op;
}

template <class Op> Op on_job(const std::string& job) {
  Op op;
  op.job = job;
  return op;
}

TEST(Story, ANodeThatIsBehindBecomesTheHomeAfterItWasBroughtUp) {
  World world("server: A100/80; workstation: RTX 4090/24; spare: RTX 3080/10");
  ASSERT_TRUE(world.apply(cluster));
  world.dispatch("finetune").value();
  world.commits("finetune", "epoch-1");
  world.pass(seconds(5));
  world.goes_silent("workstation");
  world.commits("finetune", "epoch-2");
  world.commits("finetune", "epoch-3");
  world.pass(seconds(40));
  ASSERT_EQ(world.holds("spare", "finetune"), "epoch-1 epoch-2 epoch-3") << "a new copy instead";
  ASSERT_EQ(world.holds("workstation", "finetune"), "epoch-1");
  world.goes_silent("server");
  world.pass(seconds(40));
  EXPECT_EQ(world.show("finetune"), "lost on server") << "the spare one is too small";
  world.returns("workstation");
  world.pass(seconds(10));
  EXPECT_EQ(world.show("finetune"), "running on workstation");
  EXPECT_EQ(world.holds("workstation", "finetune"), "epoch-1 epoch-2 epoch-3");
}

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

TEST(Story, ALostNodesJobGoesOnFromTheNewestReplicatedCheckpoint) {
  World world = lab();
  world.dispatch("finetune").value();
  world.commits("finetune", "epoch-1");
  world.pass(seconds(5));
  const Timeline before = world.job("finetune").timeline;
  world.goes_silent("server");
  world.pass(seconds(20));
  EXPECT_EQ(world.show("finetune"), "running on server") << "suspect is not lost";
  world.pass(seconds(20));
  EXPECT_EQ(world.show("finetune"), "running on workstation");
  const DesiredJob& job = world.job("finetune");
  ASSERT_EQ(job.forks.size(), 1U);
  EXPECT_EQ(job.forks[0].fork.why, Fork::Why::node_lost);
  EXPECT_EQ(job.forks[0].from_name, "epoch-1");
  EXPECT_EQ(job.forks[0].fork.left, before);
  EXPECT_GT(job.timeline, before);
}

TEST(Story, TheReturningNodeStopsItsStaleCopyAndKeepsItAsABranch) {
  World world = lab();
  world.dispatch("finetune").value();
  world.commits("finetune", "epoch-1");
  world.pass(seconds(5));
  world.goes_silent("server");
  world.pass(seconds(40));
  world.commits("finetune", "epoch-2");
  world.returns("server");
  world.pass(seconds(10));
  EXPECT_EQ(world.live_attempts(), 1U);
  EXPECT_EQ(world.show("finetune"), "running on workstation");
  EXPECT_THAT(world.branches("server", "finetune"), ElementsAre("closing-1"));
  EXPECT_EQ(world.holds("server", "finetune"), "epoch-1 epoch-2") << "a replica like others";
}

TEST(Story, ASuccessOfALostNodeCountsWhenItReturns) {
  World world = lab();
  world.dispatch("finetune").value();
  world.commits("finetune", "epoch-1");
  world.pass(seconds(5));
  world.goes_silent("server");
  world.pass(seconds(40));
  ASSERT_EQ(world.show("finetune"), "running on workstation");
  world.exits("finetune", Kind::success, "server");
  world.returns("server");
  world.pass(seconds(10));
  EXPECT_EQ(world.show("finetune"), "succeeded");
  EXPECT_EQ(world.live_attempts(), 0U);
  EXPECT_EQ(world.job("finetune").home, node("server"));
  EXPECT_THAT(world.branches("workstation", "finetune"), ElementsAre("closing-2"));
  EXPECT_EQ(world.holds("workstation", "finetune"), world.holds("server", "finetune"));
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

TEST(Story, WithoutAReachableCopyTheJobWaitsAndSaysSo) {
  World world = lab();
  world.dispatch("other").value();
  const std::string home = world.job("other").home.str();
  world.commits("other", "epoch-1");
  world.goes_silent(home);
  world.pass(seconds(60));
  EXPECT_EQ(world.state().state_of(world.job("other").job.id), JobState::waiting);
  Value why = world.must(on_job<api::WhyJob>("other"));
  EXPECT_THAT(to_json(why), HasSubstr("--from start"));
  EXPECT_THAT(world.job("other").forks, IsEmpty());
  world.returns(home);
  world.pass(seconds(5));
  EXPECT_EQ(world.show("other"), "running on " + home) << "it never stopped there";
}

TEST(Story, EvenARestartedControllerKnowsThatThereWasACheckpoint) {
  World world = lab();
  world.dispatch("other").value();
  const std::string home = world.job("other").home.str();
  world.commits("other", "epoch-1");
  world.goes_silent(home);
  world.restart();
  world.pass(seconds(60));
  EXPECT_EQ(world.state().state_of(world.job("other").job.id), JobState::waiting);
}

TEST(Story, AJobThatNeverHadACheckpointStartsAgainFromItsInput) {
  World world = lab();
  world.dispatch("other").value();
  const std::string home = world.job("other").home.str();
  world.goes_silent(home);
  world.pass(seconds(40));
  ASSERT_EQ(world.job("other").forks.size(), 1U);
  EXPECT_FALSE(world.job("other").forks[0].fork.from);
  EXPECT_NE(world.job("other").home.str(), home);
  EXPECT_EQ(world.state().state_of(world.job("other").job.id), JobState::running);
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
  for (int i = 0; i < 5; ++i) {
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

TEST(Story, NothingIsActedOnBeforeItIsDurable) {
  World world = lab();
  world.hold_journal = true;
  api::Dispatch dispatch = on_job<api::Dispatch>("finetune");
  world.deliver(Requested{900, dispatch, {"me", "test"}});
  world.settle();
  EXPECT_FALSE(world.was_told("server", "create-dataset"));
  world.hold_journal = false;
  world.settle();
  EXPECT_EQ(world.show("finetune"), "running on server");
}

TEST(Story, AForkWaitsUntilItIsOnTheSecondNode) {
  World world = lab("laptop");
  world.dispatch("finetune").value();
  world.commits("finetune", "epoch-1");
  world.commits("finetune", "epoch-2");
  world.pass(seconds(5));
  const std::string second = world.state().desired().second.str();
  ASSERT_EQ(second, "server");
  EXPECT_EQ(world.agent("server").copy, world.journal) << "it has all of it";
  world.agent("server").swallows.insert("journal-records");
  Value reply = world.must(rollback_to("finetune", "@epoch-1"));
  EXPECT_FALSE(*reply.find("safe")->as_bool());
  world.pass(seconds(4));
  EXPECT_FALSE(world.was_told("server", "apply-fork")) << "accepted is not safe";
  EXPECT_FALSE(world.was_told("server", "stop-attempt") && world.live_attempts() == 0);
  world.agent("server").swallows.clear();
  world.goes_silent("server");
  world.returns("server");
  world.pass(seconds(5));
  EXPECT_EQ(world.holds("server", "finetune"), "epoch-1");
  EXPECT_EQ(world.agent("server").copy, world.journal);
}

TEST(Story, ARestartAtAnyTimeLosesNothing) {
  World world = lab();
  world.dispatch("finetune").value();
  world.restart();
  EXPECT_EQ(world.show("finetune"), "running on server");
  EXPECT_EQ(world.job("finetune").attempts, 1) << "the running attempt is kept";
  world.commits("finetune", "epoch-1");
  world.exits("finetune", Kind::success);
  world.restart();
  EXPECT_EQ(world.show("finetune"), "succeeded");
}

TEST(Story, AnExitWhileTheControllerIsAwayIsHeardAfterwards) {
  World world = lab();
  world.dispatch("finetune").value();
  for (auto& attempt : world.agent("server").attempts)
    attempt.phase = AttemptPhase::ended;
  ExitRecord exit;
  exit.kind = Kind::success;
  world.agent("server").attempts[0].exit = exit;
  world.restart();
  EXPECT_EQ(world.show("finetune"), "succeeded");
}

TEST(Story, ATakeoverFromTheSecondCopyGoesOn) {
  World world = lab("laptop");
  world.dispatch("finetune").value();
  world.commits("finetune", "epoch-1");
  world.pass(seconds(5));
  ASSERT_EQ(world.state().desired().second.str(), "server");
  ControllerTerm before = world.state().term();
  world.take_over_on("server");
  world.pass(seconds(5));
  EXPECT_GT(world.state().term(), before);
  EXPECT_EQ(world.show("finetune"), "running on server");
  EXPECT_EQ(world.job("finetune").attempts, 1);
}

/// Takes over on the server from a copy as it was before `meanwhile`.
void take_over_without(World& world, const std::function<void()>& meanwhile) {
  const auto copy = world.agent("server").copy;
  const std::uint64_t seq = world.agent("server").copy_seq;
  meanwhile();
  world.agent("server").copy = copy;
  world.agent("server").copy_seq = seq;
  world.take_over_on("server");
  world.pass(seconds(5));
}

TEST(Story, AnAttemptThatTheCopyLacksIsAdoptedByATakeover) {
  World world = lab("laptop");
  world.dispatch("finetune").value();
  world.commits("finetune", "epoch-1");
  world.pass(seconds(5));
  Generation running;
  take_over_without(world, [&] {
    world.exits("finetune", Kind::supervisor_lost);
    world.pass(seconds(5));
    running = world.job("finetune").placed->generation;
  });
  ASSERT_TRUE(world.job("finetune").placed);
  EXPECT_EQ(world.job("finetune").placed->generation, running) << "it goes on, undisturbed";
  EXPECT_EQ(world.show("finetune"), "running on server");
  EXPECT_EQ(world.live_attempts(), 1U);
}

TEST(Story, AForkThatTheCopyLacksIsAdoptedByATakeover) {
  World world = lab("laptop");
  world.dispatch("finetune").value();
  for (const char* checkpoint : {"epoch-1", "epoch-2"})
    world.commits("finetune", checkpoint);
  world.pass(seconds(5));
  Timeline timeline;
  take_over_without(world, [&] {
    world.must(api::Rollback{"finetune", "@epoch-1"});
    world.pass(seconds(5));
    timeline = world.job("finetune").timeline;
    world.exits("finetune", Kind::supervisor_lost);
  });
  ASSERT_EQ(world.job("finetune").forks.size(), 1U);
  EXPECT_EQ(world.job("finetune").timeline, timeline);
  EXPECT_EQ(world.job("finetune").forks[0].from_name, "epoch-1");
  world.pass(seconds(5));
  EXPECT_EQ(world.show("finetune"), "running on server");
}

TEST(Story, AHigherTermEndsThisController) {
  World world = lab();
  world.agent("laptop").term = ControllerTerm{99, ControllerId{{1}}};
  world.goes_silent("laptop");
  world.returns("laptop");
  ASSERT_TRUE(world.stepped_down);
  EXPECT_EQ(world.stepped_down->higher.number, 99U);
  EXPECT_TRUE(world.state().has_stepped_down());
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

TEST(Story, AFullJournalDiskRefusesChangesAndRecovers) {
  World world = lab();
  world.break_journal = true;
  auto reply = world.dispatch("finetune");
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ErrorCode::timeout);
  auto refused = world.dispatch("other");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  EXPECT_TRUE(world.ask(api::ListNodes{}));
  world.break_journal = false;
  world.pass(seconds(5));
  EXPECT_EQ(world.show("finetune"), "running on server") << "accepted after all";
}

TEST(Story, ARolledBackByHandJobForksToo) {
  World world = lab();
  world.dispatch("finetune").value();
  world.commits("finetune", "epoch-1");
  world.commits("finetune", "epoch-2");
  world.pass(seconds(5));
  auto& held = world.agent("server").datasets.at(testing::dataset("jobs/finetune-001"));
  DatasetChanged change{held, true, {held.snapshots.back().id}};
  change.dataset.snapshots.clear();
  held.snapshots.pop_back();
  world.say(world.agent("server"), change);
  world.settle();
  ASSERT_EQ(world.job("finetune").forks.size(), 1U);
  EXPECT_EQ(world.job("finetune").forks[0].fork.why, Fork::Why::hand_rollback);
  EXPECT_EQ(world.job("finetune").forks[0].from_name, "epoch-1");
  world.pass(seconds(5));
  EXPECT_EQ(world.show("finetune"), "running on server");
  EXPECT_EQ(world.holds("workstation", "finetune"), "epoch-1");
}

TEST(Operations, ADispatchWithTheSameUuidIsOneJob) {
  World world = lab();
  api::Dispatch dispatch = on_job<api::Dispatch>("finetune");
  dispatch.uuid = "0123456789abcdef0123456789abcdef";
  world.must(dispatch);
  world.must(dispatch);
  EXPECT_EQ(world.state().desired().jobs.size(), 1U);
  dispatch.uuid = "fedcba9876543210fedcba9876543210";
  auto other = world.ask(dispatch);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::refused);
  dispatch.uuid = "x";
  EXPECT_EQ(world.ask(dispatch).error().code, ErrorCode::invalid);
}

TEST(Operations, ASucceededJobRunsAgainUnderTheNextNumber) {
  World world = lab();
  world.dispatch("finetune").value();
  world.commits("finetune", "epoch-1");
  world.exits("finetune", Kind::success);
  auto refused = world.dispatch("finetune");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::refused);
  EXPECT_THAT(refused.error().hint, HasSubstr("--again"));
  auto rollback = world.ask(rollback_to("finetune", "@epoch-1"));
  ASSERT_FALSE(rollback);
  EXPECT_THAT(rollback.error().hint, HasSubstr("--again"));
  api::Dispatch again = on_job<api::Dispatch>("finetune");
  again.again = true;
  world.must(again);
  EXPECT_EQ(world.job("finetune").job.dataset.str(), "jobs/finetune-002");
  EXPECT_EQ(world.show("finetune"), "running on server");
}

TEST(Operations, AThousandPendingJobsAreThereAfterARestart) {
  World world("server: A100/80");
  for (int first = 0; first < 1000; first += 100) {
    std::string text = "deploy :many, pool: \"tank\" do\n";
    for (int i = first; i < first + 100; ++i)
      text += "  job :j" + std::to_string(i) + " do\n    dataset \"jobs/j" + std::to_string(i) +
              "\"\n    run [\"true\"]\n    requires vram: 20\n  end\n";
    auto applied = world.apply(text + "end\n");
    ASSERT_TRUE(applied) << applied.error().describe();
    for (int i = first; i < first + 100; ++i)
      ASSERT_TRUE(world.dispatch("j" + std::to_string(i)));
  }
  world.restart();
  EXPECT_EQ(world.state().desired().jobs.size(), 1000U);
  EXPECT_EQ(world.show("j0"), "running on server");
  EXPECT_EQ(world.show("j999"), "pending");
  world.exits("j0", Kind::success);
  EXPECT_EQ(world.show("j0"), "succeeded");
  std::vector<std::string> placed;
  for (const auto& entry : world.state().desired().jobs)
    if (entry.second.placed) placed.push_back(entry.second.job.name.str());
  EXPECT_THAT(placed, ElementsAre("j1")) << "in the order of their submits";
}

TEST(Operations, ApplyChecksTheRevisionAndTheFile) {
  World world = lab();
  api::Apply apply;
  apply.text = cluster;
  apply.expected_revision = 1;
  EXPECT_EQ(world.ask(apply).error().code, ErrorCode::stale);
  apply.expected_revision.reset();
  apply.text = "deploy :lab do\n  jib :x do\n  end\nend\n";
  auto broken = world.ask(apply);
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code, ErrorCode::invalid);
  EXPECT_THAT(broken.error().message, HasSubstr("2:3"));
}

TEST(Operations, ReadsAnswerWithRows) {
  World world = lab();
  world.dispatch("finetune").value();
  world.commits("finetune", "epoch-1");
  world.pass(seconds(5));
  Value status = world.must(api::GetStatus{});
  EXPECT_EQ(*status.find("gpus")->as_int(), 3);
  EXPECT_EQ(*status.find("gpus_busy")->as_int(), 1);
  EXPECT_EQ(to_json(*status.find("jobs")), R"({"running":1})");
  Value jobs = world.must(api::ListJobs{});
  EXPECT_EQ(text(jobs.find("jobs")->as_list()->front(), "checkpoint"), "@epoch-1");
  Value checkpoints = world.must(on_job<api::ListCheckpoints>("finetune"));
  EXPECT_EQ(to_json(*checkpoints.find("checkpoints")->as_list()->front().find("nodes")),
            R"(["server","workstation"])");
  Value log = world.must(on_job<api::ReadJobLog>("finetune"));
  EXPECT_EQ(text(log.find("lines")->as_list()->front(), "text"), "epoch 1");
  api::MatchNodes match;
  match.requirement.vram = MemorySize::parse("48");
  Value matched = world.must(match);
  EXPECT_EQ(text(matched.find("matches")->as_list()->front(), "node"), "server");
  EXPECT_EQ(matched.find("refusals")->as_list()->size(), 2U);
  EXPECT_EQ(world.ask(on_job<api::WhyJob>("nothing")).error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace zed::controller
