// Stories of machines: jobs that take theirs along, nodes that fail, go for good or are full.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.hpp"
#include "controller/ends.hpp"
#include "controller/lab_testing.hpp"

namespace zed::controller {
namespace {

using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::lab_with;
using testing::node;
using ::testing::Not;
using testing::World;
using Kind = ExitRecord::Kind;

const std::string train = R"(
  job :train do
    run ["train"]
    requires gpus: 1
    copies 0
    retries 2
  end)";

const std::string train_on_old = R"(
  job :train do
    run ["train"]
    requires gpus: 1
    prefer node: :old
  end)";

// ---- crashes and failing nodes ------------------------------------------------------------------

TEST(Crashes, AJobThatTakesItsSupervisorAlongIsHeld) {
  World world("server: A100/80; spare: A100/80");
  ASSERT_TRUE(world.apply(lab_with(train)));
  world.dispatch("train").value();
  for (int i = 0; i < most_crashes; ++i) {
    ASSERT_THAT(world.show("train"), HasSubstr("running")) << i;
    world.exits("train", Kind::supervisor_lost);
    world.pass(seconds(5));
  }
  EXPECT_EQ(world.show("train"), "stopped");
  EXPECT_THAT(world.job("train").outcome->reason,
              HasSubstr("held: it took its supervisor along 5"));
  api::Resume resume;
  resume.job = "train";
  world.must(resume);
  world.pass(seconds(2));
  EXPECT_THAT(world.show("train"), HasSubstr("running")) << "a person's word";
}

TEST(Crashes, ACheckpointBetweenShowsThatItGetsSomewhere) {
  World world("server: A100/80");
  ASSERT_TRUE(world.apply(lab_with(train)));
  world.dispatch("train").value();
  for (int i = 0; i < 2 * most_crashes; ++i) {
    world.commits("train", "epoch-" + std::to_string(i + 1));
    for (Attempt& attempt : world.agent("server").attempts)
      attempt.last_checkpoint =
          world.agent("server").datasets.at(testing::dataset("jobs/train")).newest_checkpoint()->id;
    world.exits("train", Kind::supervisor_lost);
    world.pass(seconds(5));
  }
  EXPECT_THAT(world.show("train"), HasSubstr("running"));
}

TEST(FailingNode, IsDrainedAfterDifferentJobsInARow) {
  World world("bad: A100/80 x4; good: RTX 3080/10 x8");
  std::string jobs;
  for (const char* name : {"a", "b", "c", "d"})
    jobs += std::string("  job :") + name + " do\n    run [\"x\"]\n    requires gpus: 1\n" +
            "    prefer node: :bad\n  end\n";
  ASSERT_TRUE(world.apply(lab_with(jobs)));
  world.agent("bad").refuses.insert("start-attempt");
  for (const char* name : {"a", "b", "c"})
    world.dispatch(name).value();
  world.pass(minutes(3));
  for (const char* name : {"a", "b", "c"})
    EXPECT_EQ(world.show(name), "running on good") << name;
  const auto& duties = world.state().desired().duties;
  ASSERT_TRUE(duties.contains(node("bad")));
  EXPECT_EQ(duties.at(node("bad")).duty, Duty::draining);
  EXPECT_EQ(duties.at(node("bad")).by, "zed");
  EXPECT_THAT(to_json(world.must(api::ListNodes{})), HasSubstr("3 different jobs in a row"));
  world.agent("bad").refuses.clear();
  api::SetNodeDuty uncordon;
  uncordon.node = "bad";
  uncordon.duty = api::NodeDuty::uncordon;
  world.must(uncordon);
  world.dispatch("d").value();
  world.pass(seconds(2));
  EXPECT_EQ(world.show("d"), "running on bad");
}

TEST(FailingNode, TheLastOneIsLeftInPeace) {
  World world("only: A100/80 x4");
  std::string jobs;
  for (const char* name : {"a", "b", "c"})
    jobs += std::string("  job :") + name + " do\n    run [\"x\"]\n    requires gpus: 1\n  end\n";
  ASSERT_TRUE(world.apply(lab_with(jobs)));
  world.agent("only").refuses.insert("start-attempt");
  for (const char* name : {"a", "b", "c"})
    world.dispatch(name).value();
  world.pass(minutes(3));
  EXPECT_THAT(world.state().desired().duties, IsEmpty());
}

// ---- node forget --------------------------------------------------------------------------------

TEST(Forget, FreesTheNameOfAMachineThatIsGone) {
  World world("server: A100/80; old: A100/80");
  ASSERT_TRUE(world.apply(lab_with(train)));
  api::ForgetNode forget;
  forget.node = "old";
  EXPECT_EQ(world.ask(forget).error().code, ErrorCode::refused) << "it is connected";
  world.goes_silent("old");
  world.must(forget);
  EXPECT_THAT(to_json(world.must(api::ListNodes{})), Not(HasSubstr("\"old\"")));
  world.restart();
  EXPECT_FALSE(world.state().desired().members.contains(node("old")));
  // Another machine may have the name now.
  world.agent("old").id = NodeId{{0xEE}};
  world.returns("old");
  world.pass(seconds(2));
  EXPECT_EQ(world.state().desired().members.at(node("old")), NodeId{{0xEE}});
}

TEST(Forget, ItsJobsGoOnFromTheCopiesOfOthersIfForced) {
  World world("old: A100/80; server: A100/80");
  ASSERT_TRUE(world.apply(lab_with(train_on_old)));
  world.dispatch("train").value();
  world.commits("train", "epoch-1");
  world.pass(seconds(10));
  world.goes_silent("old");
  api::ForgetNode forget;
  forget.node = "old";
  auto refused = world.ask(forget);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("is the home of 1 job (train)"));
  forget.force = true;
  world.must(forget);
  world.pass(seconds(5));
  EXPECT_EQ(world.show("train"), "running on server");
}

// ---- the journal's second node ------------------------------------------------------------------

TEST(Second, OneWhoseDiskStaysFullIsReplaced) {
  World world("server: A100/80; full:; other:", node("server"));
  ASSERT_TRUE(world.apply(lab_with(train)));
  world.pass(seconds(1));
  const NodeName first = world.state().desired().second;
  ASSERT_FALSE(first.empty());
  world.agent(first.str()).swallows.insert("journal-records");
  world.dispatch("train").value();
  world.pass(seconds(30));
  EXPECT_EQ(world.state().desired().second, first) << "it may only be slow";
  world.pass(minutes(1));
  EXPECT_NE(world.state().desired().second, first);
  EXPECT_THAT(world.events,
              Contains(Field(&api::FleetEvent::text, HasSubstr("is its disk full?"))));
  world.pass(seconds(5));
  EXPECT_THAT(to_json(world.must(api::GetStatus{})), HasSubstr("\"safe\":true"));
}

TEST(Second, TheOnlyOtherNodeStaysEvenIfItIsFull) {
  World world("server: A100/80; full:", node("server"));
  ASSERT_TRUE(world.apply(lab_with(train)));
  world.agent("full").swallows.insert("journal-records");
  world.dispatch("train").value();
  world.pass(minutes(3));
  EXPECT_EQ(world.state().desired().second, node("full"));
  world.agent("full").swallows.clear();
  world.pass(seconds(30));
  EXPECT_THAT(to_json(world.must(api::GetStatus{})), HasSubstr("\"safe\":true"));
}

}  // namespace
}  // namespace zed::controller
