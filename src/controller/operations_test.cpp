// What operations promise beyond the stories.

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
  EXPECT_THAT(rollback.error().hint, HasSubstr("--again --from @CHECKPOINT"));
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

TEST(Operations, CheckpointsOfOneMomentAreInOrder) {
  World world = lab();
  world.dispatch("finetune").value();
  std::vector<std::string> wanted;
  for (int epoch = 1; epoch <= 12; ++epoch) {
    wanted.push_back("epoch-" + std::to_string(epoch));
    world.commits("finetune", wanted.back());
  }
  Value reply = world.must(on_job<api::ListCheckpoints>("finetune"));
  std::vector<std::string> names;
  for (const Value& row : *reply.find("checkpoints")->as_list())
    names.push_back(text(row, "name"));
  EXPECT_EQ(names, wanted);
}

/// Two nodes tell of each checkpoint, and the newest are those that people mean.
TEST(Operations, AHintNamesWhatThereIsOnce) {
  World world = lab();
  world.dispatch("finetune").value();
  for (int epoch = 1; epoch <= 3; ++epoch)
    world.commits("finetune", "epoch-" + std::to_string(epoch));
  world.pass(seconds(5));
  EXPECT_EQ(world.ask(rollback_to("finetune", "@best")).error().hint,
            "known checkpoints: epoch-3, epoch-2, epoch-1");
  EXPECT_EQ(world.ask(api::ExpireBranch{"jobs/finetune-001.1", {}}).error().hint,
            "there are no branches yet");
  api::ListFiles files;
  files.of = "nothing-like-it";
  const std::string hint = world.ask(files).error().hint;
  EXPECT_EQ(hint.find("zed/"), std::string::npos) << hint;
  EXPECT_EQ(hint.find("jobs/finetune-001"), hint.rfind("jobs/finetune-001")) << hint;
  EXPECT_NE(hint.find("jobs/finetune-001"), std::string::npos) << hint;
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
  EXPECT_EQ(checkpoints.find("checkpoints")->as_list()->front().find("metrics")->find("code"),
            nullptr);
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
