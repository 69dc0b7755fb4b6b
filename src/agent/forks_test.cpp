#include <algorithm>

#include <gtest/gtest.h>

#include "agent/bench_test.hpp"
#include "agent/fork_plan.hpp"

namespace zed::agent::test {
namespace {

const std::string branch = "jobs/train.t1-1-636f6e74";  // branch_leaf of timeline 1

/// A job that committed three epochs and was then killed by its own fault.
void three_epochs(Bench& b) {
  b.start();
  b.run_job();
  for (int epoch = 1; epoch <= 3; ++epoch)
    b.job_commits(epoch);
  b.job_exits(ExitRecord::Kind::exit_code);
  b.say(AckExit{b.job_id(), gen(1)});
}

void expect_forked(const Bench& b, std::uint64_t timeline) {
  EXPECT_EQ(b.pool(), "jobs/train: @epoch-1 @epoch-2; " + branch + ": @epoch-3 @closed-1.1");
  Dataset main = b.seen("jobs/train");
  EXPECT_EQ(main.uuid.bytes, b.job_id().bytes);
  EXPECT_EQ(main.timeline(), gen(timeline));
  EXPECT_EQ(main.property(property::type), "job");
  EXPECT_EQ(main.property(property::name), "train");
  EXPECT_EQ(main.property(property::home), "server");
  EXPECT_EQ(main.property(property::checkpoint), "@epoch-2");
  EXPECT_EQ(main.property(property::intent), "");
  EXPECT_EQ(main.property(property::lineage),
            gen(timeline).str() + "@" + main.find("epoch-2")->id.str());
  Dataset left = b.seen(branch);
  EXPECT_EQ(left.uuid, id<DatasetId>("branch" + std::to_string(timeline)));
  EXPECT_EQ(left.property(property::type), "branch");
  EXPECT_EQ(left.property(property::branch_of), b.job_id().str());
  EXPECT_EQ(left.property(property::intent), "");
  EXPECT_EQ(left.timeline(), gen(1));
  EXPECT_EQ(b.store.live_files(b.dataset()).at("weights"), "epoch 2");
}

TEST(Forks, AnOlderCheckpointMovesTheRestToABranch) {
  Bench b;
  three_epochs(b);
  auto done = b.order(b.fork_at("epoch-2", 5));
  ASSERT_TRUE(done);
  EXPECT_FALSE(done->error) << done->error->describe();
  expect_forked(b, 5);
  EXPECT_EQ(b.picture()[b.dataset()].snapshots.size(), 2u);
  EXPECT_EQ(b.picture()[ds(branch)].snapshots.size(), 2u);
  // The order comes again after a start of the controller: nothing moves.
  auto before = b.pool();
  EXPECT_FALSE(b.order(b.fork_at("epoch-2", 5))->error);
  EXPECT_EQ(b.pool(), before);
  // The job goes on, on the new timeline only.
  EXPECT_EQ(b.order(b.starting(6, 1))->error->code, ErrorCode::stale);
  EXPECT_FALSE(b.order(b.starting(6, 5))->error);
  EXPECT_EQ(b.launches.back().launch.env.at("ZED_CHECKPOINT"), "epoch-2");
  b.feed(JobConnected{7, b.job_id(), gen(6)});
  auto reply = b.job_commits(3, 6);
  ASSERT_TRUE(reply.result);
  EXPECT_EQ(reply.seq, 3u);
}

TEST(Forks, EveryMoveMayBeLostOrTheLastThingDone) {
  int changes = 0;
  for (int change = 1;; ++change) {
    bool any = false;
    for (bool happens : {false, true}) {
      SCOPED_TRACE(testing::Message() << "change " << change << (happens ? " done" : " not done"));
      Bench b;
      three_epochs(b);
      ApplyFork fork = b.fork_at("epoch-2", 5);
      b.crash_at(change, happens);
      b.order(fork);
      if (!b.crashed()) continue;
      any = true;
      b.start();
      b.order(fork);  // the controller says it again
      expect_forked(b, 5);
    }
    if (!any) break;
    changes = change;
  }
  // intent, identity, name, clone, promote, readonly twice, intent cleared
  EXPECT_GE(changes, 7);
}

TEST(Forks, AnIntentOnceWrittenIsFinishedWithoutAnyController) {
  for (int change = 1; change <= 7; ++change) {
    SCOPED_TRACE(change);
    Bench b;
    three_epochs(b);
    b.crash_at(change, true);
    b.order(b.fork_at("epoch-2", 5));
    ASSERT_TRUE(b.crashed());
    b.start_alone();
    expect_forked(b, 5);
    b.feed(ControllerConnected{9});
    EXPECT_EQ(b.said<Hello>(9).size(), 1u);
  }
}

TEST(Forks, HelloWaitsForTheUnfinishedFork) {
  Bench b;
  three_epochs(b);
  b.crash_at(3, true);
  b.order(b.fork_at("epoch-2", 5));
  b.store.set_fault_hook([](std::string_view operation, const DatasetName&) {
    return operation == "clone" ? std::optional(sim::StoreFault{ErrorCode::busy, false})
                                : std::nullopt;
  });
  b.start_alone();
  b.feed(ControllerConnected{1});
  EXPECT_TRUE(b.said<Hello>().empty());
  b.store.set_fault_hook({});
  b.pass(seconds(2));
  EXPECT_EQ(b.said<Hello>().size(), 1u);
  expect_forked(b, 5);
}

TEST(Forks, ABusyPromoteIsTriedAgain) {
  Bench b;
  three_epochs(b);
  int refusals = 3;
  b.store.set_fault_hook([&](std::string_view operation, const DatasetName&) {
    bool refuse = operation == "promote" && refusals-- > 0;
    return refuse ? std::optional(sim::StoreFault{ErrorCode::busy, false}) : std::nullopt;
  });
  b.order(b.fork_at("epoch-2", 5));
  StepId step = b.last_step();
  b.pass(seconds(5));
  ASSERT_TRUE(b.answer_to(step));
  EXPECT_FALSE(b.answer_to(step)->error);
  expect_forked(b, 5);
}

/// Between rename and promote the branch has no snapshot that stays; after it, some are the job's
/// again. Who looks in between must not think that a person took or destroyed them.
TEST(Forks, WhatTheBranchIsMeanwhileIsNobodysHand) {
  Bench b;
  three_epochs(b);
  int refusals = 12;
  b.store.set_fault_hook([&](std::string_view operation, const DatasetName&) {
    bool refuse = operation == "promote" && refusals-- > 0;
    return refuse ? std::optional(sim::StoreFault{ErrorCode::busy, false}) : std::nullopt;
  });
  b.order(b.fork_at("epoch-2", 5));
  b.pass(seconds(20));  // it looks around every two seconds
  EXPECT_TRUE(b.is_there(branch));
  EXPECT_EQ(b.state->datasets().count(ds(branch)), 0u) << "half done, and told of already";
  b.pass(minutes(20));
  expect_forked(b, 5);
  for (const std::string& notice : b.notices())
    EXPECT_EQ(notice.find("by hand"), std::string::npos) << notice;
}

TEST(Forks, ResultsThatAreLostAreFoundByLookingAgain) {
  for (std::string_view lost : {"set", "rename", "clone", "promote", "set_readonly"}) {
    SCOPED_TRACE(std::string(lost));
    Bench b;
    three_epochs(b);
    bool once = true;
    b.store.set_fault_hook([&](std::string_view operation, const DatasetName&) {
      bool hit = operation == lost && std::exchange(once, operation != lost);
      return hit ? std::optional(sim::StoreFault{ErrorCode::io, true}) : std::nullopt;
    });
    ApplyFork fork = b.fork_at("epoch-2", 5);
    b.order(fork);
    b.pass(seconds(5));
    b.order(fork);
    expect_forked(b, 5);
  }
}

TEST(Forks, ARunningJobIsHaltedAndItsWorkKept) {
  Bench b;
  b.start();
  b.run_job();
  for (int epoch = 1; epoch <= 3; ++epoch)
    b.job_commits(epoch);
  b.job_writes("weights", "half of epoch 4");
  auto done = b.order(b.fork_at("epoch-2", 5));
  ASSERT_TRUE(done && !done->error);
  ASSERT_EQ(b.stops.size(), 1u);
  EXPECT_EQ(b.stops[0].mode, StopMode::halt);
  EXPECT_TRUE(b.asks.empty());  // no checkpoint is asked for
  expect_forked(b, 5);
  auto files = b.store.snapshot_files(SnapshotName{ds(branch), "closed-1.1"});
  EXPECT_EQ(files->at("weights"), "half of epoch 4");
}

TEST(Forks, ARepeatedOrderDoesNotStopTheAttemptThatCameAfterTheFork) {
  Bench b;
  three_epochs(b);
  ApplyFork fork = b.fork_at("epoch-2", 5);
  b.order(fork);
  ASSERT_FALSE(b.order(b.starting(6, 5))->error);
  EXPECT_FALSE(b.order(fork)->error);
  EXPECT_TRUE(b.stops.empty());
}

TEST(Forks, AnOlderForkIsStale) {
  Bench b;
  three_epochs(b);
  ApplyFork older = b.fork_at("epoch-1", 4);
  b.order(b.fork_at("epoch-2", 5));
  EXPECT_EQ(b.order(older)->error->code, ErrorCode::stale);
  expect_forked(b, 5);
}

TEST(Forks, TheNewestWithNothingSinceOnlyChangesProperties) {
  Bench b;
  b.start();
  b.make_job_dataset();
  must(b.store.snapshot(SnapshotName{b.dataset(), "epoch-1"},
                        {{property::id, id<CheckpointId>("one").str()}, {property::seq, "1"}}));
  EXPECT_FALSE(b.order(b.fork_at("epoch-1", 5))->error);
  EXPECT_EQ(b.pool(), "jobs/train: @epoch-1");
  EXPECT_EQ(b.seen("jobs/train").timeline(), gen(5));
}

TEST(Forks, FilesWrittenSinceAreKeptFirst) {
  Bench b;
  b.start();
  b.make_job_dataset();
  must(b.store.snapshot(SnapshotName{b.dataset(), "epoch-1"},
                        {{property::id, id<CheckpointId>("one").str()}, {property::seq, "1"}}));
  b.job_writes("notes", "by hand");
  EXPECT_FALSE(b.order(b.fork_at("epoch-1", 5))->error);
  EXPECT_EQ(b.pool(), "jobs/train: @epoch-1; " + branch + ": @closed-1.1-fork");
}

TEST(Forks, WithoutACheckpointTheJobBeginsAgainFromItsInput) {
  Bench b;
  b.start();
  b.make_job_dataset();
  b.job_writes("main.py", "code");
  must(b.store.snapshot(SnapshotName{b.dataset(), "submitted"},
                        {{property::id, id<CheckpointId>("submitted").str()}}));
  b.order(b.starting(1));
  b.job_writes("half", "done");
  b.job_exits(ExitRecord::Kind::signal);
  ApplyFork fork = b.fork_at("submitted", 5);
  fork.fork.from.reset();
  EXPECT_FALSE(b.order(fork)->error);
  EXPECT_EQ(b.pool(), "jobs/train: @submitted; " + branch + ": @closed-1.1");
  EXPECT_EQ(b.store.live_files(b.dataset()).count("half"), 0u);
}

TEST(Forks, WithoutAnySnapshotOfItsInputTheDatasetIsMadeAnew) {
  for (int change = 0; change <= 8; ++change) {
    SCOPED_TRACE(change);
    Bench b;
    b.start();
    b.make_job_dataset();
    b.order(b.starting(1));
    b.job_writes("half", "done");
    b.job_exits(ExitRecord::Kind::signal);
    ApplyFork fork = b.fork_at("none", 5);
    fork.fork.from.reset();
    b.crash_at(change, true);
    b.order(fork);
    if (b.crashed()) b.start();
    b.order(fork);
    EXPECT_EQ(b.pool(), "jobs/train:; " + branch + ": @closed-1.1");
    EXPECT_EQ(b.seen("jobs/train").timeline(), gen(5));
  }
}

TEST(Forks, DiscardDestroysTheBranchAndNothingElseWhereverTheAgentDies) {
  for (int change = 0; change <= 12; ++change) {
    SCOPED_TRACE(change);
    Bench b;
    three_epochs(b);
    ApplyFork fork = b.fork_at("epoch-2", 5);
    fork.fork.discard = true;
    b.crash_at(change, true);
    b.order(fork);
    if (b.crashed()) b.start();
    b.order(fork);
    EXPECT_EQ(b.pool(), "jobs/train: @epoch-1 @epoch-2");
  }
}

TEST(Forks, DiscardLeavesWhatAnOlderBranchStandsOn) {
  Bench b;
  three_epochs(b);
  b.order(b.fork_at("epoch-2", 5));
  ASSERT_FALSE(b.order(b.starting(6, 5))->error);
  b.feed(JobConnected{7, b.job_id(), gen(6)});
  b.job_commits(3, 6);
  ApplyFork fork = b.fork_at("epoch-1", 8, 5);
  fork.fork.discard = true;
  EXPECT_FALSE(b.order(fork)->error) << "the fork is done";
  // The first branch was cloned from epoch-2.
  const std::string left = "jobs/train: @epoch-1; " + branch +
                           ": @epoch-3 @closed-1.1; jobs/train.t1-5-636f6e74: @epoch-2";
  EXPECT_EQ(b.pool(), left);
  EXPECT_FALSE(b.order(fork)->error) << "again: nothing more to do";
  EXPECT_EQ(b.pool(), left);
  ASSERT_FALSE(b.notices().empty());
  EXPECT_NE(b.notices().back().find("is not destroyed altogether"), std::string::npos);
  EXPECT_FALSE(b.order(b.starting(9, 8))->error) << "and the job goes on";
}

TEST(Forks, TransfersEndFirst) {
  Bench b;
  three_epochs(b);
  Ticket ticket;
  ticket.id = id<TransferId>("t");
  ticket.dataset = ticket.target_dataset = b.dataset();
  ticket.uuid = b.seen("jobs/train").uuid;
  ticket.source = node("server");
  ticket.target = node("laptop");
  ticket.snapshot = b.checkpoint("epoch-3");
  ticket.timeline = gen(1);
  b.transfers_obey = false;
  EXPECT_FALSE(b.order(SendSnapshot{ticket}));
  StepId send = b.last_step();
  ASSERT_EQ(b.transfers.size(), 1u);
  EXPECT_FALSE(b.order(b.fork_at("epoch-2", 5)));
  StepId fork = b.last_step();
  EXPECT_EQ(b.cancels.size(), 1u);
  EXPECT_EQ(b.seen("jobs/train").property(property::intent), "");  // not even begun
  // A new one is refused meanwhile.
  EXPECT_EQ(b.order(SendSnapshot{ticket})->error->code, ErrorCode::busy);
  b.feed(TransferEnded{send, fail(ErrorCode::cancelled, "cancelled")});
  EXPECT_EQ(b.answer_to(send)->error->code, ErrorCode::cancelled);
  ASSERT_TRUE(b.answer_to(fork));
  EXPECT_FALSE(b.answer_to(fork)->error);
  expect_forked(b, 5);
}

TEST(Forks, TheHomeMustHaveTheCheckpoint) {
  Bench b;
  three_epochs(b);
  ApplyFork fork = b.fork_at("epoch-2", 5);
  fork.fork.from = id<CheckpointId>("elsewhere");
  EXPECT_EQ(b.order(fork)->error->code, ErrorCode::not_found);
}

TEST(Forks, AReplicaThatIsBehindOnlyFollows) {
  Bench b;
  three_epochs(b);
  must(b.store.set(b.dataset(), {{property::home, "laptop"}}));
  ApplyFork fork = b.fork_at("epoch-2", 5);
  fork.home = node("laptop");
  fork.fork.from = id<CheckpointId>("epoch-9 there");
  EXPECT_FALSE(b.order(fork)->error);
  EXPECT_EQ(b.pool(), "jobs/train: @epoch-1 @epoch-2 @epoch-3 @closed-1.1");
  EXPECT_EQ(b.seen("jobs/train").timeline(), gen(5));
  EXPECT_EQ(b.seen("jobs/train").property(property::home), "laptop");
}

TEST(Forks, AReplicaThatMissedAForkFollowsItsHomeFirst) {
  Bench b;
  three_epochs(b);
  must(b.store.set(b.dataset(), {{property::home, "laptop"}}));
  ApplyFork fork = b.fork_at("epoch-2", 9, 5);  // it left timeline 5, unknown here
  fork.home = node("laptop");
  fork.fork.from = id<CheckpointId>("epoch-9 there");
  EXPECT_EQ(b.order(fork)->error->code, ErrorCode::conflict);
  FollowHome follow{b.dataset(), fork.uuid, b.checkpoint("epoch-1"), id<DatasetId>("branch9")};
  EXPECT_FALSE(b.order(follow)->error);
  EXPECT_EQ(b.pool(), "jobs/train: @epoch-1; " + branch + ": @epoch-2 @epoch-3 @closed-1.1");
  EXPECT_FALSE(b.order(follow)->error);  // again: nothing
  EXPECT_FALSE(b.order(fork)->error);
  EXPECT_EQ(b.seen("jobs/train").timeline(), gen(9));
}

TEST(Forks, ACopyThatHasNothingInCommonWithItsHomeBeginsAnew) {
  Bench b;
  three_epochs(b);
  must(b.store.set(b.dataset(), {{property::home, "laptop"}}));
  FollowHome follow{b.dataset(), b.seen("jobs/train").uuid, CheckpointId{},
                    id<DatasetId>("branch9")};
  auto done = b.order(follow);
  ASSERT_TRUE(done);
  EXPECT_FALSE(done->error) << done->error->describe();
  EXPECT_EQ(b.pool(), "jobs/train:; " + branch + ": @epoch-1 @epoch-2 @epoch-3 @closed-1.1");
  EXPECT_EQ(b.seen("jobs/train").timeline(), std::nullopt);
  EXPECT_FALSE(b.order(follow)->error);  // again: nothing
}

TEST(Forks, AForkNeverLowersTheGeneration) {
  Bench b;
  three_epochs(b);
  // A replica that went back to its home's history, and had seen later generations.
  must(b.store.set(b.dataset(), {{property::home, "laptop"},
                                 {property::generation, gen(7).str()},
                                 {property::timeline, std::nullopt}}));
  ApplyFork fork = b.fork_at("epoch-2", 5);
  fork.home = node("laptop");
  EXPECT_FALSE(b.order(fork)->error);
  EXPECT_EQ(b.seen("jobs/train").generation(), gen(7));
  EXPECT_EQ(b.seen("jobs/train").timeline(), gen(5));
}

TEST(Forks, AReplicaWhoseNewestSnapshotWasDestroyedGoesOnFromTheOneBefore) {
  Bench b;
  b.start();
  b.run_job();
  b.job_writes("state", "one");
  b.job_commits(1);
  b.job_writes("state", "two");
  b.job_commits(2);
  b.job_exits(ExitRecord::Kind::exit_code);
  b.say(AckExit{b.job_id(), gen(1)});
  must(b.store.set(b.dataset(), {{property::home, "laptop"}}));
  must(b.store.destroy_snapshot(SnapshotName{b.dataset(), "closed-1.1"}));
  must(b.store.destroy_snapshot(SnapshotName{b.dataset(), "epoch-2"}));
  auto done = b.order(b.fork_at("epoch-1", 5));
  ASSERT_TRUE(done);
  EXPECT_FALSE(done->error) << done->error->describe();
  EXPECT_EQ(b.pool(), "jobs/train: @epoch-1");
  EXPECT_EQ(b.store.live_files(b.dataset()).at("state"), "one");
}

TEST(Forks, ABranchNameThatIsTakenGetsANumber) {
  Bench b;
  three_epochs(b);
  must(b.store.create(ds(branch), {{"note", "a person's"}}));
  b.pass(seconds(3));
  EXPECT_FALSE(b.order(b.fork_at("epoch-2", 5))->error);
  EXPECT_EQ(b.seen(branch + "-2").snapshots.size(), 2u);
}

TEST(Forks, TwoForksOneAfterTheOtherBothKeepWhatTheyLeft) {
  Bench b;
  three_epochs(b);
  b.order(b.fork_at("epoch-2", 5));
  ASSERT_FALSE(b.order(b.starting(6, 5))->error);
  b.feed(JobConnected{7, b.job_id(), gen(6)});
  b.job_commits(3, 6);
  EXPECT_FALSE(b.order(b.fork_at("epoch-1", 8, 5))->error);
  EXPECT_EQ(b.pool(), "jobs/train: @epoch-1; " + branch +
                          ": @epoch-3 @closed-1.1; jobs/train.t1-5-636f6e74: @epoch-2 @epoch-3 "
                          "@closed-1.6");
}

TEST(Forks, AnIntentThatDoesNotReadStopsNothingElse) {
  Bench b;
  three_epochs(b);
  must(b.store.set(b.dataset(), {{property::intent, "{not json"}}));
  b.crash();
  b.start();
  EXPECT_EQ(b.said<Hello>().size(), 1u);
  EXPECT_EQ(b.order(b.starting(2))->error->code, ErrorCode::busy);
  EXPECT_EQ(b.order(b.fork_at("epoch-2", 5))->error->code, ErrorCode::corrupt);
}

TEST(ForkPlan, TheIntentReadsBack) {
  Intent intent;
  intent.dataset = ds("jobs/train");
  intent.uuid = id<DatasetId>("u");
  intent.branch = ds("jobs/train.t1");
  intent.branch_uuid = id<DatasetId>("b");
  intent.changes = {{"a", "1"}, {"gone", std::nullopt}};
  intent.discard = true;
  EXPECT_EQ(parse_intent(intent_text(intent)).value(), intent);
  EXPECT_EQ(parse_intent("{}").error().code, ErrorCode::corrupt);
}

TEST(ForkPlan, TheLineageKeepsTheLastTwenty) {
  std::string lineage;
  for (std::uint64_t i = 1; i <= 30; ++i) {
    Fork fork;
    fork.timeline = gen(i);
    lineage = extended_lineage(lineage, fork);
    EXPECT_EQ(extended_lineage(lineage, fork), lineage);  // said twice, kept once
  }
  EXPECT_EQ(std::count(lineage.begin(), lineage.end(), ','), 19);
  EXPECT_TRUE(lineage.starts_with(gen(11).str()));
}

}  // namespace
}  // namespace zed::agent::test
