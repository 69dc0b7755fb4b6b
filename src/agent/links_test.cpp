#include <gtest/gtest.h>

#include "agent/bench_test.hpp"
#include "agent/sizes.hpp"
#include "base/json.hpp"

namespace zed::agent::test {
namespace {

TEST(Links, HelloThenInventoryThenHeartbeatsEveryTwoSeconds) {
  Bench b;
  b.start();
  ASSERT_EQ(b.said<Hello>().size(), 1u);
  EXPECT_EQ(b.said<Hello>().front().name, node("server"));
  EXPECT_EQ(b.said<Hello>().front().gpus.size(), 2u);
  ASSERT_FALSE(b.said<InventoryPage>().empty());
  EXPECT_TRUE(b.said<InventoryPage>().back().last);
  std::size_t before = b.said<Heartbeat>().size();
  b.pass(seconds(10));
  EXPECT_EQ(b.said<Heartbeat>().size(), before + 5);
}

TEST(Links, NothingIsSaidBeforeTheStoreIsKnown) {
  Bench b;
  b.answer_store = false;
  b.start_alone();
  b.feed(ControllerConnected{1});
  EXPECT_TRUE(b.said<Hello>().empty());
  EXPECT_FALSE(b.state->is_ready());
}

TEST(Links, AHigherTermIsDurableBeforeItsOrdersAreObeyed) {
  Bench b;
  b.start();
  b.save_node_state = false;
  b.connect(2, 5);
  CreateDataset create;
  create.dataset = ds("jobs/x");
  StepOrder order;
  order.step.id = id<StepId>("early");
  order.step.node = node("server");
  order.step.action = create;
  order.step.expect.term = term(5);
  b.say(order, 2);
  EXPECT_FALSE(b.is_there("jobs/x"));
  EXPECT_EQ(b.state->highest_term(), term(1));
  ASSERT_EQ(b.unsaved.size(), 1u);
  EXPECT_EQ(b.unsaved.front().highest_term, term(5));
  b.feed(NodeStateSaved{b.unsaved.front().id, {}});
  EXPECT_TRUE(b.is_there("jobs/x"));
  EXPECT_EQ(b.state->highest_term(), term(5));
}

TEST(Links, TheControllerOfALowerTermLearnsThatItIsOver) {
  Bench b;
  b.start();
  b.connect(2, 5);
  // The old controller's link is told, not obeyed, then closed.
  EXPECT_EQ(b.said<Hello>(1).back().highest_term, term(5));
  b.messages.clear();
  StepOrder order;
  order.step.id = id<StepId>("late");
  order.step.node = node("server");
  order.step.action = CreateDataset{ds("jobs/x"), {}};
  order.step.expect.term = term(1);
  b.say(order, 1);
  ASSERT_EQ(b.said<StepResult>(1).size(), 1u);
  EXPECT_EQ(b.said<StepResult>(1).front().error->code, ErrorCode::stale);
  EXPECT_FALSE(b.is_there("jobs/x"));
  b.pass(seconds(1));
  ASSERT_FALSE(b.closed_links.empty());
  EXPECT_EQ(b.closed_links.front().link, 1u);
  // It dials again with its old term: told again.
  b.connect(3, 1);
  EXPECT_EQ(b.said<Hello>(3).back().highest_term, term(5));
  EXPECT_TRUE(b.said<InventoryPage>(3).empty());
}

TEST(Links, AHigherTermInARefusalIsSaved) {
  Bench b;
  b.start();
  b.feed(ControllerConnected{2});
  b.say(Refused{Error{ErrorCode::refused, "no", {}, ""}, term(9)}, 2);
  EXPECT_EQ(b.saved_term, term(9));
  EXPECT_EQ(b.closed_links.back().link, 2u);
}

TEST(Links, TheTermSurvivesARestart) {
  Bench b;
  b.start();
  b.connect(2, 5);
  b.crash();
  b.start_alone();
  b.connect(4, 1);
  EXPECT_EQ(b.said<Hello>(4).front().highest_term, term(5));
  EXPECT_TRUE(b.said<InventoryPage>(4).empty());
}

TEST(Links, AStepOfAnotherTermIsStale) {
  Bench b;
  b.start();
  Expect expect;
  expect.term = term(4);
  auto answer = b.order(CreateDataset{ds("jobs/x"), {}}, expect);
  ASSERT_TRUE(answer && answer->error);
  EXPECT_EQ(answer->error->code, ErrorCode::stale);
}

TEST(Links, AnOrderThatComesTwiceIsCarriedOutOnceAndAnsweredTwice) {
  Bench b;
  b.start();
  CreateDataset create{ds("jobs/x"), {{property::uuid, id<DatasetId>("x").str()}}};
  b.order_as(id<StepId>("once"), create);
  b.order_as(id<StepId>("once"), create);
  auto results = b.said<StepResult>();
  ASSERT_EQ(results.size(), 2u);
  EXPECT_FALSE(results[0].error);
  EXPECT_EQ(results[0], results[1]);
}

TEST(Links, CreateIsIdempotentByIdentityAndRefusesAStranger) {
  Bench b;
  b.start();
  CreateDataset create{ds("jobs/x"), {{property::uuid, id<DatasetId>("x").str()}}};
  EXPECT_FALSE(b.order(create)->error);
  EXPECT_FALSE(b.order(create)->error);
  create.properties[property::uuid] = id<DatasetId>("y").str();
  EXPECT_EQ(b.order(create)->error->code, ErrorCode::exists);
  EXPECT_EQ(b.order(CreateDataset{ds("home/me"), {}})->error->code, ErrorCode::refused);
}

TEST(Links, TheJournalsCopyAdvancesOnlyWithoutGaps) {
  Bench b;
  b.start();
  JournalRecords first{term(1), 1, true, {"a", "b"}};
  b.say(first);
  ASSERT_EQ(b.said<JournalStored>().size(), 1u);
  EXPECT_EQ(b.said<JournalStored>().back().seq, 2u);
  b.say(JournalRecords{term(1), 5, false, {"e"}});
  EXPECT_EQ(b.said<JournalStored>().back().seq, 2u);
  EXPECT_EQ(b.journal_copies.size(), 1u);
  b.say(JournalRecords{term(1), 3, false, {"c", "d"}});
  EXPECT_EQ(b.said<JournalStored>().back().seq, 4u);
}

TEST(Links, AHelloSaysHowFarTheJournalsCopyIsAndOfWhichTerm) {
  Bench b;
  b.start();
  b.say(JournalRecords{term(1), 1, true, {"a", "b"}});
  b.connect(2, 1);
  EXPECT_EQ(b.said<Hello>(2).back().journal_copy_seq, 2u);
  EXPECT_EQ(b.said<Hello>(2).back().journal_copy_term, term(1)) << "else it is begun anew";
}

TEST(Links, ALogPageTooLargeIsAnError) {
  Bench b;
  b.start();
  b.say(ReadLog{42, ds("jobs/train"), 0});
  ASSERT_EQ(b.log_reads.size(), 1u);
  LogPage page;
  for (int i = 0; i < 20; ++i)
    page.lines.push_back(LogLine{{}, false, std::string(16 * 1024, 'x')});
  b.feed(LogRead{b.log_reads.front().id, page});
  ASSERT_EQ(b.said<LogPage>().size(), 1u);
  EXPECT_EQ(b.said<LogPage>().front().request, 42u);
  EXPECT_TRUE(b.said<LogPage>().front().error);
}

TEST(Links, WhatASupersededControllerLeavesReachesItsSuccessor) {
  Bench b;
  b.start();
  b.say(HandOver{term(1), {"{}"}}, 1);
  EXPECT_TRUE(b.said<HandedOver>(1).empty()) << "nobody is heir to himself";
  b.connect(2, 5);
  ASSERT_EQ(b.said<HandedOver>(2).size(), 1u);
  EXPECT_EQ(b.said<HandedOver>(2).front().term, term(1));
  b.say(HandOver{term(1), {"{}", "{}"}}, 1);
  ASSERT_EQ(b.said<HandedOver>(2).size(), 2u) << "at once, from a link that is told and closed";
  EXPECT_EQ(b.said<HandedOver>(2).back().records.size(), 2u);
}

TEST(Pages, EveryPageStaysBelowTheLimitAndNothingIsLost) {
  Dataset large;
  large.name = ds("jobs/large");
  for (int i = 0; i < 5000; ++i) {
    Snapshot snapshot;
    snapshot.name = "epoch-" + std::to_string(i);
    snapshot.id = id<CheckpointId>(std::to_string(i));
    snapshot.properties[property::metrics] = std::string(static_cast<std::size_t>(i % 900), 'm');
    large.snapshots.push_back(snapshot);
  }
  std::vector<Dataset> small(300);
  std::vector<const Dataset*> all{&large};
  for (std::size_t i = 0; i < small.size(); ++i) {
    small[i].name = ds("jobs/s" + std::to_string(i));
    small[i].properties["note"] = std::string(i * 7, 'n');
    all.push_back(&small[i]);
  }
  std::size_t snapshots = 0;
  std::set<DatasetName> names;
  for (const auto& page : pages_of(all)) {
    EXPECT_LT(to_json(to_value(InventoryPage{0, false, page})).size(), message_limit);
    for (const Dataset& part : page) {
      snapshots += part.snapshots.size();
      names.insert(part.name);
    }
  }
  EXPECT_EQ(snapshots, large.snapshots.size());
  EXPECT_EQ(names.size(), all.size());
}

TEST(Pages, PropertiesThatAPersonBloatedAreCutToThoseThatMatter) {
  Dataset bloated;
  bloated.name = ds("jobs/bloated");
  bloated.properties[property::uuid] = id<DatasetId>("b").str();
  for (int i = 0; i < 100; ++i)
    bloated.properties["note" + std::to_string(i)] = std::string(8000, 'x');
  auto pages = pages_of({&bloated});
  ASSERT_EQ(pages.size(), 1u);
  EXPECT_LT(to_json(to_value(pages[0][0])).size(), message_limit);
  EXPECT_EQ(pages[0][0].properties.count(property::uuid), 1u);
}

}  // namespace
}  // namespace zed::agent::test
