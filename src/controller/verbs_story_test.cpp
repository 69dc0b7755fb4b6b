// Stories of the cluster file's verbs and of what a person does to branches and arrays.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/json.hpp"
#include "controller/lab_testing.hpp"
#include "controller/operations/array.hpp"

namespace zed::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::lab_with;
using testing::node;
using ::testing::Not;
using testing::World;
using Kind = ExitRecord::Kind;

const std::string train = R"(
  job :train do
    run ["train", "--lr={lr}"]
    requires gpus: 1
    copies 0
    retries 2
  end)";

/// A policy that brings jobs from server to backup, with these clauses.
std::string backing_up(const std::string& clauses = "") {
  return "\n  replicate :jobs do\n    from :server\n    to :backup\n    " + clauses + "\n  end";
}

/// A job that prefers a node, with these clauses.
std::string preferring(const std::string& node, const std::string& clauses = "") {
  return "\n  job :train do\n    run [\"train\"]\n    requires gpus: 1\n    prefer node: :" + node +
         "\n    " + clauses + "\n  end";
}

api::Dispatch dispatch(const std::string& job) {
  api::Dispatch op;
  op.job = job;
  return op;
}

/// Checkpoints epoch-<first> to epoch-<last>, each after what followed from the one before.
void commits_epochs(World& world, const std::string& job, int first, int last) {
  for (int epoch = first; epoch <= last; ++epoch) {
    world.commits(job, "epoch-" + std::to_string(epoch));
    world.pass(seconds(5));
  }
}

bool was_told_of(const World& world, const std::string& text) {
  for (const api::FleetEvent& event : world.events)
    if (event.text.find(text) != std::string::npos) return true;
  return false;
}

// ---- policies -----------------------------------------------------------------------------------

TEST(Policy, EveryBringsWhatThereIsAndThenWaits) {
  World world("server: A100/80; backup:");
  ASSERT_TRUE(world.apply(lab_with(train + backing_up("every \"10 minutes\""))));
  world.must(dispatch("train"));
  world.pass(minutes(1));
  world.commits("train", "epoch-1");
  world.commits("train", "epoch-2");
  world.pass(minutes(8));
  EXPECT_EQ(world.holds("backup", "train"), "-") << "the round of the beginning had nothing";
  world.pass(minutes(2));
  EXPECT_EQ(world.holds("backup", "train"), "epoch-1 epoch-2");
  world.commits("train", "epoch-3");
  world.pass(minutes(5));
  EXPECT_EQ(world.holds("backup", "train"), "epoch-1 epoch-2") << "not before the next round";
  world.pass(minutes(6));
  EXPECT_EQ(world.holds("backup", "train"), "epoch-1 epoch-2 epoch-3");
}

TEST(Policy, ATargetThatWasAwayIsServedWhenItReturns) {
  World world("server: A100/80; backup:");
  ASSERT_TRUE(world.apply(lab_with(train + backing_up("every \"1 hours\""))));
  world.must(dispatch("train"));
  world.commits("train", "epoch-1");
  world.goes_silent("backup");
  world.pass(minutes(70));
  world.returns("backup");
  world.pass(seconds(10));
  EXPECT_EQ(world.holds("backup", "train"), "epoch-1");
}

TEST(Policy, KeepPrunesTargetsOnly) {
  World world("server: A100/80; backup:");
  ASSERT_TRUE(world.apply(lab_with(train + backing_up("keep last: 2"))));
  world.must(dispatch("train"));
  commits_epochs(world, "train", 1, 5);
  EXPECT_EQ(world.holds("server", "train"), "epoch-1 epoch-2 epoch-3 epoch-4 epoch-5");
  EXPECT_EQ(world.holds("backup", "train"), "epoch-4 epoch-5");
}

TEST(Policy, KeepNeverEndsALastCopy) {
  World world("server: A100/80; backup:");
  ASSERT_TRUE(world.apply(lab_with(train + backing_up())));
  world.must(dispatch("train"));
  for (int epoch = 1; epoch <= 3; ++epoch)
    world.commits("train", "epoch-" + std::to_string(epoch));
  world.pass(seconds(10));
  ASSERT_EQ(world.holds("backup", "train"), "epoch-1 epoch-2 epoch-3");
  // A person destroyed one at the source: the target's copy is the last.
  auto& home = world.agent("server").datasets.at(testing::dataset("jobs/train"));
  home.snapshots.erase(home.snapshots.begin());
  world.say(world.agent("server"), DatasetChanged{home, false, {}});
  world.settle();
  ASSERT_TRUE(world.apply(lab_with(train + backing_up("keep last: 1"))));
  world.pass(seconds(10));
  EXPECT_EQ(world.holds("backup", "train"), "epoch-1 epoch-3");
}

TEST(Policy, MaxRateTravelsWithTheTicket) {
  World world("server: A100/80; backup:");
  ASSERT_TRUE(world.apply(lab_with(train + backing_up("max_rate \"20 MB/s\""))));
  world.must(dispatch("train"));
  world.commits("train", "epoch-1");
  world.pass(seconds(5));
  std::optional<Bytes> rate;
  for (const PlanStep& step : world.agent("backup").orders)
    if (auto* receive = std::get_if<ReceiveSnapshot>(&step.action)) rate = receive->ticket.max_rate;
  EXPECT_EQ(rate, Bytes{20'000'000});
}

TEST(Keep, OfAJobPrunesEveryCopyAndSparesForkPoints) {
  World world("server: A100/80; spare: A100/80");
  ASSERT_TRUE(world.apply(lab_with(preferring("server", "keep last: 2"))));
  world.must(dispatch("train"));
  commits_epochs(world, "train", 1, 3);
  EXPECT_EQ(world.holds("server", "train"), "epoch-2 epoch-3");
  EXPECT_EQ(world.holds("spare", "train"), "epoch-2 epoch-3");
  api::Rollback rollback;
  rollback.job = "train";
  rollback.checkpoint = "@epoch-2";
  world.must(rollback);
  world.pass(seconds(5));
  commits_epochs(world, "train", 4, 7);
  EXPECT_EQ(world.holds("server", "train"), "epoch-2 epoch-6 epoch-7");
}

TEST(Keep, NobodyBeginsAtWhatIsBeingDestroyed) {
  World world("server: A100/80; spare: A100/80");
  ASSERT_TRUE(world.apply(lab_with(preferring("server", "keep last: 2"))));
  world.must(dispatch("train"));
  commits_epochs(world, "train", 1, 2);
  world.agent("server").swallows.insert("destroy");
  world.commits("train", "epoch-3");
  world.pass(seconds(5));
  ASSERT_TRUE(world.was_told("server", "destroy"));
  api::Rollback rollback;
  rollback.job = "train";
  rollback.checkpoint = "@epoch-1";
  auto refused = world.ask(rollback);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::not_found);
  EXPECT_NE(refused.error().message.find("is being destroyed"), std::string::npos);
  rollback.checkpoint = "@epoch-2";
  EXPECT_TRUE(world.ask(rollback));
}

// ---- exclusive ----------------------------------------------------------------------------------

TEST(Exclusive, WaitsForTheLeaseOfALostNodeAndNoLonger) {
  World world("server: A100/80; spare: A100/80");
  ASSERT_TRUE(world.apply(lab_with(preferring("server", "exclusive true"))));
  world.must(dispatch("train"));
  world.commits("train", "epoch-1");
  world.pass(seconds(10));
  world.goes_silent("server");
  world.pass(minutes(10));
  EXPECT_EQ(world.show("train"), "lost on server") << "it may run on until its lease ends";
  world.pass(minutes(7));
  EXPECT_EQ(world.show("train"), "running on spare");
}

TEST(Exclusive, AForcedForkWaitsForTheLeaseAsWell) {
  World world("server: A100/80; spare: A100/80");
  ASSERT_TRUE(world.apply(lab_with(preferring("server", "exclusive true"))));
  world.must(dispatch("train"));
  world.commits("train", "epoch-1");
  world.pass(seconds(10));
  world.goes_silent("server");
  world.pass(seconds(40));
  api::Resume resume;
  resume.job = "train";
  resume.from = "@epoch-1";
  resume.on = "spare";
  resume.force = true;
  world.must(resume);
  world.pass(minutes(5));
  EXPECT_THAT(world.show("train"), Not(HasSubstr("running"))) << "server may still run it";
  world.pass(minutes(12));
  EXPECT_EQ(world.show("train"), "running on spare");
}

TEST(Exclusive, ANodeThatSaysThatNothingRunsNeedsNoWait) {
  World world("server: A100/80; spare: A100/80");
  ASSERT_TRUE(world.apply(lab_with(R"(
  job :solo do
    run ["train"]
    requires gpus: 1
    exclusive true
  end)")));
  world.must(dispatch("solo"));
  world.exits("solo", Kind::exit_code);
  world.pass(seconds(5));
  EXPECT_THAT(world.show("solo"), HasSubstr("running"));
}

TEST(Timeout, IsOfAllAttemptsTogether) {
  World world("server: A100/80");
  ASSERT_TRUE(world.apply(lab_with(R"(
  job :train do
    run ["train"]
    requires gpus: 1
    timeout "8 seconds"
    retries 5
  end)")));
  world.must(dispatch("train"));
  world.exits("train", Kind::exit_code);  // after 5 s
  world.pass(seconds(2));
  std::optional<Millis> left;
  for (const PlanStep& step : world.agent("server").orders)
    if (auto* start = std::get_if<StartAttempt>(&step.action)) left = start->time_left;
  EXPECT_EQ(left, seconds(3));
  world.exits("train", Kind::exit_code);
  world.pass(seconds(3));
  EXPECT_EQ(world.show("train"), "failed");
  EXPECT_THAT(world.job("train").outcome->reason, HasSubstr("time-out"));
}

// ---- arrays and new runs ------------------------------------------------------------------------

TEST(Array, OneSubmitMakesAJobOfEachCombination) {
  World world("server: A100/80 x8");
  ASSERT_TRUE(world.apply(lab_with(train)));
  api::Dispatch op = dispatch("train");
  op.uuid = JobId{{1, 2, 3}}.str();
  op.array = {{"lr", {"0.1", "0.01"}}, {"seed", {"1", "2", "3"}}};
  Value reply = world.must(op);
  EXPECT_EQ(reply.find("array")->as_list()->size(), 6u);
  EXPECT_EQ(world.live_attempts(), 6u);
  const DesiredJob& fourth = world.job("train-4");
  EXPECT_THAT(fourth.job.argv, ElementsAre("train", "--lr=0.01"));
  EXPECT_EQ(fourth.job.env.at("ZED_PARAM_LR"), "0.01");
  EXPECT_EQ(fourth.job.env.at("ZED_PARAM_SEED"), "1");
  EXPECT_EQ(fourth.job.env.at("ZED_ARRAY_INDEX"), "4");
  EXPECT_EQ(fourth.job.dataset.str(), "jobs/train-4");
  world.must(op);
  EXPECT_EQ(world.state().desired().jobs.size(), 6u) << "the same submit again";
}

TEST(Array, ElementsHaveIdentitiesOfTheirOwnThatTablesTellApart) {
  JobId first;
  first.bytes.fill(0xff);
  std::set<JobId> ids;
  std::set<std::size_t> hashes;
  for (std::size_t position = 0; position < 1000; ++position) {
    ids.insert(element_id(first, position));
    hashes.insert(std::hash<JobId>{}(element_id(first, position)));
  }
  EXPECT_EQ(ids.size(), 1000u);
  EXPECT_EQ(hashes.size(), 1000u);
}

TEST(Array, AMisspeltParameterIsNotRunWithEqualValues) {
  Job job;
  job.name = JobName("train");
  job.argv = {"sh", "-c", "train --lr={lr} --out=${HOME}/{x y}"};
  const std::vector<api::ArrayAxis> misspelt{{"rl", {"1", "2"}}};
  const Status refused = check_parameters(job, misspelt);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "nothing in job train uses {rl}, and {lr} would stay as it is");
  EXPECT_TRUE(check_parameters(job, {{"lr", {"1", "2"}}, {"seed", {"1"}}})) << "ZED_PARAM_SEED";
  EXPECT_TRUE(check_parameters(job, {{"seed", {"1", "2"}}})) << "{lr} may be the program's own";
  job.argv = {"train"};
  EXPECT_TRUE(check_parameters(job, misspelt)) << "ZED_PARAM_RL";
}

TEST(Array, AllOrNothing) {
  World world("server: A100/80 x8");
  ASSERT_TRUE(world.apply(lab_with(train)));
  api::Dispatch op = dispatch("train");
  auto refused = [&](std::vector<api::ArrayAxis> array) {
    op.array = std::move(array);
    auto answer = world.ask(op);
    EXPECT_FALSE(answer);
    return answer ? std::string() : answer.error().describe();
  };
  EXPECT_THAT(refused({{"l-r", {"1"}}}), HasSubstr("no name of a parameter"));
  EXPECT_THAT(refused({{"lr", {}}}), HasSubstr("has no values"));
  EXPECT_THAT(refused({{"lr", {"1", "1"}}}), HasSubstr("has \"1\" twice"));
  EXPECT_THAT(refused({{"lr", {"1"}}, {"lr", {"2"}}}), HasSubstr("given twice"));
  std::vector<std::string> many;
  for (int i = 0; i < 40; ++i)
    many.push_back(std::to_string(i));
  EXPECT_THAT(refused({{"a", many}, {"b", many}}), HasSubstr("more than 1000"));
  EXPECT_THAT(world.state().desired().jobs, IsEmpty());
  op.array = {{"lr", {"1", "2"}}};
  world.must(op);
  op.uuid.clear();
  EXPECT_THAT(refused({{"lr", {"1", "2"}}}), HasSubstr("is not over"));
  world.exits("train-1", Kind::success);
  world.exits("train-2", Kind::success);
  EXPECT_THAT(refused({{"lr", {"1", "2"}}}), HasSubstr("--again"));
  op.again = true;
  world.must(op);
  EXPECT_EQ(world.job("train-1").job.dataset.str(), "jobs/train-002");
}

TEST(Again, FromACheckpointBeginsWithItsFiles) {
  World world("server: A100/80; spare: A100/80");
  ASSERT_TRUE(world.apply(lab_with(train)));
  world.must(dispatch("train"));
  world.commits("train", "epoch-1");
  world.commits("train", "epoch-2");
  const JobId old = world.job("train").job.id;
  world.exits("train", Kind::success);
  api::Dispatch op = dispatch("train");
  op.again = true;
  op.from = "@epoch-1";
  world.must(op);
  world.pass(seconds(5));
  ASSERT_THAT(world.show("train"), HasSubstr("running"));
  EXPECT_NE(world.job("train").job.id, old);
  std::optional<StartAttempt> start;
  for (const char* name : {"server", "spare"})
    for (const PlanStep& step : world.agent(name).orders)
      if (auto* action = std::get_if<StartAttempt>(&step.action))
        if (action->job.id != old) start = *action;
  ASSERT_TRUE(start);
  ASSERT_TRUE(start->code);
  EXPECT_EQ(start->code->dataset.str(), "jobs/train");
  EXPECT_EQ(start->job.dataset.str(), "jobs/train-002");
  EXPECT_EQ(start->job.env.at("ZED_CHECKPOINT"), "epoch-1");
  op.from = "@epoch-9";
  world.exits("train", Kind::success);
  EXPECT_EQ(world.ask(op).error().code, ErrorCode::not_found);
}

// ---- branches that expire -----------------------------------------------------------------------

struct Branched {
  World world{"server: A100/80"};
  std::string branch;

  Branched() {
    EXPECT_TRUE(world.apply(lab_with(train)));
    world.must(dispatch("train"));
    world.commits("train", "epoch-1");
    world.commits("train", "epoch-2");
    api::Rollback rollback;
    rollback.job = "train";
    rollback.checkpoint = "@epoch-1";
    world.must(rollback);
    world.pass(seconds(5));
    for (const auto& [name, dataset] : world.agent("server").datasets)
      if (!dataset.property(property::branch_of).empty()) branch = name.str();
  }
  bool is_there() { return world.agent("server").datasets.contains(testing::dataset(branch)); }
  Result<Value> expires(std::optional<Millis> after) {
    api::ExpireBranch op;
    op.branch = branch;
    op.after = after;
    return world.ask(op);
  }
};

constexpr Millis a_day = minutes(24 * 60);

TEST(Expiry, IsAnnouncedADayAheadAndThenHappens) {
  Branched b;
  ASSERT_TRUE(b.expires(a_day * 2));
  b.world.leap(a_day);
  b.world.pass(seconds(2));
  EXPECT_TRUE(was_told_of(b.world, "will be destroyed in a day"));
  EXPECT_TRUE(b.is_there());
  b.world.leap(a_day + minutes(1));
  b.world.pass(seconds(5));
  EXPECT_FALSE(b.is_there());
  b.world.pass(seconds(5));
  EXPECT_THAT(b.world.state().desired().expiries, IsEmpty());
  EXPECT_EQ(b.world.holds("server", "train"), "epoch-1");
}

TEST(Expiry, AWallClockThatJumpsDestroysNothing) {
  Branched b;
  ASSERT_TRUE(b.expires(a_day * 2));
  b.world.wall_jumps(a_day * 300);
  b.world.pass(minutes(5));
  EXPECT_TRUE(b.is_there()) << "announced, and a day by our own clock has not passed";
  b.world.restart();
  b.world.wall_jumps(a_day * 300);
  b.world.pass(minutes(5));
  EXPECT_TRUE(b.is_there());
}

TEST(Expiry, APersonThinksBetterOfIt) {
  Branched b;
  ASSERT_TRUE(b.expires(a_day * 2));
  ASSERT_TRUE(b.expires(std::nullopt));
  b.world.leap(a_day * 3);
  b.world.leap(a_day * 3);
  b.world.pass(seconds(5));
  EXPECT_TRUE(b.is_there());
  EXPECT_EQ(b.expires(minutes(5)).error().code, ErrorCode::invalid) << "a day at least";
  b.branch = "jobs/train";
  EXPECT_EQ(b.expires(a_day * 2).error().code, ErrorCode::not_found) << "that is no branch";
}

// ---- large files --------------------------------------------------------------------------------

TEST(Apply, AFileOfTwoThousandJobsOutlivesTheController) {
  World world("server: A100/80; other:", node("server"));
  std::string jobs;
  for (int i = 0; i < 2000; ++i)
    jobs +=
        "  job :job_with_a_rather_long_name_" + std::to_string(i) +
        " do\n    run [\"train\", \"--with\", \"some arguments\", \"--and\", \"more of them\"]\n"
        "    requires gpus: 1, vram: 24\n  end\n";
  ASSERT_GT(jobs.size(), 300'000u);
  auto applied = world.apply(lab_with(jobs));
  ASSERT_TRUE(applied) << applied.error().describe();
  world.pass(seconds(5));
  EXPECT_THAT(to_json(world.must(api::GetStatus{})), HasSubstr("\"safe\":true"))
      << "on the second node, too";
  world.restart();
  EXPECT_EQ(world.state().desired().applied->cluster.jobs.size(), 2000u);
  world.dispatch("job_with_a_rather_long_name_1999").value();
  EXPECT_EQ(world.show("job_with_a_rather_long_name_1999"), "running on server");
}

}  // namespace
}  // namespace zed::controller
