// Stories of the queue: who goes first, who waits for whom, who makes room.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.hpp"
#include "controller/testing.hpp"

namespace zed::controller {
namespace {

using ::testing::HasSubstr;
using testing::World;
using Kind = ExitRecord::Kind;

/// Jobs of that many GPUs each, by name, with further lines.
std::string cluster_of(const std::vector<std::pair<std::string, std::string>>& jobs) {
  std::string text = "deploy :lab, pool: \"tank\" do\n";
  for (const auto& [name, lines] : jobs)
    text += "  job :" + name + " do\n    run [\"train\"]\n    copies 0\n    " + lines + "\n  end\n";
  return text + "end\n";
}

Result<Value> dispatch_as(World& world, const std::string& job, const std::string& who) {
  api::Dispatch op;
  op.job = job;
  return world.ask_as(who, op);
}

std::string why(World& world, const std::string& job) {
  api::WhyJob op;
  op.job = job;
  return to_json(world.must(op));
}

TEST(Queue, HigherPriorityGoesFirstThenWhoeverHoldsLeast) {
  World world("server: A100/80 x2");
  ASSERT_TRUE(world.apply(cluster_of({{"mine", "requires gpus: 1"},
                                      {"mine2", "requires gpus: 1"},
                                      {"mine3", "requires gpus: 1"},
                                      {"low", "requires gpus: 1\n    priority -5"},
                                      {"yours", "requires gpus: 1"}})));
  ASSERT_TRUE(dispatch_as(world, "mine", "me"));
  ASSERT_TRUE(dispatch_as(world, "mine2", "me"));
  ASSERT_TRUE(dispatch_as(world, "low", "somebody"));
  ASSERT_TRUE(dispatch_as(world, "mine3", "me"));
  ASSERT_TRUE(dispatch_as(world, "yours", "you"));
  world.exits("mine", Kind::success);
  world.pass(seconds(1));
  EXPECT_EQ(world.show("yours"), "running on server") << "I hold a GPU, you hold none";
  world.exits("mine2", Kind::success);
  world.pass(seconds(1));
  EXPECT_EQ(world.show("mine3"), "running on server");
  EXPECT_EQ(world.show("low"), "pending") << "whoever it is of, and however long it has waited";
  world.exits("yours", Kind::success);
  world.pass(seconds(1));
  EXPECT_EQ(world.show("low"), "running on server");
}

TEST(Queue, AHoldIsInNobodysWayWhoComesBefore) {
  World world("a: A100/80 x2");
  ASSERT_TRUE(world.apply(cluster_of({{"running", "requires gpus: 1"},
                                      {"wide", "requires gpus: 2"},
                                      {"urgent", "requires gpus: 1\n    priority 10"}})));
  world.dispatch("running").value();
  world.dispatch("wide").value();
  world.dispatch("urgent").value();
  world.pass(seconds(1));
  EXPECT_EQ(world.show("urgent"), "running on a") << "what is held for wide is there for urgent";
  EXPECT_EQ(world.show("running"), "running on a") << "nobody had to go for it";
}

TEST(Queue, BackfillNeverDelaysTheHead) {
  World world("server: A100/80 x2; workstation: RTX 4090/24");
  ASSERT_TRUE(world.apply(cluster_of({{"running", "requires gpu: \"A100\""},
                                      {"wide", "requires gpu: \"A100\", gpus: 2"},
                                      {"narrow", "requires gpu: \"A100\""},
                                      {"elsewhere", "requires gpu: \"RTX 4090\""}})));
  world.dispatch("running").value();
  world.dispatch("wide").value();
  world.dispatch("narrow").value();
  world.dispatch("elsewhere").value();
  EXPECT_EQ(world.show("wide"), "pending");
  EXPECT_EQ(world.show("narrow"), "pending") << "the free A100 is held for the head";
  EXPECT_EQ(world.show("elsewhere"), "running on workstation") << "which the head cannot use";
  EXPECT_THAT(why(world, "wide"), HasSubstr("waits for running to end on server"));
  world.exits("running", Kind::success);
  world.pass(seconds(1));
  EXPECT_EQ(world.show("wide"), "running on server");
  EXPECT_EQ(world.show("narrow"), "pending");
  world.exits("wide", Kind::success);
  world.pass(seconds(1));
  EXPECT_EQ(world.show("narrow"), "running on server");
}

TEST(Queue, AJobWhoseTimeOutEndsItBeforeTheHeadCouldStartMayPass) {
  World world("server: A100/80 x2");
  ASSERT_TRUE(world.apply(cluster_of({{"running", "requires gpus: 1\n    timeout \"10 minutes\""},
                                      {"wide", "requires gpus: 2"},
                                      {"long", "requires gpus: 1\n    timeout \"20 minutes\""},
                                      {"short", "requires gpus: 1\n    timeout \"2 minutes\""}})));
  world.dispatch("running").value();
  world.dispatch("wide").value();
  world.dispatch("long").value();
  world.dispatch("short").value();
  EXPECT_EQ(world.show("long"), "pending");
  EXPECT_EQ(world.show("short"), "running on server");
  EXPECT_EQ(world.show("wide"), "pending");
}

TEST(Queue, AnImpossibleJobHoldsNothing) {
  World world("server: A100/80 x2; big: A100/80 x4");
  ASSERT_TRUE(
      world.apply(cluster_of({{"wide", "requires gpus: 4"}, {"small", "requires gpus: 1"}})));
  world.dispatch("wide").value();
  world.exits("wide", Kind::success);
  world.goes_silent("big");
  world.pass(seconds(40));
  api::Dispatch again;
  again.job = "wide";
  again.again = true;
  ASSERT_TRUE(world.ask(again)) << "big may come back";
  world.dispatch("small").value();
  EXPECT_EQ(world.show("wide"), "pending");
  EXPECT_EQ(world.show("small"), "running on server");
}

TEST(Queue, AHigherPriorityEvictsWhoLosesLeastAndIsAskedForACheckpointFirst) {
  World world("a: A100/80; b: A100/80");
  ASSERT_TRUE(world.apply(cluster_of({{"old", "requires gpus: 1\n    prefer node: :a"},
                                      {"fresh", "requires gpus: 1\n    prefer node: :b"},
                                      {"urgent", "requires gpus: 1\n    priority 10"},
                                      {"other", "requires gpus: 1"}})));
  world.dispatch("old").value();
  world.dispatch("fresh").value();
  world.pass(minutes(10));
  world.commits("fresh", "epoch-9");
  world.dispatch("other").value();
  EXPECT_EQ(world.show("other"), "pending");
  world.dispatch("urgent").value();
  world.pass(seconds(2));
  EXPECT_EQ(world.show("urgent"), "running on b") << "fresh has just committed: it loses least";
  EXPECT_EQ(world.show("old"), "running on a");
  EXPECT_EQ(world.show("fresh"), "pending");
  EXPECT_EQ(world.job("fresh").evictions, 1);
  EXPECT_EQ(world.job("fresh").failures, 0) << "no failure of its own";
  EXPECT_THAT(why(world, "fresh"), HasSubstr("it makes room for job urgent of priority 10"));
  bool asked = false;
  for (const PlanStep& step : world.agent("b").orders)
    if (auto* stop = std::get_if<StopAttempt>(&step.action))
      asked = asked || (stop->mode == StopMode::stop &&
                        stop->reason == "makes room for job urgent of priority 10");
  EXPECT_TRUE(asked) << "a stop asks for a checkpoint";
  world.exits("urgent", Kind::success);
  world.pass(seconds(5));
  EXPECT_EQ(world.show("fresh"), "running on b") << "it was submitted before other";
}

TEST(Queue, TheFreedCapacityIsHeldForWhoEvicted) {
  World world("a: A100/80 x2");
  ASSERT_TRUE(world.apply(cluster_of({{"one", "requires gpus: 1"},
                                      {"two", "requires gpus: 1"},
                                      {"urgent", "requires gpus: 2\n    priority 10"},
                                      {"sneaky", "requires gpus: 1\n    priority 10"}})));
  world.dispatch("one").value();
  world.dispatch("two").value();
  // The stops take their time: one ends, the other hangs on.
  world.agent("a").swallows.insert("stop-attempt");
  world.dispatch("urgent").value();
  world.exits("one", Kind::stopped);
  world.dispatch("sneaky").value();
  world.pass(seconds(5));
  EXPECT_EQ(world.show("sneaky"), "pending") << "of the same priority, and later";
  EXPECT_EQ(world.show("one"), "pending");
  EXPECT_EQ(world.show("urgent"), "pending");
  world.exits("two", Kind::stopped);
  world.pass(seconds(2));
  EXPECT_EQ(world.show("urgent"), "running on a");
}

TEST(Queue, EvictionsOutliveTheController) {
  World world("a: A100/80");
  ASSERT_TRUE(world.apply(
      cluster_of({{"low", "requires gpus: 1"}, {"urgent", "requires gpus: 1\n    priority 10"}})));
  world.dispatch("low").value();
  world.agent("a").swallows.insert("stop-attempt");
  world.dispatch("urgent").value();
  world.agent("a").swallows.clear();
  world.restart();
  world.pass(seconds(5));
  EXPECT_EQ(world.show("urgent"), "running on a");
  EXPECT_EQ(world.job("low").evictions, 1) << "told once, whoever tells";
}

TEST(Queue, EvictionsAreBounded) {
  World world("a: A100/80");
  std::vector<std::pair<std::string, std::string>> jobs{{"low", "requires gpus: 1"}};
  for (int i = 1; i <= 5; ++i)
    jobs.emplace_back("urgent" + std::to_string(i), "requires gpus: 1\n    priority 10");
  ASSERT_TRUE(world.apply(cluster_of(jobs)));
  world.dispatch("low").value();
  for (int i = 1; i <= 3; ++i) {
    const std::string name = "urgent" + std::to_string(i);
    world.dispatch(name).value();
    world.pass(seconds(3));
    ASSERT_EQ(world.show(name), "running on a") << i;
    world.exits(name, Kind::success);
    world.pass(seconds(5));
    ASSERT_EQ(world.show("low"), "running on a") << i;
  }
  world.dispatch("urgent4").value();
  world.pass(seconds(30));
  EXPECT_EQ(world.show("low"), "running on a") << "it gave way three times: enough";
  EXPECT_EQ(world.show("urgent4"), "pending");
}

TEST(Queue, EqualPrioritiesNeverEvict) {
  World world("a: A100/80");
  ASSERT_TRUE(world.apply(cluster_of({{"one", "requires gpus: 1"}, {"two", "requires gpus: 1"}})));
  world.dispatch("one").value();
  world.dispatch("two").value();
  world.pass(seconds(30));
  EXPECT_EQ(world.show("one"), "running on a");
}

TEST(Queue, AShortWaitForTheNodeWithTheDataBeatsMovingIt) {
  World world("a: A100/80; b: A100/80");
  ASSERT_TRUE(world.apply(
      cluster_of({{"busy", "requires gpus: 1\n    prefer node: :a\n    timeout \"30 seconds\""},
                  {"infer", "requires gpus: 1\n    model :llama"},
                  {"patient", "requires gpus: 1\n    model :llama"}})));
  world.has_model("a", "llama", Bytes{20'000'000'000});
  world.dispatch("busy").value();
  ASSERT_EQ(world.show("busy"), "running on a");
  world.dispatch("infer").value();
  EXPECT_EQ(world.show("infer"), "pending");
  EXPECT_THAT(why(world, "infer"), HasSubstr("for a, which has its data"));
  world.exits("busy", Kind::success);
  world.pass(seconds(2));
  EXPECT_EQ(world.show("infer"), "running on a");
  // Its end is not known: moving is the better bet.
  world.dispatch("patient").value();
  world.pass(seconds(2));
  EXPECT_THAT(world.show("patient"), HasSubstr("on b"));
}

TEST(Case35, WhyProposesTheMovesThatJoinFragments) {
  World world("a: A100/80 x2; b: A100/80");
  ASSERT_TRUE(world.apply(cluster_of(
      {{"small", "requires gpus: 1\n    prefer node: :a"}, {"wide", "requires gpus: 2"}})));
  world.dispatch("small").value();
  world.dispatch("wide").value();
  EXPECT_THAT(why(world, "wide"),
              HasSubstr("would fit if others moved: zedctl resume small --on b"));
}

TEST(Queue, EachOfEqualJobsSaysWhyItWaits) {
  World world("a: A100/80");
  ASSERT_TRUE(world.apply(cluster_of({{"first", "requires gpus: 1"},
                                      {"second", "requires gpus: 1"},
                                      {"third", "requires gpus: 1"},
                                      {"late", "requires gpus: 1\n    after :first"},
                                      {"later", "requires gpus: 1\n    after :first"}})));
  for (const char* job : {"first", "second", "third", "late", "later"})
    world.dispatch(job).value();
  EXPECT_THAT(why(world, "third"), HasSubstr("behind second: "));
  for (const char* job : {"late", "later"}) {
    EXPECT_THAT(why(world, job), HasSubstr("waits for job first"));
    EXPECT_THAT(why(world, job), HasSubstr("\"placement\":null")) << "as if it could begin";
  }
}

TEST(Queue, AJobThatIsAskedToStayOnADrainingNodeSaysSo) {
  World world("a: A100/80; b: A100/80");
  ASSERT_TRUE(world.apply(cluster_of({{"train", "requires gpus: 1"}})));
  world.dispatch("train").value();
  world.pass(seconds(2));
  const std::string home = world.job("train").home.str() == "a" ? "b" : "a";
  world.commits("train", "epoch-1");
  world.must(api::Resume{"train", "", home});
  world.pass(seconds(5));
  api::SetNodeDuty drain;
  drain.node = home;
  drain.duty = api::NodeDuty::drain;
  world.must(drain);
  world.pass(seconds(5));
  EXPECT_THAT(why(world, "train"),
              HasSubstr(home + " is draining, but the job may run there only"));
  EXPECT_THAT(why(world, "train"), HasSubstr("zedctl resume train --on NODE"));
}

TEST(Queue, AnEndThatIsBeingKeptIsNotStopped) {
  World world("a: A100/80; b: A100/80");
  ASSERT_TRUE(world.apply(cluster_of({{"train", "requires gpus: 1"}})));
  world.dispatch("train").value();
  world.pass(seconds(2));
  testing::FakeAgent& home = world.agent(world.job("train").home.str());
  home.attempts.front().phase = AttemptPhase::closing;  // its pool is full, say
  world.say(home, AttemptReport{home.attempts.front()});
  api::SetNodeDuty drain;
  drain.node = home.name.str();
  drain.duty = api::NodeDuty::drain;
  world.must(drain);
  world.pass(minutes(1));
  EXPECT_FALSE(world.was_told(home.name.str(), "stop-attempt"));
  world.exits("train", Kind::success);
  world.pass(seconds(1));
  EXPECT_EQ(world.show("train"), "succeeded");
}

TEST(Queue, WhileItsNodeIsSilentAJobIsNotSaidToRunWell) {
  World world("a: A100/80; b: A100/80");
  ASSERT_TRUE(world.apply(cluster_of({{"train", "requires gpus: 1"}})));
  world.dispatch("train").value();
  world.pass(seconds(2));
  const std::string home = world.job("train").home.str();
  world.goes_silent(home);
  world.pass(seconds(10));
  EXPECT_THAT(why(world, "train"), HasSubstr(home + " has been silent for "));
}

TEST(Queue, AJobAfterOneThatWasCancelledSaysSo) {
  World world("a: A100/80");
  ASSERT_TRUE(world.apply(cluster_of(
      {{"prepare", "requires gpus: 1"}, {"train", "requires gpus: 1\n    after :prepare"}})));
  world.dispatch("train").value();
  EXPECT_THAT(why(world, "train"), HasSubstr("prepare, which was not dispatched"));
  world.dispatch("prepare").value();
  api::CancelJob cancel;
  cancel.job = "prepare";
  world.must(cancel);
  world.pass(seconds(2));
  EXPECT_THAT(why(world, "train"),
              HasSubstr("which is cancelled: zedctl dispatch prepare --again"));
}

}  // namespace
}  // namespace zed::controller
