// What a shell may ask and how it is answered, as terms.
#include <gtest/gtest.h>

#include <algorithm>

#include "bin/erlang_door.hpp"
#include "http/target.hpp"

namespace zed::bin {
namespace {

using beam::atom;
using beam::binary;
using beam::Term;
using beam::tuple;

beam::Call call_of(Term request) {
  return {"shell@h", "zed", {}, atom("tag"), std::move(request)};
}
beam::Call call_of(std::string_view function, Term arguments) {
  return call_of(tuple({atom("zed"), 1, atom("Elixir.Zed.Cluster"), atom(function),
                        beam::list({std::move(arguments)})}));
}
beam::RpcCall rpc_of(std::string function, std::vector<Term> arguments) {
  return {"shell@h", 2, "Elixir.Zed.Cluster", std::move(function), std::move(arguments)};
}
Term map_of(std::vector<std::pair<Term, Term>> members) {
  return beam::Map{std::move(members)};
}
std::string refusal(const beam::Call& call) {
  auto asked = request_of_call(call);
  return asked ? "asked" : std::string(to_string(asked.error().code));
}

TEST(ErlangDoor, EveryOperationIsBehindEveryDoor) {
  for (const api::OperationInfo& info : api::all_operations()) {
    std::string function(info.name);
    std::replace(function.begin(), function.end(), '-', '_');
    auto called = request_of_call(call_of(function, map_of({})));
    ASSERT_TRUE(called) << info.name << ": " << called.error().describe();
    auto* request = std::get_if<api::Request>(&*called);
    ASSERT_NE(request, nullptr) << info.name;
    EXPECT_TRUE(is_remote_operation("Elixir.Zed.Cluster", function, 0)) << info.name;
    EXPECT_TRUE(is_remote_operation("Elixir.Zed.Cluster", function, 1)) << info.name;
    auto remote = request_of_rpc(rpc_of(function, {}));
    ASSERT_TRUE(remote) << info.name;
    EXPECT_EQ(remote->index(), request->index());
    auto route = http::route_of("POST", "/v1/" + std::string(info.name));
    auto* found = std::get_if<http::Route>(&route);
    ASSERT_NE(found, nullptr) << info.name;
    EXPECT_EQ(std::get<http::CallOperation>(*found).name, info.name);
  }
}

TEST(ErlangDoor, NothingElseIsInTheWhiteList) {
  const std::string cluster = "Elixir.Zed.Cluster";
  EXPECT_FALSE(is_remote_operation(cluster, "jobs", 2));
  EXPECT_FALSE(is_remote_operation(cluster, "watch", 1)) << "events go to a process that calls";
  EXPECT_FALSE(is_remote_operation(cluster, "module_info", 0));
  EXPECT_FALSE(is_remote_operation(cluster, "", 0));
  EXPECT_FALSE(is_remote_operation(cluster, std::string(5000, 'x'), 0));
  EXPECT_FALSE(is_remote_operation("Elixir.Zed", "jobs", 0));
  EXPECT_FALSE(is_remote_operation("os", "cmd", 1));
}

TEST(ErlangDoor, ArgumentsAreAMapOrAKeywordList) {
  const Term keywords = beam::list(
      {tuple({atom("job"), atom("finetune")}), tuple({atom("checkpoint"), binary("@epoch-1")})});
  for (const Term& arguments : {keywords, map_of({{atom("job"), binary("finetune")},
                                                  {binary("checkpoint"), binary("@epoch-1")}})}) {
    auto called = request_of_call(call_of("rollback", arguments));
    ASSERT_TRUE(called) << called.error().describe();
    const auto& rollback = std::get<api::Rollback>(std::get<api::Request>(*called));
    EXPECT_EQ(rollback.job, "finetune");
    EXPECT_EQ(rollback.checkpoint, "@epoch-1");
    auto remote = request_of_rpc(rpc_of("rollback", {arguments}));
    ASSERT_TRUE(remote) << remote.error().describe();
    EXPECT_EQ(std::get<api::Rollback>(*remote).checkpoint, "@epoch-1");
  }
}

TEST(ErlangDoor, WhatIsNoCallIsRefusedWithItsReason) {
  EXPECT_EQ(refusal(call_of(atom("hello"))), "invalid");
  EXPECT_EQ(refusal(call_of(
                tuple({atom("zed"), 2, atom("Elixir.Zed.Cluster"), atom("jobs"), beam::List{}}))),
            "unsupported");
  EXPECT_EQ(refusal(call_of(tuple({atom("zed"), 1, atom("os"), atom("jobs"), beam::List{}}))),
            "invalid");
  EXPECT_EQ(refusal(call_of("frobnicate", map_of({}))), "not_found");
  EXPECT_EQ(refusal(call_of("jobs", map_of({{atom("all"), 7}}))), "invalid");
  EXPECT_EQ(refusal(call_of("jobs", beam::Pid{})), "invalid");
  EXPECT_EQ(refusal(call_of("watch", map_of({{atom("after"), -1}}))), "invalid");
}

TEST(ErlangDoor, EventsCanBeWatchedFromANumberOn) {
  auto from = request_of_call(call_of("watch", map_of({{atom("after"), 17}})));
  ASSERT_TRUE(from);
  EXPECT_EQ(std::get<WatchEvents>(*from).after, 17U);
  auto all = request_of_call(call_of("watch", map_of({})));
  ASSERT_TRUE(all);
  EXPECT_FALSE(std::get<WatchEvents>(*all).after);
  EXPECT_TRUE(
      std::holds_alternative<UnwatchEvents>(*request_of_call(call_of("unwatch", map_of({})))));
}

DeclaredNames declared(std::vector<std::string> jobs) {
  Cluster cluster;
  for (std::string& name : jobs) {
    Job job;
    job.name = JobName(std::move(name));
    cluster.jobs.push_back(std::move(job));
  }
  return DeclaredNames(cluster);
}

TEST(ErlangDoor, OnlyDeclaredNamesBecomeAtoms) {
  Value row = Value::map();
  row.set("name", "finetune").set("node", "laptop-9").set("reason", "finetune").set("safe", true);
  const Value checkpoint = Value::map().set("name", "finetune").set("seq", 3);
  Value reply = Value::map();
  reply.set("job", row)
      .set("checkpoints", Value::list().push(checkpoint))
      .set("metrics", Value::map().set("loss", "0.1"))
      .set("left", Value());
  EXPECT_EQ(
      show(answer_term(reply, declared({"finetune"}))),
      "{ok,#{job=>#{name=>finetune,node=><<\"laptop-9\">>,reason=><<\"finetune\">>,safe=>true},"
      "checkpoints=>[#{name=><<\"finetune\">>,seq=>3}],metrics=>#{<<\"loss\">>=><<\"0.1\">>},left=>"
      "nil}}");
  EXPECT_EQ(show(answer_term(Value::map().set("name", "finetune"), {})),
            "{ok,#{name=><<\"finetune\">>}}");
}

TEST(ErlangDoor, AnErrorHasItsKindAndItsText) {
  const Result<Value> failed = fail(ErrorCode::not_found, "there is no job x", "zedctl jobs");
  EXPECT_EQ(show(answer_term(failed, {})),
            "{error,not_found,<<\"there is no job x (zedctl jobs)\">>}");
}

}  // namespace
}  // namespace zed::bin
