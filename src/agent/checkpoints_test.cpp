#include <gtest/gtest.h>

#include "agent/bench_test.hpp"

namespace zed::agent::test {
namespace {

ErrorCode code_of(const env::CheckpointReply& reply) {
  return reply.result ? ErrorCode::internal : reply.result.error().code;
}

TEST(Checkpoints, EachContinuesTheOneBefore) {
  Bench b;
  b.start();
  b.run_job();
  auto first = b.job_commits(1);
  auto second = b.job_commits(2);
  ASSERT_TRUE(first.result && second.result);
  EXPECT_EQ(first.seq, 1u);
  EXPECT_EQ(second.seq, 2u);
  EXPECT_EQ(second.result->properties.at(property::parent), first.result->id.str());
  EXPECT_EQ(second.result->properties.at("loss"), "0.5");
  EXPECT_EQ(second.result->properties.at(property::timeline), gen(1).str());
  EXPECT_EQ(b.seen("jobs/train").property(property::checkpoint), "@epoch-2");
  EXPECT_EQ(b.last_report()->last_checkpoint, second.result->id);
  EXPECT_EQ(b.last_report()->phase, AttemptPhase::running);
  EXPECT_EQ(b.picture()[b.dataset()].snapshots.size(), 2u);
}

TEST(Checkpoints, ATakenNameGetsItsNumber) {
  Bench b;
  b.start();
  b.run_job();
  b.job_commits(1);
  b.job_commits(1);
  EXPECT_EQ(b.pool(), "jobs/train!: @epoch-1 @epoch-1.2");
}

TEST(Checkpoints, ANameThatAPersonJustTookIsSteppedAround) {
  Bench b;
  b.start();
  b.run_job();
  must(b.store.snapshot(SnapshotName{b.dataset(), "epoch-1"}, {}));
  EXPECT_TRUE(b.job_commits(1).result);
  EXPECT_EQ(b.pool(), "jobs/train!: @epoch-1 @epoch-1.1");
}

TEST(Checkpoints, ARepeatedNumberGetsTheSameAnswer) {
  Bench b;
  b.start();
  b.run_job();
  b.ask_commit(5, 1);
  b.ask_commit(5, 1);
  ASSERT_EQ(b.answers.size(), 2u);
  EXPECT_EQ(b.answers[0].reply.result->id, b.answers[1].reply.result->id);
  EXPECT_EQ(b.seen("jobs/train").snapshots.size(), 1u);
}

TEST(Checkpoints, ARepeatedNumberGetsTheSameAnswerFromTheNextRunOfTheAgent) {
  Bench b;
  b.start();
  b.run_job();
  b.crash_at(1, true);  // committed, the answer lost
  b.ask_commit(5, 1);
  ASSERT_TRUE(b.crashed());
  b.start();
  b.feed(JobConnected{7, b.job_id(), gen(1)});
  b.ask_commit(5, 1);
  ASSERT_EQ(b.answers.size(), 1u);
  EXPECT_EQ(b.answers[0].reply.result->id, b.checkpoint("epoch-1"));
  EXPECT_EQ(b.seen("jobs/train").snapshots.size(), 1u);
}

TEST(Checkpoints, TwoConnectionsThatAskTheSameGetOneCheckpoint) {
  Bench b;
  b.start();
  b.run_job();
  b.answer_store = false;
  b.ask_commit(5, 1);
  b.ask_commit(5, 1);
  ASSERT_EQ(b.unanswered.size(), 1u);
  CallStore commit = b.unanswered[0];
  b.answer_store = true;
  b.feed(StoreReturned{commit.id, env::perform(b.store, commit.request)});
  EXPECT_EQ(b.answers.size(), 2u);
}

TEST(Checkpoints, ALateRequestIsRefused) {
  Bench b;
  b.start();
  b.run_job();
  b.ask_commit(5, 1, 1, Millis{-1});
  EXPECT_EQ(code_of(b.answers.back().reply), ErrorCode::timeout);
  EXPECT_TRUE(b.seen("jobs/train").snapshots.empty());
}

TEST(Checkpoints, ARequestWhoseDeadlinePassesWhileItWaitsIsRefused) {
  Bench b;
  b.start();
  b.run_job();
  b.answer_store = false;
  SetProperties busy{b.dataset(), b.seen("jobs/train").uuid, {{"note", "x"}}};
  b.order(busy);  // holds the dataset
  ASSERT_EQ(b.unanswered.size(), 1u);
  b.ask_commit(5, 1, 1, seconds(1));
  b.now.monotonic = b.now.monotonic + seconds(2);
  b.answer_store = true;
  CallStore inspect = b.unanswered[0];
  b.feed(StoreReturned{inspect.id, env::perform(b.store, inspect.request)});
  ASSERT_EQ(b.answers.size(), 1u);
  EXPECT_EQ(code_of(b.answers[0].reply), ErrorCode::timeout);
  EXPECT_TRUE(b.seen("jobs/train").snapshots.empty());
}

TEST(Checkpoints, AnOlderGenerationIsStale) {
  Bench b;
  b.start();
  b.run_job();
  b.job_exits(ExitRecord::Kind::signal);
  b.say(AckExit{b.job_id(), gen(1)});
  ASSERT_FALSE(b.order(b.starting(2))->error);
  b.ask_commit(9, 4, 1);
  EXPECT_EQ(code_of(b.answers.back().reply), ErrorCode::stale);
}

TEST(Checkpoints, AnEndedAttemptCommitsNothing) {
  Bench b;
  b.start();
  b.run_job();
  b.job_exits();
  b.ask_commit(9, 4, 1);
  EXPECT_EQ(code_of(b.answers.back().reply), ErrorCode::stale);
}

TEST(Checkpoints, AFullDiskIsAnErrorToTheJobAndNothingElse) {
  Bench b;
  b.start();
  b.run_job();
  b.job_writes("weights", "large");
  b.store.set_full(true);
  b.ask_commit(5, 1);
  EXPECT_EQ(code_of(b.answers.back().reply), ErrorCode::no_space);
  EXPECT_TRUE(b.stops.empty());
  EXPECT_EQ(b.last_report()->phase, AttemptPhase::running);
  b.store.set_full(false);
  b.ask_commit(5, 1);  // the same number may try again after an error
  EXPECT_TRUE(b.answers.back().reply.result);
}

TEST(Checkpoints, TheControllerAsksAndGetsTheId) {
  Bench b;
  b.start();
  b.run_job();
  EXPECT_FALSE(b.order(AskCheckpoint{b.job_id(), gen(1), seconds(60), "drain"}));
  StepId ask = b.last_step();
  ASSERT_EQ(b.asks.size(), 1u);
  b.job_commits(1);
  ASSERT_TRUE(b.answer_to(ask));
  EXPECT_EQ(b.answer_to(ask)->snapshot, b.checkpoint("epoch-1"));
}

TEST(Checkpoints, AnAskThatIsIgnoredTimesOut) {
  Bench b;
  b.start();
  b.run_job();
  b.order(AskCheckpoint{b.job_id(), gen(1), seconds(5), "drain"});
  StepId ask = b.last_step();
  b.pass(seconds(6));
  ASSERT_TRUE(b.answer_to(ask));
  EXPECT_EQ(b.answer_to(ask)->error->code, ErrorCode::timeout);
}

StartAttempt every_ten_minutes(const Bench& b) {
  StartAttempt start = b.starting(1);
  start.job.checkpoint_policy.unit = CheckpointPolicy::Unit::time;
  start.job.checkpoint_policy.every = minutes(10);
  return start;
}

TEST(TimedCheckpoints, AJobThatSpeaksIsAsked) {
  Bench b;
  b.start();
  b.make_job_dataset();
  b.order(every_ten_minutes(b));
  b.feed(JobConnected{7, b.job_id(), gen(1)});
  b.pass(minutes(9));
  EXPECT_TRUE(b.asks.empty());
  b.pass(minutes(2));
  EXPECT_EQ(b.asks.size(), 1u);
  EXPECT_TRUE(b.freezes.empty());
}

TEST(TimedCheckpoints, AJobThatDoesNotSpeakIsFrozenForItsSnapshot) {
  Bench b;
  b.start();
  b.make_job_dataset();
  b.order(every_ten_minutes(b));
  b.pass(minutes(11));
  ASSERT_EQ(b.freezes.size(), 2u);
  EXPECT_TRUE(b.freezes[0].frozen);
  EXPECT_FALSE(b.freezes[1].frozen);
  EXPECT_EQ(b.pool(), "jobs/train!: @ckpt-1");
  b.pass(minutes(10));
  EXPECT_EQ(b.pool(), "jobs/train!: @ckpt-1 @ckpt-2");
}

TEST(TimedCheckpoints, ThePeriodSurvivesARestartOfTheAgent) {
  Bench b;
  b.start();
  b.make_job_dataset();
  b.order(every_ten_minutes(b));
  b.crash();
  b.start();
  b.pass(minutes(11));
  EXPECT_EQ(b.pool(), "jobs/train!: @ckpt-1");
}

TEST(TimedCheckpoints, AFreezeThatHangsIsGivenUpAndThawed) {
  Bench b;
  b.start();
  b.make_job_dataset();
  b.order(every_ten_minutes(b));
  b.freezes_work = false;
  b.pass(minutes(11));
  ASSERT_EQ(b.freezes.size(), 2u);
  EXPECT_FALSE(b.freezes[1].frozen);
  EXPECT_TRUE(b.seen("jobs/train").snapshots.empty());
  b.freezes_work = true;
  b.pass(minutes(10));
  EXPECT_EQ(b.pool(), "jobs/train!: @ckpt-1");
}

TEST(TimedCheckpoints, AFrozenJobIsThawedAlsoWhenTheDiskIsFull) {
  Bench b;
  b.start();
  b.make_job_dataset();
  b.order(every_ten_minutes(b));
  b.job_writes("weights", "w");
  b.store.set_full(true);
  b.pass(minutes(11));
  ASSERT_EQ(b.freezes.size(), 2u);
  EXPECT_FALSE(b.freezes.back().frozen);
  EXPECT_EQ(b.last_report()->phase, AttemptPhase::running);
}

TEST(HandRollback, TheJobIsStoppedAndCommitsNothingMore) {
  Bench b;
  b.start();
  b.run_job();
  b.job_commits(1);
  b.job_commits(2);
  b.processes_obey = false;
  must(b.store.destroy_snapshot(SnapshotName{b.dataset(), "epoch-2"}));
  // It outruns the scan: the store's compare-and-commit refuses.
  auto reply = b.job_commits(3);
  EXPECT_EQ(code_of(reply), ErrorCode::stale);
  ASSERT_EQ(b.stops.size(), 1u);
  EXPECT_EQ(b.stops[0].mode, StopMode::halt);
  b.ask_commit(77, 4);
  EXPECT_EQ(code_of(b.answers.back().reply), ErrorCode::stale);
  // The controller sees that the newest is gone, and what the dataset believed to be at.
  EXPECT_EQ(b.picture()[b.dataset()].snapshots.size(), 1u);
  EXPECT_EQ(b.picture()[b.dataset()].property(property::checkpoint), "@epoch-2");
}

TEST(HandRollback, IsFoundByTheScanAndAfterARestart) {
  Bench b;
  b.start();
  b.run_job();
  b.job_commits(1);
  b.job_commits(2);
  must(b.store.destroy_snapshot(SnapshotName{b.dataset(), "epoch-2"}));
  b.pass(seconds(3));
  EXPECT_EQ(b.stops.size(), 1u);
  b.crash();
  b.start();
  auto again = b.order(b.starting(2));
  ASSERT_TRUE(again && again->error);
  EXPECT_EQ(again->error->code, ErrorCode::stale);
  // The fork that the controller records sets it right.
  EXPECT_FALSE(b.order(b.fork_at("epoch-1", 3))->error);
  EXPECT_FALSE(b.order(b.starting(4, 3))->error);
}

TEST(HandRollback, ToTheNewestCheckpointIsOneToo) {
  Bench b;
  b.start();
  b.run_job();
  b.job_commits(1);
  b.job_commits(2);
  // What a store writes that saw the files of a dataset go back under its job.
  must(b.store.set(b.dataset(), {{property::reverted, "@epoch-2"}}));
  b.pass(seconds(3));
  ASSERT_EQ(b.stops.size(), 1u);
  EXPECT_EQ(b.stops[0].mode, StopMode::halt);
  b.crash();
  b.start();
  auto again = b.order(b.starting(2));
  ASSERT_TRUE(again && again->error);
  EXPECT_EQ(again->error->code, ErrorCode::stale);
  EXPECT_FALSE(b.order(b.fork_at("epoch-2", 3))->error);
  EXPECT_EQ(b.picture()[b.dataset()].property(property::reverted), "");
  EXPECT_FALSE(b.order(b.starting(4, 3))->error);
}

}  // namespace
}  // namespace zed::agent::test
