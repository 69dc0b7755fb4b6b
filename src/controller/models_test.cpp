// Models as people keep them: figures, versions, aliases, where they came from, and their end.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.hpp"
#include "controller/lab_testing.hpp"
#include "model/properties.hpp"

namespace zed::controller {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// 8 GiB of weights in 32 layers, 128 KiB of cache a token: 16 GiB for all of its context.
std::string geometry() {
  model::Geometry g;
  g.layers = 32;
  g.hidden = 4096;
  g.heads = 32;
  g.vocab = 128'000;
  g.context = 131'072;
  g.weights = gibibytes(8);
  g.groups = {{32, 8, 128, 128, 0, 0}};
  return to_json(to_value(g));
}

api::AddModel add(const std::string& name, const std::string& version = "") {
  api::AddModel op;
  op.name = name;
  op.path = "/data/" + name;
  op.node = "server";
  op.version = version;
  op.properties = {{"geometry", geometry()}};
  return op;
}

api::RegisterModel registered(const std::string& checkpoint = "") {
  api::RegisterModel op;
  op.job = "finetune";
  op.checkpoint = checkpoint;
  op.name = "tuned";
  return op;
}

const Dataset& model_of(World& world, const char* name, const char* node = "server") {
  return world.agent(node).datasets.at(testing::dataset("models/" + std::string(name)));
}

template <class Reply> Reply reply_of(const Value& value) {
  auto reply = from_value<Reply>(value);
  EXPECT_TRUE(reply.has_value());
  return reply ? *reply : Reply{};
}

TEST(Models, AMisnamedOneIsToldTheRuleOfItsName) {
  World world = lab();
  for (const char* name : {"a b", "models/x", "-x", "", "x@1"}) {
    auto refused = world.ask(add(name));
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().code, ErrorCode::invalid) << name;
    EXPECT_THAT(refused.error().message, HasSubstr("is no name of a model")) << name;
    EXPECT_THAT(refused.error().hint, HasSubstr("letters, digits")) << name;
    EXPECT_EQ(refused.error().describe().find("dataset"), std::string::npos) << name;
  }
  auto refused = world.ask(add("llama", "1 beta"));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("\"1 beta\" is no version of a model"));
  EXPECT_TRUE(world.ask(add("llama:8b", "1.0-beta")));
}

TEST(Models, MemoryByPartsAndWhereItFits) {
  World world = lab();
  world.must(add("llama"));
  auto shown = reply_of<api::ShowModelReply>(world.must(api::ShowModel{"llama", {}, 1}));
  ASSERT_TRUE(shown.memory);
  EXPECT_EQ(shown.memory->context, 8192);
  EXPECT_EQ(shown.memory->weights, gibibytes(8));
  EXPECT_EQ(shown.memory->cache, gibibytes(1));
  api::ModelUse half;
  half.context = 8192;
  half.cache = "q8_0";
  shown = reply_of<api::ShowModelReply>(world.must(api::ShowModel{"llama", half, 1}));
  EXPECT_EQ(shown.memory->cache, Bytes{gibibytes(1).value * 34 / 64});
  half.cache = "q9";
  EXPECT_THAT(world.ask(api::ShowModel{"llama", half, 1}).error().hint, HasSubstr("q8_0"));

  auto fits = reply_of<api::FitReply>(world.must(api::FitModel{"llama", {}}));
  EXPECT_EQ(fits.memory.context, 131'072);
  ASSERT_EQ(fits.nodes.size(), 3u);
  EXPECT_EQ(fits.nodes[0].node, "server");
  EXPECT_TRUE(fits.nodes[0].whole);
  EXPECT_EQ(fits.nodes[0].gpus.size(), 1u) << "one of its two is enough";
  EXPECT_EQ(fits.nodes[1].node, "workstation");
  EXPECT_FALSE(fits.nodes[1].whole);
  EXPECT_GT(fits.nodes[1].context, 90'000);
  EXPECT_LT(fits.nodes[1].context, 131'072);
  EXPECT_EQ(fits.nodes[2].node, "laptop");
  EXPECT_EQ(fits.nodes[2].context, 0);
  EXPECT_EQ(fits.nodes[2].why, "no GPU");
}

TEST(Models, WithoutFiguresNobodyGuesses) {
  World world = lab();
  world.has_model("server", "old");
  auto shown = reply_of<api::ShowModelReply>(world.must(api::ShowModel{"old", {}, 1}));
  EXPECT_FALSE(shown.memory);
  EXPECT_THAT(shown.notes, ElementsAre(HasSubstr("do not tell")));
  auto fits = world.ask(api::FitModel{"old", {}});
  ASSERT_FALSE(fits);
  EXPECT_EQ(fits.error().code, ErrorCode::unsupported);
  EXPECT_EQ(world.ask(api::FitModel{"odl", {}}).error().hint, "did you mean `old`?");
}

TEST(Models, ACheckpointBecomesAModelThatKnowsItsOrigin) {
  World world = lab();
  EXPECT_EQ(world.ask(registered()).error().code, ErrorCode::not_found) << "it never ran";
  world.dispatch("finetune").value();
  world.commits("finetune", "epoch-1");
  world.commits("finetune", "epoch-2");
  Value reply = world.must(registered("@epoch-1"));
  EXPECT_EQ(text(reply, "dataset"), "models/tuned");
  EXPECT_EQ(text(reply, "node"), "server");
  const auto& order = std::get<ImportFiles>(world.agent("server").orders.back().action);
  EXPECT_EQ(order.source, testing::dataset("jobs/finetune-001"));
  const Dataset& job = world.agent("server").datasets.at(testing::dataset("jobs/finetune-001"));
  EXPECT_EQ(order.source_snapshot, job.find("epoch-1")->id);
  const Dataset& model = model_of(world, "tuned");
  EXPECT_EQ(model.property("source"), "jobs/finetune-001@epoch-1");
  EXPECT_EQ(model.property("lineage"), job.find("epoch-1")->id.str());
  EXPECT_EQ(model.property("job"), "finetune");
  EXPECT_EQ(model.property("loss"), "0.5");
  EXPECT_EQ(model.property("version"), "1");

  world.pass(seconds(30));
  EXPECT_NE(world.holds("laptop", "finetune") + world.holds("workstation", "finetune"), "--");
  reply = world.must(registered());
  EXPECT_EQ(text(reply, "dataset"), "models/tuned.v2") << "the next version";
  EXPECT_EQ(text(reply, "node"), "server") << "its home, though others have it too";
  EXPECT_EQ(model_of(world, "tuned.v2").property("source"), "jobs/finetune-001@epoch-2");
  EXPECT_THAT(world.ask(registered("@epoch-9")).error().message,
              HasSubstr("no checkpoint @epoch-9"));

  auto lineage = reply_of<api::LineageReply>(world.must(api::ShowLineage{"tuned@1"}));
  ASSERT_EQ(lineage.from.size(), 1u);
  EXPECT_EQ(lineage.from[0].name, "finetune@epoch-1");
  auto of_job = reply_of<api::LineageReply>(world.must(api::ShowLineage{"finetune"}));
  ASSERT_EQ(of_job.into.size(), 2u);
  EXPECT_EQ(of_job.into[0].name, "tuned@1");
}

TEST(Models, AnImportSaysWhoGetsACopy) {
  World world = lab();
  EXPECT_TRUE(reply_of<api::AddModelReply>(world.must(add("alone"))).goes_to.empty());
  ASSERT_TRUE(world.apply(lab_with("  replicate :models do\n    from :server\n"
                                   "    to [:workstation, :laptop]\n"
                                   "    filter \"format == \\\"gguf\\\"\"\n  end")));
  api::AddModel readable = add("llama");
  readable.properties["format"] = "gguf";
  const auto reply = reply_of<api::AddModelReply>(world.must(readable));
  EXPECT_EQ(reply.goes_to.size(), 2u);
  EXPECT_EQ(reply.goes_to.at("laptop"), "models");
  EXPECT_TRUE(reply_of<api::AddModelReply>(world.must(add("other"))).goes_to.empty());
}

TEST(Models, VersionsAndAliases) {
  World world = lab();
  world.must(add("llama", "1"));
  auto again = world.ask(add("llama"));
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().hint, HasSubstr("--version 2"));
  EXPECT_EQ(world.ask(add("llama", "1")).error().code, ErrorCode::exists);
  EXPECT_EQ(text(world.must(add("llama", "2")), "dataset"), "models/llama.v2");
  EXPECT_EQ(text(world.must(add("llama", "10")), "dataset"), "models/llama.v10");
  const auto shown = [&](const std::string& typed) {
    auto reply = world.ask(api::ShowModel{typed, {}, 1});
    return reply ? reply_of<api::ShowModelReply>(*reply).model.dataset : reply.error().hint;
  };
  EXPECT_EQ(shown("llama"), "models/llama.v10") << "10 is more than 2";
  EXPECT_EQ(shown("llama@1"), "models/llama");
  EXPECT_EQ(shown("llama@v2"), "models/llama.v2");
  EXPECT_EQ(shown("llama@3"), "there is llama@1, llama@10, llama@2");

  world.must(api::AliasModel{"llama@1", "production"});
  EXPECT_EQ(shown("llama@production"), "models/llama");
  auto moved = reply_of<api::AliasReply>(world.must(api::AliasModel{"llama@2", "production"}));
  EXPECT_EQ(moved.was, "1");
  EXPECT_EQ(shown("llama@production"), "models/llama.v2");
  EXPECT_EQ(model_of(world, "llama").property("aliases"), "");
  world.must(api::AliasModel{"llama", "production", true});
  EXPECT_THAT(shown("llama@production"), HasSubstr("there is"));
  for (const char* wrong : {"", "2", "v2", "a b", "a,b"})
    EXPECT_FALSE(world.ask(api::AliasModel{"llama@1", wrong})) << wrong;
  EXPECT_FALSE(world.ask(api::AliasModel{"llama@1", "nobody", true}));
}

TEST(Models, AWordStandsForOneVersionWhicheverMachineWasAway) {
  World world = lab();
  const auto version_of = [&world](const std::string& typed) {
    auto reply = world.ask(api::ShowModel{typed, {}, 1});
    return reply ? reply_of<api::ShowModelReply>(*reply).model.version : reply.error().hint;
  };
  api::AddModel on_workstation = add("llama", "1");
  on_workstation.node = "workstation";
  world.must(on_workstation);
  world.must(add("llama", "2"));
  world.must(api::AliasModel{"llama@1", "production"});
  world.goes_silent("workstation");
  world.pass(seconds(2));
  EXPECT_EQ(reply_of<api::AliasReply>(world.must(api::AliasModel{"llama@2", "production"})).was,
            "1");
  world.returns("workstation");
  world.pass(seconds(5));
  EXPECT_EQ(version_of("llama@production"), "2");
  EXPECT_EQ(model_of(world, "llama", "workstation").property("aliases"), "") << "it caught up";
  EXPECT_EQ(model_of(world, "llama.v2").property("aliases"), "production");
  world.must(api::AliasModel{"llama@1", "production"});
  EXPECT_EQ(version_of("llama@production"), "1");
  auto wrong = world.ask(api::AliasModel{"llama@2", "production", true});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message, "production stands for llama@1, not for llama@2");
  auto gone = reply_of<api::AliasReply>(world.must(api::AliasModel{"llama@1", "production", true}));
  EXPECT_EQ(gone.was + ", now " + gone.version, "1, now ");
  EXPECT_THAT(version_of("llama@production"), HasSubstr("there is"));
}

TEST(Models, WhatNobodyKnowsTheDateOfIsNotSpread) {
  World world = lab();
  world.must(add("llama", "1"));
  world.must(add("llama", "2"));
  auto& datasets = world.agent("server").datasets;
  for (const char* version : {"models/llama", "models/llama.v2"})  // of a version before
    datasets.at(testing::dataset(version)).properties["aliases"] = "production";
  world.goes_silent("server");
  world.returns("server");
  world.pass(seconds(5));
  EXPECT_EQ(model_of(world, "llama").property("aliases"), "production");
  EXPECT_EQ(model_of(world, "llama.v2").property("aliases"), "production");
}

TEST(Models, RemovingAsksWhatDependsOnIt) {
  World world = lab();
  world.must(add("llama", "1"));
  world.must(add("llama", "2"));
  world.must(api::AliasModel{"llama@2", "best"});
  auto needed = world.ask(api::RemoveModel{"llama@2"});
  ASSERT_FALSE(needed);
  EXPECT_EQ(needed.error().code, ErrorCode::refused);
  EXPECT_THAT(needed.error().message, HasSubstr("alias best"));
  world.dispatch("infer").value();
  world.pass(seconds(5));
  auto dry = reply_of<api::RemoveModelReply>(world.must(api::RemoveModel{"llama@1", true}));
  EXPECT_FALSE(dry.removed);
  EXPECT_THAT(dry.dependents, ::testing::Contains("job infer runs with it"));
  EXPECT_TRUE(world.agent("server").datasets.contains(testing::dataset("models/llama")));
  auto gone = reply_of<api::RemoveModelReply>(world.must(api::RemoveModel{"llama@2", false, true}));
  EXPECT_TRUE(gone.removed);
  EXPECT_FALSE(world.agent("server").datasets.contains(testing::dataset("models/llama.v2")));
}

TEST(Models, AnImportThatWasCutOffIsBegunAnew) {
  World world = lab();
  world.agent("server").refuses.insert("import-files");
  EXPECT_FALSE(world.ask(add("llama")));
  Dataset left;
  left.name = testing::dataset("models/llama");
  left.uuid = DatasetId{std::array<std::uint8_t, 16>{7}};
  left.properties = {{property::type, "model"},
                     {property::uuid, left.uuid.str()},
                     {property::name, "llama"},
                     {"version", "1"},
                     {"importing", "true"}};
  world.agent("server").datasets.emplace(left.name, left);
  world.restart();
  world.agent("server").refuses.clear();
  world.pass(seconds(2));
  EXPECT_EQ(text(world.must(add("llama")), "dataset"), "models/llama");
  const auto& order = std::get<ImportFiles>(world.agent("server").orders.back().action);
  EXPECT_EQ(order.properties.at(property::uuid), left.uuid.str()) << "as the same dataset";
}

}  // namespace
}  // namespace zed::controller
