#include <gtest/gtest.h>

#include "agent/bench_test.hpp"

namespace zed::agent::test {
namespace {

const DatasetName model = ds("models/llama");
const DatasetId model_uuid = id<DatasetId>("llama");

Ticket ticket_of(std::string_view snapshot) {
  Ticket ticket;
  ticket.id = id<TransferId>("ticket");
  ticket.dataset = ticket.target_dataset = model;
  ticket.uuid = model_uuid;
  ticket.source = node("laptop");
  ticket.target = node("server");
  ticket.snapshot = id<CheckpointId>(snapshot);
  ticket.snapshot_name = std::string(snapshot);
  return ticket;
}

void make_model(Bench& b) {
  must(b.store.create(model, {{property::uuid, model_uuid.str()}, {property::type, "model"}}));
  must(b.store.snapshot(SnapshotName{model, "v1"}, {{property::id, id<CheckpointId>("v1").str()}}));
}

TEST(Transfers, ASnapshotIsHeldWhileItIsSent) {
  Bench b;
  make_model(b);
  b.start();
  Ticket ticket = ticket_of("v1");
  std::swap(ticket.source, ticket.target);
  b.order(SendSnapshot{ticket});
  StepId step = b.last_step();
  ASSERT_EQ(b.transfers.size(), 1u);
  EXPECT_FALSE(b.store.destroy_snapshot(SnapshotName{model, "v1"}));
  b.feed(TransferEnded{step, TransferOutcome{Bytes{100}, {}}});
  EXPECT_EQ(b.answer_to(step)->moved, Bytes{100});
  EXPECT_TRUE(b.store.destroy_snapshot(SnapshotName{model, "v1"}));
}

TEST(Transfers, WhatAPeerHasIsBookmarkedAfterAZfsStreamOnly) {
  for (StreamKind kind : {StreamKind::files, StreamKind::zfs}) {
    Bench b;
    make_model(b);
    b.start();
    Ticket ticket = ticket_of("v1");
    std::swap(ticket.source, ticket.target);
    ticket.kind = kind;
    b.order(SendSnapshot{ticket});
    StepId step = b.last_step();
    b.feed(TransferEnded{step, TransferOutcome{Bytes{100}, {}}});
    std::size_t bookmarks = 0;
    for (const env::StoreRequest& request : b.store_requests)
      if (const auto* asked = std::get_if<env::BookmarkSnapshot>(&request)) {
        ++bookmarks;
        EXPECT_EQ(asked->snapshot.str(), "models/llama@v1");
        EXPECT_EQ(asked->peer, node("laptop"));
      }
    EXPECT_EQ(bookmarks, kind == StreamKind::zfs ? 1u : 0u);
    EXPECT_FALSE(b.answer_to(step)->error) << "a store that keeps none is no failure";
  }
}

TEST(Transfers, AHoldIsReleasedAlthoughTheStoreFailsForAWhile) {
  Bench b;
  make_model(b);
  b.start();
  Ticket ticket = ticket_of("v1");
  std::swap(ticket.source, ticket.target);
  b.order(SendSnapshot{ticket});
  StepId step = b.last_step();
  int failures = 2;
  b.store.set_fault_hook(
      [&](std::string_view operation, const DatasetName&) -> std::optional<sim::StoreFault> {
        if (operation != "release" || failures-- <= 0) return std::nullopt;
        return sim::StoreFault{ErrorCode::io, failures == 0};
      });
  b.feed(TransferEnded{step, TransferOutcome{Bytes{100}, {}}});
  b.pass(seconds(3));
  b.store.set_fault_hook(nullptr);
  EXPECT_TRUE(b.store.destroy_snapshot(SnapshotName{model, "v1"}));
}

TEST(Transfers, HoldsThatACrashLeftAreReleasedAtStart) {
  Bench b;
  make_model(b);
  b.start();
  Ticket ticket = ticket_of("v1");
  std::swap(ticket.source, ticket.target);
  b.order(SendSnapshot{ticket});
  b.crash();
  b.start();
  EXPECT_TRUE(b.store.destroy_snapshot(SnapshotName{model, "v1"}));
}

TEST(Transfers, ATicketForAnotherTimelineIdentityOrNodeIsRefused) {
  Bench b;
  make_model(b);
  b.start();
  auto code = [&](const Ticket& t) { return b.order(SendSnapshot{t})->error.value().code; };
  Ticket ticket = ticket_of("v1");
  EXPECT_EQ(code(ticket), ErrorCode::invalid);  // its source is the laptop
  std::swap(ticket.source, ticket.target);
  Ticket other = ticket;
  other.timeline = gen(3);
  EXPECT_EQ(code(other), ErrorCode::stale);
  other = ticket;
  other.uuid = id<DatasetId>("x");
  EXPECT_EQ(code(other), ErrorCode::stale);
  other = ticket;
  other.snapshot = id<CheckpointId>("v9");
  EXPECT_EQ(code(other), ErrorCode::not_found);
  EXPECT_TRUE(b.transfers.empty());
}

TEST(Transfers, AReceiveMakesTheReplicaAndReportsIt) {
  Bench b;
  b.start();
  ReceiveSnapshot receive{ticket_of("v1"), {{property::uuid, model_uuid.str()}}};
  EXPECT_FALSE(b.order(receive));
  StepId step = b.last_step();
  ASSERT_EQ(b.transfers.size(), 1u);
  EXPECT_EQ(b.transfers[0].role, StartTransfer::Role::receive);
  b.feed(TransferProgressed{step, Bytes{1}, Bytes{10}, Bytes{1}});
  b.feed(TransferProgressed{step, Bytes{2}, Bytes{10}, Bytes{1}});
  EXPECT_EQ(b.said<TransferProgress>().size(), 1u);  // at most once a second
  make_model(b);
  Snapshot arrived = b.seen("models/llama").snapshots.at(0);
  b.feed(TransferEnded{step, TransferOutcome{Bytes{10}, arrived}});
  EXPECT_EQ(b.answer_to(step)->snapshot, arrived.id);
  EXPECT_EQ(b.picture()[model].snapshots.size(), 1u);
  // Said again with another step: it is there.
  EXPECT_EQ(b.order(receive)->snapshot, arrived.id);
  EXPECT_EQ(b.transfers.size(), 1u);
}

TEST(Transfers, WhatArrivedMustBeWhatTheTicketNames) {
  Bench b;
  b.start();
  b.order(ReceiveSnapshot{ticket_of("v2"), {}});
  StepId step = b.last_step();
  make_model(b);
  b.feed(TransferEnded{step, TransferOutcome{{}, b.seen("models/llama").snapshots.at(0)}});
  EXPECT_EQ(b.answer_to(step)->error->code, ErrorCode::corrupt);
}

TEST(Transfers, AnIncrementMustFollowTheNewest) {
  Bench b;
  make_model(b);
  b.start();
  Ticket ticket = ticket_of("v3");
  ticket.base = id<CheckpointId>("v2");
  EXPECT_EQ(b.order(ReceiveSnapshot{ticket, {}})->error->code, ErrorCode::stale);
  ticket.base.reset();
  EXPECT_EQ(b.order(ReceiveSnapshot{ticket, {}})->error->code, ErrorCode::stale);
  ticket.base = id<CheckpointId>("v1");
  EXPECT_FALSE(b.order(ReceiveSnapshot{ticket, {}}));
  ASSERT_EQ(b.transfers.size(), 1u);
  ticket.id = id<TransferId>("second");
  EXPECT_EQ(b.order(ReceiveSnapshot{ticket, {}})->error->code, ErrorCode::busy);
}

TEST(Transfers, AWritableHomeReceivesNothing) {
  Bench b;
  b.start();
  b.run_job();
  b.job_commits(1);
  Ticket ticket = ticket_of("x");
  ticket.dataset = ticket.target_dataset = b.dataset();
  ticket.uuid = b.seen("jobs/train").uuid;
  ticket.timeline = gen(1);
  ticket.base = b.seen("jobs/train").newest()->id;
  EXPECT_EQ(b.order(ReceiveSnapshot{ticket, {}})->error->code, ErrorCode::refused);
}

TEST(Transfers, ACancelledStepEndsItsTransfer) {
  Bench b;
  b.start();
  b.order(ReceiveSnapshot{ticket_of("v1"), {}});
  StepId step = b.last_step();
  b.say(CancelStep{step});
  ASSERT_EQ(b.cancels.size(), 1u);
  EXPECT_EQ(b.answer_to(step)->error->code, ErrorCode::cancelled);
}

/// The middle of a chain laptop -> server -> workstation.
struct Middle {
  Middle() {
    into.passes_to = id<TransferId>("next");
    on.ticket.id = *into.passes_to;
    on.ticket.source = node("server");
    on.ticket.target = node("workstation");
  }
  ReceiveSnapshot into{ticket_of("v1"), {{property::uuid, model_uuid.str()}}};
  SendSnapshot on{ticket_of("v1"), ticket_of("v1").id};
};

TEST(Chains, WhatIsStillReceivedIsPassedOnWhicheverOrderComesFirst) {
  for (const bool receive_first : {true, false}) {
    Bench b;
    b.start();
    const Middle middle;
    if (receive_first) b.order(middle.into);
    EXPECT_FALSE(b.order(middle.on)) << "nothing is here yet, and that is no reason to refuse";
    if (!receive_first) b.order(middle.into);
    ASSERT_EQ(b.transfers.size(), 2u);
    const StartTransfer& receive = b.transfers[receive_first ? 0 : 1];
    const StartTransfer& send = b.transfers[receive_first ? 1 : 0];
    EXPECT_EQ(send.role, StartTransfer::Role::send);
    EXPECT_EQ(send.through, middle.into.ticket.id);
    EXPECT_EQ(receive.passes_to, middle.on.ticket.id);
    make_model(b);
    b.feed(TransferEnded{receive.step,
                         TransferOutcome{Bytes{10}, b.seen("models/llama").snapshots.at(0)}});
    b.feed(TransferEnded{send.step, TransferOutcome{Bytes{10}, {}}});
    EXPECT_FALSE(b.answer_to(receive.step)->error);
    EXPECT_EQ(b.answer_to(send.step)->moved, Bytes{10});
  }
}

TEST(Chains, WhatHasArrivedIsSentFromTheStore) {
  Bench b;
  make_model(b);
  b.start();
  b.order(Middle{}.on);
  ASSERT_EQ(b.transfers.size(), 1u);
  EXPECT_FALSE(b.transfers[0].through);
  EXPECT_FALSE(b.store.destroy_snapshot(SnapshotName{model, "v1"})) << "held like any other";
}

TEST(Chains, AReceiveThatIsRefusedEndsWhatWaitsForIt) {
  Bench b;
  b.start();
  Middle middle;
  b.order(middle.on);
  const StepId send = b.last_step();
  middle.into.ticket.base = id<CheckpointId>("v0");
  EXPECT_EQ(b.order(middle.into)->error->code, ErrorCode::stale);
  ASSERT_TRUE(b.answer_to(send));
  EXPECT_EQ(b.answer_to(send)->error->code, ErrorCode::cancelled);
}

TEST(Chains, OnlyWhatTheReceiveBringsIsPassedOn) {
  Bench b;
  b.start();
  const Middle middle;
  b.order(middle.into);
  auto code = [&](const Ticket& ticket) {
    return b.order(SendSnapshot{ticket, middle.on.through})->error.value().code;
  };
  Ticket other = middle.on.ticket;
  other.snapshot = id<CheckpointId>("v9");
  EXPECT_EQ(code(other), ErrorCode::invalid);
  other = middle.on.ticket;
  other.uuid = id<DatasetId>("x");
  EXPECT_EQ(code(other), ErrorCode::invalid);
  other = middle.on.ticket;
  other.source = node("laptop");
  EXPECT_EQ(code(other), ErrorCode::invalid);
  EXPECT_EQ(b.transfers.size(), 1u);
}

TEST(Chains, AForkEndsBothHalves) {
  Bench b;
  b.start();
  b.run_job();
  b.job_commits(1);
  b.job_exits();
  must(b.store.set(b.dataset(), {{property::home, "laptop"}}));
  const Dataset there = b.seen("jobs/train");
  Middle middle;
  for (Ticket* ticket : {&middle.into.ticket, &middle.on.ticket}) {
    ticket->dataset = ticket->target_dataset = b.dataset();
    ticket->uuid = there.uuid;
    ticket->timeline = gen(1);
    ticket->base = there.newest()->id;
    ticket->snapshot = id<CheckpointId>("epoch-2");
  }
  b.transfers_obey = false;
  EXPECT_FALSE(b.order(middle.into));
  EXPECT_FALSE(b.order(middle.on));
  ASSERT_EQ(b.transfers.size(), 2u);
  ApplyFork fork = b.fork_at("epoch-1", 5);
  fork.home = node("laptop");
  EXPECT_FALSE(b.order(fork));
  EXPECT_EQ(b.cancels.size(), 2u);
}

TEST(Transfers, CodeIsImportedInTurnAndFoundByItsContent) {
  Bench b;
  b.start();
  const ImportFiles one{*DatasetName::parse(code_root), "/home/me/one", "v1", {}, {}, {}, {}};
  ImportFiles two = one;
  two.path = "/home/me/two";
  b.order(one);
  const StepId first = b.last_step();
  b.order(two);
  ASSERT_EQ(b.imports.size(), 1u) << "they might make one dataset";
  const auto content = id<CheckpointId>("content");
  const DatasetName code = code_dataset(content);
  must(b.store.create(code, {{property::uuid, content.str()}, {property::type, "code"}}));
  must(b.store.snapshot(SnapshotName{code, "v1"}, {{property::id, content.str()}}));
  b.feed(ImportEnded{first, b.seen(code.str()).snapshots.at(0)});
  EXPECT_EQ(b.answer_to(first)->snapshot, content);
  EXPECT_EQ(b.said<DatasetChanged>().back().dataset.name, code);
  EXPECT_EQ(b.imports.size(), 2u);
}

TEST(Transfers, AnImportIsDoneOnce) {
  Bench b;
  b.start();
  ImportFiles import{model,
                     "/data/llama.gguf",
                     "v1",
                     id<CheckpointId>("v1"),
                     {{property::uuid, model_uuid.str()}},
                     {},
                     {}};
  b.order(import);
  StepId step = b.last_step();
  ASSERT_EQ(b.imports.size(), 1u);
  b.feed(TransferProgressed{step, Bytes{1}, Bytes{10}, Bytes{1}});
  EXPECT_EQ(b.said<TransferProgress>().size(), 1u);
  EXPECT_EQ(b.order(import)->error->code, ErrorCode::busy);
  make_model(b);
  b.feed(ImportEnded{step, b.seen("models/llama").snapshots.at(0)});
  EXPECT_EQ(b.answer_to(step)->snapshot, id<CheckpointId>("v1"));
  EXPECT_EQ(b.order(import)->snapshot, id<CheckpointId>("v1"));
  EXPECT_EQ(b.imports.size(), 1u);
}

TEST(Moves, OnlyACopyWithTheClosingSnapshotBecomesTheHome) {
  Bench b;
  b.start();
  b.run_job();
  b.job_commits(1);
  SetHome move{b.dataset(), b.seen("jobs/train").uuid, node("laptop"), gen(1), gen(2), {}};
  EXPECT_EQ(b.order(move)->error->code, ErrorCode::busy);  // it runs
  b.job_exits(ExitRecord::Kind::stopped);
  move.closing_snapshot = b.checkpoint("epoch-1");
  EXPECT_EQ(b.order(move)->error->code, ErrorCode::stale);
  move.closing_snapshot = b.checkpoint("closed-1.1");
  EXPECT_FALSE(b.order(move)->error);
  EXPECT_EQ(b.seen("jobs/train").property(property::home), "laptop");
  EXPECT_EQ(b.order(b.starting(3))->error->code, ErrorCode::stale);
}

TEST(Destroying, TakesExactlyWhatIsNamed) {
  Bench b;
  b.start();
  b.run_job();
  for (int epoch = 1; epoch <= 3; ++epoch)
    b.job_commits(epoch);
  Destroy prune{b.dataset(), b.seen("jobs/train").uuid, {b.checkpoint("epoch-1")}};
  EXPECT_FALSE(b.order(prune)->error);
  EXPECT_FALSE(b.order(prune)->error);  // gone already
  EXPECT_EQ(b.pool(), "jobs/train!: @epoch-2 @epoch-3");
  Destroy all{b.dataset(), b.seen("jobs/train").uuid, {}};
  EXPECT_EQ(b.order(all)->error->code, ErrorCode::busy);
  all.uuid = id<DatasetId>("another");
  EXPECT_EQ(b.order(all)->error->code, ErrorCode::exists);
}

}  // namespace
}  // namespace zed::agent::test
