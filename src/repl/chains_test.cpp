#include <gtest/gtest.h>

#include "base/describe.hpp"
#include "repl/chains.hpp"
#include "repl/testing.hpp"

namespace zed::repl {
namespace {

using namespace testing;

class Chains : public ::testing::Test {
protected:
  Chains() {
    for (const char* name : {"server", "a", "b", "c"})
      add(name);
    put("server", "v1 v2");
  }
  void add(const std::string& name) { add_node(view, name).facts.dialable = true; }
  void put(const std::string& at, std::string_view snapshots) {
    Dataset dataset = history(snapshots, "models/llama");
    view.datasets[node(at)].insert_or_assign(dataset.name, dataset);
  }
  std::vector<Transfer> due(const std::vector<std::string>& targets) const {
    std::vector<Transfer> found;
    for (const std::string& target : targets)
      if (auto transfer =
              due_transfer(view, uuid(1), node("server"), node(target), "policy models"))
        found.push_back(*transfer);
    return found;
  }
  /// "a<server b<a": each target and who sends to it.
  static std::string text_of(const std::vector<Transfer>& chain) {
    std::string text;
    for (const Transfer& hop : chain)
      text += (text.empty() ? "" : " ") + hop.target.str() + "<" +
              (hop.passed_on_by.empty() ? hop.source : hop.passed_on_by).str();
    return text;
  }
  std::string chains_of(std::vector<Transfer> transfers, const MayPass& may_pass = always) const {
    std::string text;
    while (!transfers.empty())
      text += (text.empty() ? "" : "; ") + text_of(take_chain(view, transfers, may_pass));
    return text;
  }
  static bool always(const NodeName&, const NodeName&) { return true; }

  FleetView view;
};

TEST_F(Chains, OneStreamVisitsAllThatLackTheSame) {
  EXPECT_EQ(chains_of(due({"a", "b", "c"})), "a<server b<a c<b");
  EXPECT_EQ(chains_of(due({"c", "a"})), "c<server a<c") << "in the order that is given";
  EXPECT_EQ(chains_of(due({"b"})), "b<server");
}

TEST_F(Chains, OnlyTheSameStreamIsShared) {
  put("b", "v1");
  EXPECT_EQ(chains_of(due({"a", "b", "c"})), "a<server c<a; b<server") << "b lacks an increment";
  put("b", "");
  view.datasets[node("b")].begin()->second.receiving = true;
  EXPECT_EQ(chains_of(due({"a", "b", "c"})), "a<server c<a; b<server") << "b goes on from its part";
  view.datasets.erase(node("b"));
  view.nodes.at(node("b")).facts.store = StoreKind::dir;
  view.nodes.at(node("c")).facts.store = StoreKind::dir;
  EXPECT_EQ(chains_of(due({"a", "b", "c"})), "a<server; b<server c<b") << "files are another kind";
}

TEST_F(Chains, AConflictIsInNone) {
  put("b", "x");
  EXPECT_EQ(chains_of(due({"b", "a", "c"})), "b<server; a<server c<a");
}

TEST_F(Chains, OnlyNodesThatCanMeetFollowOneAnother) {
  view.nodes.at(node("b")).facts.dialable = false;
  view.nodes.at(node("c")).facts.dialable = false;
  EXPECT_EQ(chains_of(due({"a", "b", "c"})), "a<server b<a; c<server");
  const auto not_to_b = [](const NodeName&, const NodeName& to) { return to != node("b"); };
  EXPECT_EQ(chains_of(due({"a", "b"}), not_to_b), "a<server; b<server");
}

TEST_F(Chains, AChainIsBounded) {
  std::vector<std::string> targets;
  for (std::size_t i = 0; i < most_hops + 2; ++i) {
    targets.push_back("n" + std::to_string(i));
    add(targets.back());
  }
  auto transfers = due(targets);
  EXPECT_EQ(take_chain(view, transfers, always).size(), most_hops);
  EXPECT_EQ(text_of(take_chain(view, transfers, always)), "n8<server n9<n8");
}

TEST_F(Chains, TheStepsOfAHopAreTiedToThoseBeforeIt) {
  auto transfers = due({"a", "b", "c"});
  for (Transfer& transfer : transfers)
    transfer.max_rate = mebibytes(1);
  const auto chain = take_chain(view, transfers, always);
  EXPECT_EQ(chain[1].why, "policy models: b lacks llama@v1, passed on by a");
  CountingIds ids;
  const auto plan = plan_chain(view, chain, ControllerTerm{3, {}}, ids);
  ASSERT_EQ(plan.size(), 3u);
  const auto send = [&](std::size_t i) { return std::get<SendSnapshot>(plan[i][0].action); };
  const auto receive = [&](std::size_t i) { return std::get<ReceiveSnapshot>(plan[i][1].action); };
  EXPECT_FALSE(send(0).through);
  EXPECT_FALSE(receive(2).passes_to);
  for (std::size_t i : {1, 2}) {
    EXPECT_EQ(send(i).through, receive(i - 1).ticket.id);
    EXPECT_EQ(receive(i - 1).passes_to, send(i).ticket.id);
  }
  EXPECT_EQ(plan[2][0].node, node("b"));
  EXPECT_EQ(plan[2][1].node, node("c"));
  EXPECT_EQ(send(2).ticket.source_address, "b:4373");
  EXPECT_EQ(send(2).ticket.snapshot, id("v1"));
  EXPECT_FALSE(plan[2][0].expect.uuid) << "nothing is there yet";
  EXPECT_EQ(send(0).ticket.max_rate, mebibytes(1));
  EXPECT_FALSE(send(1).ticket.max_rate) << "it comes no faster than the first hop lets it";
  EXPECT_EQ(from_value<SendSnapshot>(to_value(send(1))).value(), send(1)) << "over the wire";
  EXPECT_EQ(from_value<ReceiveSnapshot>(to_value(receive(1))).value(), receive(1));
}

TEST_F(Chains, AnIncrementIsExpectedToFollowAtEachHop) {
  for (const char* name : {"a", "b"})
    put(name, "v1");
  auto transfers = due({"a", "b"});
  const auto chain = take_chain(view, transfers, always);
  CountingIds ids;
  const auto plan = plan_chain(view, chain, {}, ids);
  ASSERT_EQ(plan.size(), 2u);
  EXPECT_EQ(plan[1][0].node, node("a"));
  EXPECT_EQ(plan[1][0].expect.uuid, uuid(1));
  EXPECT_FALSE(plan[1][0].expect.newest) << "its own receive may be done first";
  EXPECT_EQ(plan[1][1].expect.newest, id("v1"));
  EXPECT_EQ(std::get<SendSnapshot>(plan[1][0].action).ticket.base, id("v1"));
}

}  // namespace
}  // namespace zed::repl
