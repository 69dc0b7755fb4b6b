// How an attempt ends: asked to, by itself, or where nobody looked; each is closed and reported
// once.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/bench_test.hpp"

namespace zed::agent::test {
namespace {

const Snapshot* closing_of(const Dataset& dataset, const Generation& generation) {
  for (const Snapshot& snapshot : dataset.snapshots)
    if (snapshot.properties.count(property::closing) > 0 &&
        snapshot.properties.at(property::generation) == generation.str())
      return &snapshot;
  return nullptr;
}

// ---- stops ----

TEST(Stops, StopAsksForACheckpointFirst) {
  Bench b;
  b.start();
  b.run_job();
  EXPECT_FALSE(b.order(StopAttempt{b.job_id(), gen(1), StopMode::stop, "drain"}));
  StepId stop = b.last_step();
  ASSERT_EQ(b.asks.size(), 1u);
  EXPECT_EQ(b.asks[0].ask, env::Ask::stop);
  EXPECT_TRUE(b.stops.empty());
  EXPECT_TRUE(b.job_commits(3).result);
  b.feed(JobStopped{7});
  b.job_exits(ExitRecord::Kind::success);  // exit 0 after "stopped" is no success
  EXPECT_EQ(b.last_report()->exit->kind, ExitRecord::Kind::stopped);
  ASSERT_TRUE(b.answer_to(stop));
  EXPECT_FALSE(b.answer_to(stop)->error);
}

TEST(Stops, AJobThatIgnoresTheAskIsSignalledInTheEnd) {
  Bench b;
  b.start();
  b.run_job();
  b.order(StopAttempt{b.job_id(), gen(1), StopMode::stop, "drain"});
  b.pass(seconds(59));
  EXPECT_TRUE(b.stops.empty());
  b.pass(seconds(2));
  ASSERT_EQ(b.stops.size(), 1u);
  EXPECT_EQ(b.stops[0].mode, StopMode::stop);
}

TEST(Stops, AJobThatFinishesWhileAskedToStopHasFinished) {
  Bench b;
  b.start();
  b.run_job();
  b.order(StopAttempt{b.job_id(), gen(1), StopMode::stop, "drain"});
  b.job_exits(ExitRecord::Kind::success);
  EXPECT_EQ(b.last_report()->exit->kind, ExitRecord::Kind::success);
}

TEST(Stops, AnExitZeroAfterAnUnheardStopIsNotCountedAsSuccess) {
  Bench b;
  b.start();
  b.run_job();
  b.order(StopAttempt{b.job_id(), gen(1), StopMode::stop, "drain"});
  b.crash();
  b.records.begin()->second.exit = ExitRecord{};  // success, while nobody listened
  b.start();
  EXPECT_EQ(b.last_report()->exit->kind, ExitRecord::Kind::stopped);
}

TEST(Stops, AJobIsAskedToStopOnlyOnceThatIsDurable) {
  Bench b;
  b.start();
  b.run_job();
  b.crash_at(1, false);
  b.order(StopAttempt{b.job_id(), gen(1), StopMode::stop, "drain"});
  ASSERT_TRUE(b.crashed());
  EXPECT_TRUE(b.asks.empty());
  b.records.begin()->second.exit = ExitRecord{};
  b.start();
  EXPECT_EQ(b.last_report()->exit->kind, ExitRecord::Kind::success)
      << "it cannot have meant a stop";
}

TEST(Stops, AStopThatCannotBeNotedIsAskedForLater) {
  Bench b;
  b.start();
  b.run_job();
  b.store.fail_call(1, {ErrorCode::io, false});
  b.order(StopAttempt{b.job_id(), gen(1), StopMode::stop, "drain"});
  EXPECT_TRUE(b.asks.empty());
  b.pass(seconds(2));
  EXPECT_EQ(b.asks.size(), 1u);
}

TEST(Stops, WhatWasJudgedOnceStaysSo) {
  Bench b;
  b.start();
  b.run_job();
  b.order(StopAttempt{b.job_id(), gen(1), StopMode::stop, "drain"});
  b.feed(JobStopped{7});
  b.job_exits(ExitRecord::Kind::success);
  ASSERT_EQ(b.last_report()->exit->kind, ExitRecord::Kind::stopped);
  b.crash();  // nobody acknowledged the end; the supervisor's record says success
  ASSERT_EQ(b.records.begin()->second.exit->kind, ExitRecord::Kind::success);
  b.messages.clear();
  b.start();
  ASSERT_TRUE(b.last_report());
  EXPECT_EQ(b.last_report()->exit->kind, ExitRecord::Kind::stopped);
}

TEST(Stops, CancelHardensAStop) {
  Bench b;
  b.start();
  b.run_job();
  b.order(StopAttempt{b.job_id(), gen(1), StopMode::stop, "drain"});
  b.order(StopAttempt{b.job_id(), gen(1), StopMode::cancel, "person"});
  ASSERT_EQ(b.stops.size(), 1u);
  EXPECT_EQ(b.stops[0].mode, StopMode::cancel);
  EXPECT_EQ(b.last_report()->exit->kind, ExitRecord::Kind::cancelled);
}

TEST(Stops, AStopOfAnOlderGenerationLeavesTheNewerAlone) {
  Bench b;
  b.start();
  b.make_job_dataset();
  b.order(b.starting(5));
  EXPECT_FALSE(b.order(StopAttempt{b.job_id(), gen(4), StopMode::halt, "late"})->error);
  EXPECT_TRUE(b.stops.empty());
}

// ---- ends ----

TEST(Ends, AnEndIsClosedThenReportedUntilItIsAcknowledged) {
  Bench b;
  b.start();
  b.run_job();
  b.job_writes("result", "42");
  b.job_exits();
  Dataset there = b.seen("jobs/train");
  const Snapshot* closing = closing_of(there, gen(1));
  ASSERT_NE(closing, nullptr);
  EXPECT_EQ(closing->properties.at(property::closing), "success");
  EXPECT_FALSE(closing->seq());
  EXPECT_TRUE(there.readonly);
  EXPECT_EQ(there.property(property::status), "succeeded");
  EXPECT_EQ(b.last_report()->phase, AttemptPhase::ended);
  EXPECT_EQ(b.last_report()->closing_snapshot, closing->id);
  EXPECT_TRUE(b.state->held_gpus().empty());
  b.disconnect();
  b.messages.clear();
  b.connect(2);
  EXPECT_EQ(b.said<AttemptReport>(2).size(), 1u);
  b.say(AckExit{b.job_id(), gen(1)}, 2);
  ASSERT_EQ(b.forgotten.size(), 1u);
  EXPECT_TRUE(b.state->attempts().empty());
}

TEST(Ends, AnAckBeforeTheEndIsIgnored) {
  Bench b;
  b.start();
  b.run_job();
  b.say(AckExit{b.job_id(), gen(1)});
  EXPECT_TRUE(b.forgotten.empty());
  EXPECT_EQ(b.state->attempts().size(), 1u);
}

TEST(Ends, AnEndThatNobodySawIsClosedAtStart) {
  Bench b;
  b.start();
  b.run_job();
  b.crash();
  b.records.begin()->second.exit = ExitRecord{};
  b.start();
  EXPECT_EQ(b.last_report()->phase, AttemptPhase::ended);
  EXPECT_NE(closing_of(b.seen("jobs/train"), gen(1)), nullptr);
}

void expect_closed(const Bench& b) {
  EXPECT_EQ(b.pool(), "jobs/train: @closed-1.1");  // not writable any more
  EXPECT_EQ(b.seen("jobs/train").property(property::status), "succeeded");
  ASSERT_TRUE(b.last_report());
  EXPECT_EQ(b.last_report()->phase, AttemptPhase::ended);
  EXPECT_EQ(b.last_report()->closing_snapshot, b.checkpoint("closed-1.1"));
}

TEST(Ends, TheClosingIsDoneOnceWhereverTheAgentDies) {
  for (bool happens : {false, true}) {
    SCOPED_TRACE(happens ? "done" : "not done");
    Bench b;
    b.start();
    b.run_job();
    b.job_writes("result", "42");
    b.crash_at(1, happens);  // all of it is one change
    b.job_exits();
    ASSERT_TRUE(b.crashed());
    b.start();
    expect_closed(b);
  }
}

TEST(Ends, AClosingThatAStoreDidByHalvesIsFinished) {
  // A look, then what Store::seal() makes of it: the snapshot, readonly, the properties.
  for (std::uint64_t call = 1; call <= 4; ++call)
    for (bool after : {false, true}) {
      SCOPED_TRACE(testing::Message() << "call " << call << (after ? " done" : " not done"));
      Bench b;
      b.start();
      b.run_job();
      b.job_writes("result", "42");
      b.store.fail_call(call, {ErrorCode::io, after});
      b.job_exits();
      b.pass(seconds(10));
      expect_closed(b);
    }
}

TEST(Ends, ALostSupervisorIsNoFailureOfTheJob) {
  Bench b;
  b.start();
  b.run_job();
  b.feed(SupervisorLost{b.job_id(), gen(1)});
  EXPECT_EQ(b.state->held_gpus().count("GPU-0"), 1u);
  b.job_exits(ExitRecord::Kind::signal);
  EXPECT_EQ(b.last_report()->exit->kind, ExitRecord::Kind::supervisor_lost);
}

TEST(Ends, WhatIsFoundWithoutSupervisorIsKilledAndReportedLost) {
  Bench b;
  b.start();
  b.run_job();
  b.crash();
  b.records.begin()->second.supervisor_alive = false;
  b.start();
  ASSERT_EQ(b.stops.size(), 1u);
  EXPECT_EQ(b.last_report()->exit->kind, ExitRecord::Kind::supervisor_lost);
}

TEST(Ends, ALaunchThatFailsIsAnEndNotASilence) {
  Bench b;
  b.start();
  b.make_job_dataset();
  b.launch_result = fail(ErrorCode::io, "fork: no memory");
  b.order(b.starting(1));
  EXPECT_EQ(b.last_report()->phase, AttemptPhase::ended);
  EXPECT_EQ(b.last_report()->exit->kind, ExitRecord::Kind::start_failed);
  EXPECT_TRUE(b.state->held_gpus().empty());
}

TEST(Ends, AFullPoolDelaysASuccessButNeverLosesIt) {
  Bench b;
  b.start();
  b.run_job();
  b.job_writes("result", "42");
  b.store.set_full(true);
  b.job_exits();
  EXPECT_EQ(b.last_report()->phase, AttemptPhase::closing);
  b.pass(minutes(3));
  EXPECT_EQ(b.last_report()->phase, AttemptPhase::closing);
  b.store.set_full(false);
  b.pass(minutes(2));
  EXPECT_EQ(b.last_report()->phase, AttemptPhase::ended);
  EXPECT_TRUE(b.last_report()->closing_snapshot);
}

/// The store has this to say of each snapshot from now on.
void refuse_snapshots(Bench& b, ErrorCode code) {
  b.store.set_fault_hook([code](std::string_view operation, const DatasetName&) {
    return operation == "snapshot" ? std::optional(sim::StoreFault{code}) : std::nullopt;
  });
}

TEST(Ends, ASuccessWhoseFolderIsGoneIsNoneAndDoesNotWaitForEver) {
  Bench b;
  b.start();
  b.run_job();
  refuse_snapshots(b, ErrorCode::not_found);
  b.job_exits();
  EXPECT_EQ(b.last_report()->phase, AttemptPhase::closing);
  EXPECT_TRUE(b.state->held_gpus().empty()) << "no process is left";
  b.pass(minutes(3));
  ASSERT_EQ(b.last_report()->phase, AttemptPhase::ended);
  EXPECT_FALSE(b.last_report()->closing_snapshot);
  EXPECT_EQ(b.last_report()->exit->kind, ExitRecord::Kind::exit_code);
  EXPECT_THAT(b.last_report()->exit->words,
              ::testing::HasSubstr("its last files could not be kept"));
}

TEST(Ends, ADiskThatFailsIsWaitedForLongerAndNotForEver) {
  Bench b;
  b.start();
  b.run_job();
  refuse_snapshots(b, ErrorCode::io);
  b.job_exits();
  b.pass(minutes(10));
  EXPECT_EQ(b.last_report()->phase, AttemptPhase::closing);
  b.pass(minutes(25));
  EXPECT_EQ(b.last_report()->phase, AttemptPhase::ended);
}

TEST(Ends, WhoStopsAJobDoesNotWaitForADiskThatStaysFull) {
  Bench b;
  b.start();
  b.run_job();
  b.store.set_full(true);
  b.job_exits();
  b.pass(minutes(3));
  ASSERT_EQ(b.last_report()->phase, AttemptPhase::closing);
  b.order(StopAttempt{b.job_id(), gen(1), StopMode::stop, "asked"});
  b.pass(minutes(2));
  EXPECT_EQ(b.last_report()->phase, AttemptPhase::ended);
  EXPECT_NE(b.last_report()->exit->kind, ExitRecord::Kind::success);
}

}  // namespace
}  // namespace zed::agent::test
