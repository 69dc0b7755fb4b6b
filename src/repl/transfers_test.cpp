#include <gtest/gtest.h>

#include "repl/targets.hpp"
#include "repl/testing.hpp"
#include "repl/transfers.hpp"

namespace zed::repl {
namespace {

using testing::add_node;
using testing::CountingIds;
using testing::history;
using testing::id;
using testing::node;
using testing::uuid;

Dataset& add_dataset(FleetView& view, std::string_view on, Dataset dataset) {
  return view.datasets[node(on)].insert_or_assign(dataset.name, dataset).first->second;
}

ReplicationPolicy policy_of(std::string_view selector) {
  ReplicationPolicy policy;
  policy.name = "models";
  policy.selector = DatasetName::parse(selector).value();
  policy.source = node("server");
  policy.targets = {node("macbook"), node("workstation")};
  policy.max_rate = mebibytes(200);
  return policy;
}

FleetView fleet() {
  FleetView view;
  for (const char* name : {"server", "macbook", "workstation"})
    add_node(view, name);
  add_dataset(view, "server", history("v1 v2", "models/llama"));
  add_dataset(view, "macbook", history("v1", "models/llama"));
  return view;
}

std::string whys(const PolicyTransfers& due) {
  std::string text;
  for (const Transfer& transfer : due.transfers)
    text += transfer.why + "\n";
  for (const Excluded& excluded : due.excluded)
    text += excluded.dataset.str() + " left out: " + excluded.why + "\n";
  return text;
}

TEST(DueTransfers, OneStepForEachTarget) {
  auto view = fleet();
  auto due = due_transfers(view, policy_of("models"), {});
  EXPECT_EQ(whys(due),
            "policy models: macbook lacks llama@v2\npolicy models: workstation lacks llama@v1\n");
  EXPECT_EQ(due.transfers[0].behind, 1u);
  EXPECT_EQ(due.transfers[1].behind, 2u);
  EXPECT_EQ(due.transfers[0].max_rate, mebibytes(200));
}

TEST(DueTransfers, LeavesOutWithAReason) {
  auto view = fleet();
  Dataset hand = history("a", "models/hand");
  hand.uuid = {};
  add_dataset(view, "server", hand);
  Dataset folder = history("", "models");
  folder.uuid = {};
  add_dataset(view, "server", folder);
  Dataset branch = history("a", "models/llama.t1");
  branch.uuid = uuid(9);
  branch.properties[property::branch_of] = uuid(1).str();
  add_dataset(view, "server", branch);
  auto due = due_transfers(view, policy_of("models"), [](const Dataset&) {
    return std::optional<std::string>("size_gb is not set");
  });
  EXPECT_EQ(whys(due), "models/hand left out: it has no com.zed:uuid: adopt it first\n"
                       "models/llama left out: size_gb is not set\n");
}

TEST(DueTransfers, SilentNodesHaveNoSteps) {
  auto view = fleet();
  view.nodes.at(node("macbook")).status = NodeStatus::suspect;
  view.nodes.at(node("workstation")).status = NodeStatus::lost;
  EXPECT_EQ(whys(due_transfers(view, policy_of("models"), {})), "");
}

// A job moved: what was its source is now behind its home, and must not be forced upon it.
TEST(DueTransfer, NeverOntoTheHome) {
  auto view = fleet();
  add_dataset(view, "server", history("a b", "jobs/train"));
  Dataset& home = add_dataset(view, "macbook", history("a b c", "jobs/train"));
  view.datasets[node("server")].erase(DatasetName::parse("models/llama").value());
  home.properties[property::home] = "macbook";
  EXPECT_FALSE(due_transfer(view, uuid(1), node("server"), node("macbook"), "policy jobs"));
  home.properties.clear();
  auto due = due_transfer(view, uuid(1), node("server"), node("macbook"), "policy jobs");
  EXPECT_TRUE(due && std::holds_alternative<FollowHome>(due->step));
}

TEST(DueTransfer, OnlyTheHomesHistoryIsForcedOnOthers) {
  FleetView view;
  for (const char* name : {"a", "b", "c"})
    add_node(view, name);
  for (const char* name : {"a", "b"})
    add_dataset(view, name, history(name == std::string("a") ? "x" : "x y"))
        .properties[property::home] = "c";
  EXPECT_FALSE(due_transfer(view, uuid(1), node("a"), node("b"), ""));
  EXPECT_TRUE(due_transfer(view, uuid(1), node("b"), node("a"), "")) << "a replica may be a source";
}

TEST(DueTransfer, AForkComesFirst) {
  auto view = fleet();
  const std::string controller = "00000000000000000000000000000001";
  auto& source = view.datasets[node("server")].begin()->second;
  auto& target = view.datasets[node("macbook")].begin()->second;
  source.properties[property::timeline] = "1-" + controller + "-7";
  target.properties[property::timeline] = "1-" + controller + "-1";
  EXPECT_FALSE(due_transfer(view, uuid(1), node("server"), node("macbook"), ""));
  target.properties[property::timeline] = "1-" + controller + "-7";
  EXPECT_TRUE(due_transfer(view, uuid(1), node("server"), node("macbook"), ""));
}

TEST(PlanSteps, BothEndsGetOneTicket) {
  auto view = fleet();
  view.nodes.at(node("macbook")).facts.dialable = false;
  auto& source = view.datasets[node("server")].begin()->second;
  source.properties[property::intent] = "{}";
  source.properties["size_gb"] = "16";
  auto due = due_transfer(view, uuid(1), node("server"), node("macbook"), "policy models");
  ASSERT_TRUE(due);
  CountingIds ids;
  ControllerTerm term{3, {}};
  auto steps = plan_steps(view, *due, term, ids);
  ASSERT_EQ(steps.size(), 2u);
  const Ticket& sent = std::get<SendSnapshot>(steps[0].action).ticket;
  const auto& received = std::get<ReceiveSnapshot>(steps[1].action);
  EXPECT_EQ(sent, received.ticket);
  EXPECT_EQ(steps[0].node, node("server"));
  EXPECT_EQ(steps[1].node, node("macbook"));
  EXPECT_NE(steps[0].id, steps[1].id);
  EXPECT_EQ(sent.base, id("v1"));
  EXPECT_EQ(sent.snapshot, id("v2"));
  EXPECT_EQ(sent.snapshot_name, "v2");
  EXPECT_EQ(sent.kind, StreamKind::zfs);
  EXPECT_EQ(sent.generation, (Generation{term, 0}));
  EXPECT_FALSE(sent.source_dials) << "a laptop behind NAT cannot be dialled";
  EXPECT_EQ(steps[1].expect.newest, id("v1"));
  EXPECT_EQ(received.dataset_properties.at("size_gb"), "16");
  EXPECT_FALSE(received.dataset_properties.contains(property::intent));
}

TEST(PlanSteps, WhatTheReplicaHasBeyondIsSetAside) {
  auto view = fleet();
  add_dataset(view, "macbook", history("v1 mine", "models/llama"));
  auto due = due_transfer(view, uuid(1), node("server"), node("macbook"), "policy models");
  ASSERT_TRUE(due);
  EXPECT_EQ(due->why, "policy models: llama on macbook has more than its home");
  CountingIds ids;
  auto steps = plan_steps(view, *due, {}, ids);
  ASSERT_EQ(steps.size(), 1u);
  const auto& follow = std::get<zed::FollowHome>(steps[0].action);
  EXPECT_EQ(follow.common, id("v1"));
  EXPECT_FALSE(follow.branch_uuid.is_nil());
  EXPECT_EQ(steps[0].expect.newest, id("mine"));
}

TEST(PlanSteps, AConflictIsReportedAndNothingIsDone) {
  auto view = fleet();
  add_dataset(view, "macbook", history("x", "models/llama"));
  auto due = due_transfer(view, uuid(1), node("server"), node("macbook"), "policy models");
  ASSERT_TRUE(due && std::holds_alternative<Conflict>(due->step));
  CountingIds ids;
  EXPECT_TRUE(plan_steps(view, *due, {}, ids).empty());
}

std::string names(const std::vector<NodeName>& nodes) {
  std::string text;
  for (const NodeName& name : nodes)
    text += name.str() + " ";
  return text;
}

CopyRequest copy_request() {
  CopyRequest request;
  request.dataset = DatasetName::parse("jobs/train").value();
  request.uuid = uuid(1);
  request.home = node("home");
  request.size = gibibytes(10);
  return request;
}

FleetView copy_fleet() {
  FleetView view;
  for (const char* name : {"home", "a", "b", "c", "d"})
    add_node(view, name);
  return view;
}

TEST(CopyTargets, PrefersANodeThatCouldRunTheJob) {
  auto view = copy_fleet();
  auto request = copy_request();
  EXPECT_EQ(names(choose_copy_targets(view, request).nodes), "a ");
  request.able = {node("c")};
  EXPECT_EQ(names(choose_copy_targets(view, request).nodes), "c ");
  request.copies = 2;
  EXPECT_EQ(names(choose_copy_targets(view, request).nodes), "c a ");
  request.copies = 0;
  EXPECT_EQ(names(choose_copy_targets(view, request).nodes), "");
  view.nodes.at(node("d")).pool_free = gibibytes(500);
  request.copies = 2;
  EXPECT_EQ(names(choose_copy_targets(view, request).nodes), "c d ");
}

TEST(CopyTargets, AReplicaStaysWhereItIs) {
  auto view = copy_fleet();
  auto request = copy_request();
  request.able = {node("c")};
  add_dataset(view, "d", history("a"));
  EXPECT_EQ(names(choose_copy_targets(view, request).nodes), "d ");
  view.nodes.at(node("d")).status = NodeStatus::suspect;
  EXPECT_EQ(names(choose_copy_targets(view, request).nodes), "d ") << "6 s are not a loss";
  view.nodes.at(node("d")).status = NodeStatus::lost;
  EXPECT_EQ(names(choose_copy_targets(view, request).nodes), "c ");
  request.holders = {node("b")};
  EXPECT_EQ(names(choose_copy_targets(view, request).nodes), "b ") << "a policy sends it there";
}

TEST(CopyTargets, SaysWhyThereIsNoSecondCopy) {
  auto view = copy_fleet();
  view.nodes.at(node("a")).pool_free = gibibytes(1);
  view.nodes.at(node("b")).status = NodeStatus::draining;
  view.nodes.at(node("c")).facts.may_write_pool = false;
  view.nodes.at(node("d")).declared.emplace().dataset_roots = {
      DatasetName::parse("models").value()};
  auto targets = choose_copy_targets(view, copy_request());
  EXPECT_TRUE(targets.nodes.empty());
  EXPECT_EQ(targets.missing, 1);
  ASSERT_EQ(targets.refused.size(), 4u);
  EXPECT_EQ(targets.refused[0].shortfalls[0].had, "1.00 GiB free");
  EXPECT_EQ(targets.refused[1].shortfalls[0].had, "draining");
  EXPECT_EQ(targets.refused[2].shortfalls[0].constraint, "permission");
  EXPECT_EQ(targets.refused[3].shortfalls[0].wanted, "a place for jobs/train");
}

TEST(ChainOrder, FastestFirstLaptopsLast) {
  auto view = copy_fleet();
  view.nodes.at(node("a")).facts.dialable = false;
  view.nodes.at(node("b")).facts.labels = {"laptop"};
  std::map<NodeName, Bytes> rate{
      {node("a"), gibibytes(10)}, {node("b"), gibibytes(20)}, {node("d"), gibibytes(5)}};
  EXPECT_EQ(names(chain_order(view, {node("a"), node("b"), node("c"), node("d")}, rate)),
            "d c b a ");
}

}  // namespace
}  // namespace zed::repl
