// How an attempt starts, what it holds while it runs, and what does not disturb it.

#include <gtest/gtest.h>

#include "agent/bench_test.hpp"

namespace zed::agent::test {
namespace {

TEST(Attempts, TheDatasetIsFencedAndWritableBeforeTheLaunch) {
  Bench b;
  b.start();
  b.run_job();
  ASSERT_EQ(b.launches.size(), 1u);
  Dataset there = b.seen("jobs/train");
  EXPECT_EQ(there.generation(), gen(1));
  EXPECT_EQ(there.property(property::status), "running");
  EXPECT_EQ(there.property("gpu"), "a100-sxm4-80gb");
  EXPECT_FALSE(there.readonly);
  EXPECT_EQ(b.last_report()->phase, AttemptPhase::running);
  const auto& env = b.launches[0].launch.env;
  EXPECT_EQ(env.at("ZED_JOB"), "train");
  EXPECT_EQ(env.at("ZED_GENERATION"), gen(1).str());
  EXPECT_EQ(env.at("ZED_CHECKPOINT"), "");
}

StartAttempt with_setup(const Bench& b) {
  StartAttempt start = b.starting(1);
  start.job.setup = "pip install -r requirements.txt";
  return start;
}

TEST(Attempts, DuringItsSetupAJobIsStartingAndNotRunning) {
  Bench b;
  b.start();
  b.make_job_dataset();
  ASSERT_FALSE(b.order(with_setup(b))->error);
  EXPECT_EQ(b.last_report()->phase, AttemptPhase::starting);
  EXPECT_EQ(b.seen("jobs/train").property(property::status), "preparing");
  b.pass(minutes(5));
  EXPECT_EQ(b.last_report()->phase, AttemptPhase::starting);
  b.feed(JobBegan{b.job_id(), gen(1)});
  EXPECT_EQ(b.last_report()->phase, AttemptPhase::running);
  EXPECT_EQ(b.seen("jobs/train").property(property::status), "running");
}

TEST(Attempts, AStopDuringTheSetupIsCarriedOutAtOnce) {
  Bench b;
  b.start();
  b.make_job_dataset();
  ASSERT_FALSE(b.order(with_setup(b))->error);
  b.order(StopAttempt{b.job_id(), gen(1), StopMode::stop, "test"});
  ASSERT_EQ(b.stops.size(), 1u);
  EXPECT_EQ(b.last_report()->phase, AttemptPhase::ended);
}

TEST(Attempts, WhoeverAdoptsASetupHearsWhereItStands) {
  Bench b;
  b.start();
  b.make_job_dataset();
  ASSERT_FALSE(b.order(with_setup(b))->error);
  b.crash();
  b.start();
  EXPECT_EQ(b.said<Hello>().back().attempts.at(0).phase, AttemptPhase::starting);
  b.feed(SetupBegan{b.job_id(), gen(1)});
  b.feed(JobBegan{b.job_id(), gen(1)});
  EXPECT_EQ(b.last_report()->phase, AttemptPhase::running);
  b.crash();
  b.start();  // the setup is over by now
  b.feed(JobBegan{b.job_id(), gen(1)});
  EXPECT_EQ(b.last_report()->phase, AttemptPhase::running);
  b.order(StopAttempt{b.job_id(), gen(1), StopMode::halt, "test"});
  EXPECT_EQ(b.last_report()->phase, AttemptPhase::ended);
}

TEST(Attempts, StaleOrdersStartNothing) {
  Bench b;
  b.start();
  b.make_job_dataset(3);
  auto code = [&](StartAttempt start) { return b.order(start)->error.value().code; };
  EXPECT_EQ(code(b.starting(4, 2)), ErrorCode::stale);  // another timeline
  StartAttempt other = b.starting(4, 3);
  other.job.id = id<JobId>("other");
  EXPECT_EQ(code(other), ErrorCode::stale);
  StartAttempt nowhere = b.starting(4, 3);
  nowhere.job.dataset = ds("jobs/nowhere");
  EXPECT_EQ(code(nowhere), ErrorCode::not_found);
  must(b.store.set(b.dataset(), {{property::home, "laptop"}}));
  EXPECT_EQ(code(b.starting(4, 3)), ErrorCode::stale);
  must(
      b.store.set(b.dataset(), {{property::home, "server"}, {property::generation, gen(9).str()}}));
  EXPECT_EQ(code(b.starting(4, 3)), ErrorCode::stale);
  EXPECT_TRUE(b.launches.empty());
  EXPECT_TRUE(b.state->held_gpus().empty());
}

TEST(Attempts, OneGpuOneAttempt) {
  Bench b;
  b.start();
  b.run_job();
  CreateDataset create{ds("jobs/second"),
                       {{property::uuid, id<JobId>("second").str()},
                        {property::type, "job"},
                        {property::home, "server"},
                        {property::timeline, gen(2).str()}}};
  ASSERT_FALSE(b.order(create)->error);
  StartAttempt second = b.starting(2, 2);
  second.job.id = id<JobId>("second");
  second.job.dataset = ds("jobs/second");
  EXPECT_EQ(b.order(second)->error->code, ErrorCode::busy);
  second.gpus = {"GPU-9"};
  EXPECT_EQ(b.order(second)->error->code, ErrorCode::unavailable);
  second.gpus = {"GPU-1"};
  EXPECT_FALSE(b.order(second)->error);
  EXPECT_EQ(b.state->held_gpus(), (std::multiset<std::string>{"GPU-0", "GPU-1"}));
}

TEST(Attempts, TwoOrdersForOneGpuInFlightAtOnceStartOne) {
  Bench b;
  b.start();
  b.make_job_dataset();
  b.answer_store = false;  // both are being prepared
  StartAttempt second = b.starting(2);
  second.job.id = id<JobId>("second");
  second.job.dataset = ds("jobs/second");
  EXPECT_FALSE(b.order(b.starting(1)));
  auto refused = b.order(second);
  ASSERT_TRUE(refused && refused->error);
  EXPECT_EQ(refused->error->code, ErrorCode::busy);
}

TEST(Attempts, ASharedGpuIsFilledByDeclaredMemoryAndNoFurther) {
  Bench b;
  b.start();
  int started = 0;
  for (int i = 0; i < 24; ++i) {
    StartAttempt start = b.starting(static_cast<std::uint64_t>(i + 1), 1);
    start.job.id = id<JobId>("share" + std::to_string(i));
    start.job.dataset = ds("jobs/share" + std::to_string(i));
    start.job.requirement.share = true;
    start.vram = gibibytes(4);
    CreateDataset create{start.job.dataset,
                         {{property::uuid, start.job.id.str()},
                          {property::type, "job"},
                          {property::home, "server"},
                          {property::timeline, gen(1).str()}}};
    ASSERT_FALSE(b.order(create)->error);
    started += b.order(start)->error ? 0 : 1;
  }
  EXPECT_EQ(started, 20);  // 80 GiB
}

TEST(Attempts, AFinishedGenerationIsNotRunAgain) {
  Bench b;
  b.start();
  b.run_job();
  b.job_exits();
  b.say(AckExit{b.job_id(), gen(1)});
  auto again = b.order(b.starting(1));
  EXPECT_EQ(again->error->code, ErrorCode::stale);
  EXPECT_EQ(b.launches.size(), 1u);
  // The next generation on the same timeline is a retry.
  EXPECT_FALSE(b.order(b.starting(2))->error);
}

TEST(Attempts, TheGpuIsHeldUntilAllProcessesAreGone) {
  Bench b;
  b.start();
  b.run_job();
  b.processes_obey = false;
  b.order(StopAttempt{b.job_id(), gen(1), StopMode::halt, "test"});
  ASSERT_EQ(b.stops.size(), 1u);
  EXPECT_EQ(b.state->held_gpus().count("GPU-0"), 1u);
  EXPECT_EQ(b.order(b.starting(2))->error->code, ErrorCode::busy);
  b.pass(minutes(1));
  EXPECT_GT(b.stops.size(), 1u);  // insists
  b.job_exits(ExitRecord::Kind::stopped);
  EXPECT_TRUE(b.state->held_gpus().empty());
  EXPECT_FALSE(b.order(b.starting(2))->error);
}

TEST(Attempts, AGpuThatBreaksEndsItsJobAndNoOther) {
  Bench b;
  b.start();
  b.run_job();
  std::vector<Gpu> gpus = b.said<Hello>().back().gpus;
  ASSERT_EQ(gpus[0].uuid, "GPU-0");
  gpus[1].health = GpuHealth::lost;
  b.feed(GpusProbed{gpus});
  EXPECT_TRUE(b.stops.empty());
  EXPECT_EQ(b.said<GpusChanged>().back().gpus[1].health, GpuHealth::lost);
  // Stale is no reason to end anything: the driver may only be slow.
  gpus[0].health = GpuHealth::stale;
  b.feed(GpusProbed{gpus});
  EXPECT_TRUE(b.stops.empty());
  b.processes_obey = false;
  gpus[0].health = GpuHealth::reset_required;
  gpus[0].why = "a memory row is to be remapped";
  b.feed(GpusProbed{gpus});
  ASSERT_EQ(b.stops.size(), 1u);
  EXPECT_EQ(b.stops[0].mode, StopMode::halt);
  // It crashes on its own: that is no failure of the job.
  b.job_exits(ExitRecord::Kind::exit_code);
  ExitRecord exit = b.last_report()->exit.value();
  EXPECT_EQ(exit.kind, ExitRecord::Kind::stopped);
  EXPECT_EQ(exit.words, "GPU GPU-0 is reset-required: a memory row is to be remapped");
  EXPECT_EQ(b.order(b.starting(2))->error->code, ErrorCode::unavailable);
}

TEST(Attempts, ARunningJobIsAdoptedAfterTheAgentDied) {
  Bench b;
  b.start();
  b.run_job();
  b.job_commits(1);
  b.crash();
  b.freezes.clear();
  b.start();
  ASSERT_EQ(b.said<Hello>().front().attempts.size(), 1u);
  EXPECT_EQ(b.said<Hello>().front().attempts[0].phase, AttemptPhase::running);
  EXPECT_EQ(b.said<Hello>().front().attempts[0].last_checkpoint, b.checkpoint("epoch-1"));
  EXPECT_EQ(b.state->held_gpus().count("GPU-0"), 1u);
  EXPECT_TRUE(b.stops.empty());
  ASSERT_EQ(b.freezes.size(), 1u);  // thawed, in case
  EXPECT_FALSE(b.freezes[0].frozen);
  b.feed(JobConnected{7, b.job_id(), gen(1)});
  EXPECT_TRUE(b.job_commits(2).result);
  b.job_exits();
  EXPECT_EQ(b.last_report()->phase, AttemptPhase::ended);
}

TEST(Attempts, InputsAreHeldWhileTheJobRunsAndReleasedAfter) {
  Bench b;
  b.start();
  must(b.store.create(ds("models/llama"), {{property::uuid, id<DatasetId>("llama").str()}}));
  must(b.store.snapshot(SnapshotName{ds("models/llama"), "v1"},
                        {{property::id, id<CheckpointId>("v1").str()}}));
  b.pass(seconds(3));
  b.make_job_dataset();
  StartAttempt start = b.starting(1);
  start.model = Input{ds("models/llama"), id<CheckpointId>("v1")};
  ASSERT_FALSE(b.order(start)->error);
  EXPECT_FALSE(b.store.destroy_snapshot(SnapshotName{ds("models/llama"), "v1"}));
  Destroy destroy{ds("models/llama"), id<DatasetId>("llama"), {id<CheckpointId>("v1")}};
  EXPECT_EQ(b.order(destroy)->error->code, ErrorCode::busy);
  // A restart of the agent keeps the hold of what still runs.
  b.crash();
  b.start();
  EXPECT_FALSE(b.store.destroy_snapshot(SnapshotName{ds("models/llama"), "v1"}));
  b.job_exits();
  EXPECT_TRUE(b.store.destroy_snapshot(SnapshotName{ds("models/llama"), "v1"}));
  EXPECT_EQ(b.seen("models/llama").property("held"), "");
}

TEST(Attempts, ALeaseIsExtendedForTheAttemptThatHasIt) {
  Bench b;
  b.start();
  b.run_job();
  b.say(GrantLease{b.job_id(), gen(1), minutes(15)});
  b.say(GrantLease{b.job_id(), gen(2), minutes(15)});
  EXPECT_EQ(b.leases.size(), 1u);
}

TEST(Attempts, ALeaseCountsFromTheOrderNotFromTheStart) {
  // The controller waits for the lease that it gave, however long the start took.
  for (std::int64_t took_minutes : {4, 20}) {
    Bench b;
    b.start();
    b.make_job_dataset();
    b.answer_store = false;
    StartAttempt start = b.starting(1);
    start.lease = minutes(15);
    b.order(start);
    ASSERT_EQ(b.unanswered.size(), 1u);
    b.now.monotonic = b.now.monotonic + minutes(took_minutes);
    b.answer_store = true;
    CallStore first = b.unanswered[0];
    b.feed(StoreReturned{first.id, env::perform(b.store, first.request)});
    if (took_minutes > 15) {
      EXPECT_TRUE(b.launches.empty()) << "nobody expects it any more";
      continue;
    }
    ASSERT_EQ(b.launches.size(), 1u);
    EXPECT_EQ(b.launches[0].launch.lease, minutes(11));
  }
}

TEST(Attempts, AJobBeginsAtTheCheckpointOfAnotherUntilItHasItsOwn) {
  Bench b;
  b.start();
  b.make_job_dataset();
  StartAttempt start = b.starting(1);
  start.job.env["ZED_CHECKPOINT"] = "epoch-15";
  start.job.env["ZED_CHECKPOINT_EPOCH"] = "15";
  b.order(start);
  ASSERT_EQ(b.launches.size(), 1u);
  EXPECT_EQ(b.launches[0].launch.env.at("ZED_CHECKPOINT"), "epoch-15");
  EXPECT_EQ(b.launches[0].launch.env.at("ZED_CHECKPOINT_EPOCH"), "15");
  EXPECT_EQ(b.launches[0].launch.env.at("ZED_CHECKPOINT_STEP"), "");
  b.job_commits(16);
  b.job_exits(ExitRecord::Kind::exit_code);
  start = b.starting(2);
  start.job.env["ZED_CHECKPOINT"] = "epoch-15";
  b.order(start);
  ASSERT_EQ(b.launches.size(), 2u);
  EXPECT_EQ(b.launches[1].launch.env.at("ZED_CHECKPOINT"), "epoch-16");
}

TEST(Attempts, JobsGoOnWhileNoControllerIsThere) {
  Bench b;
  b.start();
  b.run_job();
  b.disconnect();
  b.pass(minutes(10));
  EXPECT_TRUE(b.stops.empty());
  EXPECT_TRUE(b.job_commits(1).result);
  b.job_exits();
  b.messages.clear();
  b.connect(2);
  EXPECT_EQ(b.said<AttemptReport>(2).size(), 1u);
  EXPECT_EQ(b.picture()[b.dataset()].snapshots.size(), 2u);
}

TEST(Attempts, AClockThatJumpsAnHourChangesNothing) {
  Bench b;
  b.start();
  b.run_job();
  b.now.wall.ms += 3'600'000;
  b.pass(seconds(5));
  b.now.wall.ms -= 7'200'000;
  b.pass(seconds(5));
  EXPECT_TRUE(b.stops.empty());
  EXPECT_TRUE(b.job_commits(1).result);
}

}  // namespace
}  // namespace zed::agent::test
